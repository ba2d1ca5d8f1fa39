//! Free text on its way to its stop.

/// What a model writes until a stop: its bytes, and which of its tokens can no longer be taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct FreeText {
    pub(super) bytes: Vec<u8>,
    /// Where each token ends.
    ends: Vec<usize>,
    /// Bytes from the beginning that are whole characters.
    whole: usize,
    /// Where the stop begins.
    stop: Option<usize>,
    /// Tokens that neither the stop nor a character that was only begun can reach.
    pub(super) certain: usize,
}

impl FreeText {
    /// Takes a token's bytes, and looks for the stop, which is not empty. `O(bytes of token and stop)`.
    pub(super) fn push(&mut self, piece: &[u8], stop: &[u8]) {
        let might_begin = |length: usize| (length + 1).saturating_sub(stop.len());
        let from = might_begin(self.bytes.len());
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len());
        self.whole += match std::str::from_utf8(&self.bytes[self.whole..]) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let found = self.bytes[from..].windows(stop.len()).position(|window| window == stop);
        if found.is_none() {
            let settled = might_begin(self.bytes.len()).min(self.whole);
            self.certain += self.ends[self.certain..].iter().take_while(|&&end| end <= settled).count();
        }
        self.stop = found.map(|found| from + found);
    }

    /// Whether the stop is written.
    pub(super) fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    /// The text up to the stop, or all of it; a character that the last token only begins is left out.
    pub(super) fn value(&self) -> String {
        let end = self.stop.unwrap_or(self.whole).min(self.whole);
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_certain_once_no_stop_can_begin_in_them() {
        let mut text = FreeText::default();
        let pushed: Vec<_> = [&b"ab"[..], b"\n", b"c\xc3", b"\xa4", b"d\n", b"\ne"]
            .map(|piece| {
                text.push(piece, b"\n\n");
                (text.stop, text.certain)
            })
            .into();
        assert_eq!(pushed, [(None, 0), (None, 1), (None, 2), (None, 3), (None, 4), (Some(7), 4)]);
        assert_eq!(text.value(), "ab\ncäd");
    }

    #[test]
    fn a_character_that_is_cut_off_is_left_out() {
        let mut text = FreeText::default();
        for piece in [&b"a"[..], b"\xe2\x82"] {
            text.push(piece, b"|");
        }
        assert_eq!(text.certain, 1);
        assert_eq!(text.value(), "a");
    }
}
