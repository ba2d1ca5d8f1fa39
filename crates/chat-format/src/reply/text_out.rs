//! Output of a reply's text. White space at the ends and incomplete characters are kept back.

/// Text that comes in bytes and goes out in characters.
#[derive(Debug, Clone, Default)]
pub(super) struct TextOut {
    /// Pending text: white space that text may or may not follow, and the beginning of a character.
    kept: Vec<u8>,
    /// Length of its prefix up to the last byte that is not white space: only new bytes are examined.
    firm: usize,
    any: bool,
    /// State of a code fence around the whole text.
    fence: Fence,
    /// True to drop white space before the first text.
    trimmed: bool,
}

/// A code fence around content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Fence {
    #[default]
    None,
    /// A fence may begin here.
    Wanted,
    /// A fence began, and its first line is not complete.
    Begun,
    /// The fence is open, and may be closed.
    Open,
}

impl TextOut {
    pub(super) fn without_fence() -> Self {
        Self { fence: Fence::Wanted, ..Self::default() }
    }

    /// Returns whether any text was written.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// Notes that a marker precedes the text: white space next to it belongs to the marker.
    pub(super) fn after_marker(&mut self) {
        self.trimmed = true;
        if !self.any {
            self.clear();
            if self.fence == Fence::Begun {
                self.fence = Fence::Wanted;
            }
        }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.firm = 0;
    }

    /// Adds text, and appends the part that became certain to `out`.
    pub(super) fn push(&mut self, text: &[u8], out: &mut String) {
        let from = self.kept.len();
        self.kept.extend_from_slice(text);
        if self.fence == Fence::Begun {
            return self.open(from, out);
        }
        self.look_from(from);
        if self.firm > 0 {
            self.flush(self.firm, out);
        }
    }

    /// Looks for text in what is kept from there on.
    fn look_from(&mut self, from: usize) {
        let last = self.kept[from..].iter().rposition(|&byte| !self.is_kept(byte));
        self.firm = last.map_or(self.firm, |last| from + last + 1);
    }

    /// Begins a fence if the kept text begins one, and returns whether it does.
    fn begin_fence(&mut self, out: &mut String) -> bool {
        let text = self.kept.trim_ascii_start();
        if self.fence != Fence::Wanted || self.any || !text.starts_with(b"```") {
            return false;
        }
        self.fence = Fence::Begun;
        self.open(self.kept.len() - text.len(), out);
        true
    }

    /// Ends the first line of a fence, if the kept text from this position on holds the end of the line.
    fn open(&mut self, from: usize, out: &mut String) {
        let Some(line) = memchr::memchr(b'\n', &self.kept[from..]) else { return };
        self.kept.drain(..=from + line);
        (self.fence, self.firm) = (Fence::Open, 0);
        self.look_from(0);
        if self.firm > 0 {
            self.flush(self.firm, out);
        }
    }

    /// Ends the text. `cut`: a marker follows, to which the white space at the end belongs. An incomplete character
    /// becomes U+FFFD, unless more of it may follow (`partial`).
    pub(super) fn finish(&mut self, cut: bool, partial: bool, out: &mut String) {
        self.begin_fence(out);
        if self.fence == Fence::Begun {
            if partial {
                return self.clear();
            }
            // Without an end its line is text.
            self.fence = Fence::None;
        }
        if self.fence == Fence::Open {
            while self.kept.last().is_some_and(|&byte| self.is_kept(byte)) {
                self.kept.pop();
            }
        }
        if cut {
            self.kept.truncate(self.kept.trim_ascii_end().len());
        }
        self.flush(self.kept.len(), out);
        if !self.kept.is_empty() && !partial {
            out.push('\u{FFFD}');
        }
        self.clear();
    }

    fn is_kept(&self, byte: u8) -> bool {
        byte.is_ascii_whitespace() || (self.fence != Fence::None && byte == b'`')
    }

    /// Writes the pending text up to this position, except the beginning of a character.
    fn flush(&mut self, end: usize, out: &mut String) {
        if self.begin_fence(out) {
            return;
        }
        if self.fence == Fence::Wanted {
            self.fence = Fence::None;
        }
        let mut kept = std::mem::take(&mut self.kept);
        let tail = kept.split_off(end);
        let mut rest: &[u8] = &kept;
        if self.trimmed && !self.any {
            rest = rest.trim_ascii_start();
        }
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.any |= !text.is_empty();
                    out.push_str(text);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (text, after) = rest.split_at(error.valid_up_to());
                    self.any |= !text.is_empty();
                    out.push_str(std::str::from_utf8(text).unwrap_or_default());
                    let Some(invalid) = error.error_len() else {
                        rest = after;
                        break;
                    };
                    self.any = true;
                    out.push('\u{FFFD}');
                    rest = &after[invalid..];
                }
            }
        }
        if !rest.is_empty() && !tail.is_empty() {
            self.any = true;
            out.push('\u{FFFD}');
            rest = &[];
        }
        self.kept = rest.to_vec();
        self.firm = self.kept.len();
        self.kept.extend(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_text(mut text: TextOut, parts: &[&[u8]], cut: bool) -> String {
        let mut out = String::new();
        for part in parts {
            text.push(part, &mut out);
        }
        text.finish(cut, false, &mut out);
        out
    }

    #[test]
    fn keeps_white_space_back_until_text_follows() {
        assert_eq!(collect_text(TextOut::default(), &[b" a \n", b"b\n"], false), " a \nb\n");
        assert_eq!(collect_text(TextOut::default(), &[b" a \n", b"b\n"], true), " a \nb");
        let mut text = TextOut::default();
        text.push(b"\n", &mut String::new());
        text.after_marker();
        assert_eq!(collect_text(text, &[b"\n ", b"a"], true), "a");
    }

    #[test]
    fn characters_come_whole_and_what_is_none_is_replaced() {
        assert_eq!(collect_text(TextOut::default(), &[b"\xE2", b"\x82", b"\xAC"], false), "\u{20AC}");
        assert_eq!(collect_text(TextOut::default(), &[b"a\xFFb\xE2\x82"], false), "a\u{FFFD}b\u{FFFD}");
        assert_eq!(collect_text(TextOut::default(), &[b"\xE2\x82 x"], false), "\u{FFFD} x");
        // White space after anything that is not a character is none before the text, in whatever portions it comes.
        for parts in [&[&b"\xE2\tx"[..]][..], &[b"\xE2", b"\t", b"x"]] {
            let mut text = TextOut::default();
            text.after_marker();
            assert_eq!(collect_text(text, parts, false), "\u{FFFD}\tx");
        }
    }

    #[test]
    fn a_character_that_is_cut_off_is_left_out_where_more_may_come() {
        let (mut text, mut out) = (TextOut::default(), String::new());
        text.push(b"a\xE2\x82", &mut out);
        text.finish(false, true, &mut out);
        assert_eq!(out, "a");
    }

    #[test]
    fn a_fence_whose_line_does_not_end_is_text() {
        for parts in [&[&b"```js on"[..]][..], &[b"``", b"`js", b" on"]] {
            assert_eq!(collect_text(TextOut::without_fence(), parts, false), "```js on");
        }
        assert_eq!(collect_text(TextOut::without_fence(), &[b"```"], false), "```");
        assert_eq!(collect_text(TextOut::without_fence(), &[b"```\n\n"], false), "");
        let (mut text, mut out) = (TextOut::without_fence(), String::new());
        text.push(b"```js", &mut out);
        text.finish(false, true, &mut out);
        assert_eq!(out, "");
    }

    #[test]
    fn a_fence_is_left_out() {
        let parts: [&[u8]; 3] = [b"``", b"`json\n\"4", b"2\"\n```"];
        assert_eq!(collect_text(TextOut::without_fence(), &parts, false), "\"42\"");
        assert_eq!(collect_text(TextOut::without_fence(), &[b"{\"a\": 1}"], false), "{\"a\": 1}");
    }
}
