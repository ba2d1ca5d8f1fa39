//! Comparing texts: what two share, and where markers such as `<x>` and `[X]` begin and end.

/// Two texts, cut where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split<'a> {
    /// Common prefix of both.
    pub prefix: &'a str,
    /// Common suffix of the rest.
    pub suffix: &'a str,
    /// Text only in the first.
    pub left: &'a str,
    /// Text only in the second.
    pub right: &'a str,
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// A marker: `<x>` or `[X]`.
    Marker(&'a str),
    /// Text between two markers.
    Text(&'a str),
}

impl<'a> Segment<'a> {
    /// Returns the text of the segment.
    pub fn text(self) -> &'a str {
        match self {
            Self::Marker(text) | Self::Text(text) => text,
        }
    }
}

/// Cuts two texts where they differ, never inside of a marker.
///
/// ```
/// use chat_format::analysis::text::diff;
///
/// let split = diff("say <b>yes</b>", "say </b>");
/// assert_eq!((split.prefix, split.left, split.right, split.suffix), ("say ", "<b>yes", "", "</b>"));
/// ```
pub fn diff<'a>(left: &'a str, right: &'a str) -> Split<'a> {
    let prefix = common_prefix(left, right);
    let (left, right) = (&left[prefix.len()..], &right[prefix.len()..]);
    let suffix = common_suffix(left, right);
    let (left, right) = (&left[..left.len() - suffix.len()], &right[..right.len() - suffix.len()]);
    Split { prefix, suffix, left, right }
}

/// Returns the common prefix of two texts, without an incomplete marker.
pub fn common_prefix<'a>(left: &'a str, right: &str) -> &'a str {
    let same = left.chars().zip(right.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    // Where one of them ends, nothing is cut.
    if same == left.len() || same == right.len() {
        return &left[..same];
    }
    &left[..open_marker(left, same).unwrap_or(same)]
}

/// Returns the common suffix of two texts, without an incomplete marker.
pub fn common_suffix<'a>(left: &'a str, right: &str) -> &'a str {
    let same: usize =
        left.chars().rev().zip(right.chars().rev()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (start, other) = (left.len() - same, right.len() - same);
    if start == 0 || other == 0 || (open_marker(left, start).is_none() && open_marker(right, other).is_none()) {
        return &left[start..];
    }
    let close = left[start..].char_indices().find(|(_, sign)| CLOSING.contains(sign));
    close.map_or(&left[start..], |(at, sign)| &left[start + at + sign.len_utf8()..])
}

/// As [`common_suffix`], but a marker after a word belongs to the word, as in `<|open|>x<|sep|>`, if another follows.
pub(super) fn common_tags<'a>(left: &'a str, right: &str) -> &'a str {
    let suffix = common_suffix(left, right);
    let word = |text: &str| text[..text.len() - suffix.len()].ends_with(char::is_alphanumeric);
    match segments(suffix)[..] {
        [Segment::Marker(first), Segment::Marker(_), ..] if word(left) && word(right) => &suffix[first.len()..],
        _ => suffix,
    }
}

/// The largest number of bytes, at most `most`, that cuts no character.
pub(crate) fn floor(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The length of the marker that a text ends with; 0 if it ends with none.
pub(crate) fn length_of_last_marker(text: &str) -> usize {
    let from = text.char_indices().rev().nth(80).map_or(0, |(at, _)| at);
    match segments(&text[from..]).last() {
        Some(Segment::Marker(marker)) => marker.len(),
        _ => 0,
    }
}

/// Returns the start of the marker that is open at a position.
pub(super) fn open_marker(text: &str, at: usize) -> Option<usize> {
    let (open, sign) = text[..at].char_indices().rev().find(|(start, _)| opens(&text[*start..]))?;
    let close = closed_by(sign)?;
    let open = if text[..open].ends_with('<') && sign == '<' { open - 1 } else { open };
    let closed =
        if sign == BOTH { text[..at].matches(BOTH).count().is_multiple_of(2) } else { text[open..at].contains(close) };
    // A bracket that nothing ever closes is not a marker.
    (!closed && (sign == '<' || text[at..].contains(close) || at == text.len())).then_some(open)
}

fn opens(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') => chars.next().is_none_or(|next| next.is_alphanumeric() || matches!(next, '/' | '|')),
        Some(sign) => closed_by(sign).is_some(),
        None => false,
    }
}

/// Returns the part of a text before the common prefix of two others; empty if absent.
pub fn until_common_prefix<'a>(full: &'a str, left: &str, right: &str) -> &'a str {
    let common = common_prefix(left, right);
    if common.is_empty() {
        return "";
    }
    full.find(common).map_or("", |at| &full[..at])
}

/// Returns the part of a text after the common suffix of two others; empty if absent.
pub fn after_common_suffix<'a>(full: &'a str, left: &str, right: &str) -> &'a str {
    let common = common_suffix(left, right);
    if common.is_empty() {
        return "";
    }
    full.rfind(common).map_or("", |at| &full[at + common.len()..])
}

/// Stands on both sides of a word.
const BOTH: char = '\u{273f}';
const OPENING: [char; 8] = ['<', '[', '\u{25c1}', '\u{27e8}', '\u{300a}', '\u{3010}', '\u{ab}', BOTH];
pub(crate) const CLOSING: [char; 8] = ['>', ']', '\u{25b7}', '\u{27e9}', '\u{300b}', '\u{3011}', '\u{bb}', BOTH];

/// Returns the sign that closes a marker opened by this one.
fn closed_by(sign: char) -> Option<char> {
    OPENING.iter().position(|open| *open == sign).map(|at| CLOSING[at])
}

/// The literals of a template's expressions that may be markers, each once, in their order.
pub(super) fn literals(template: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut rest, mut inside) = (template, false);
    while let Some(at) = rest.find(['\'', '"', '{', '%', '}']) {
        let sign = rest.as_bytes()[at];
        let after = &rest[at + 1..];
        match sign {
            b'{' if after.starts_with(['{', '%']) => (inside, rest) = (true, &after[1..]),
            b'%' | b'}' if after.starts_with('}') => (inside, rest) = (false, &after[1..]),
            b'\'' | b'"' if inside => {
                let Some(end) = end_of_literal(after, sign) else { break };
                let text = after[..end].replace("\\n", "\n");
                let is_marker = segments(text.trim()).iter().any(|segment| matches!(segment, Segment::Marker(_)));
                if is_marker && text.len() <= 64 && !found.iter().any(|known| known == text.trim()) {
                    found.push(text.trim().to_owned());
                }
                rest = &after[end + 1..];
            }
            _ => rest = after,
        }
    }
    found
}

/// Returns the end of a literal that such a quote began: a quote behind a backslash does not end it.
fn end_of_literal(text: &str, quote: u8) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })
}

/// The markers of a text and what is between them.
///
/// ```
/// use chat_format::analysis::text::{Segment, segments};
///
/// let found = segments("<b>yes[END]");
/// assert_eq!(found, [Segment::Marker("<b>"), Segment::Text("yes"), Segment::Marker("[END]")]);
/// ```
pub fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut found = Vec::new();
    let (mut begun, mut at) = (0, 0);
    while let Some(sign) = text[at..].chars().next() {
        let close = match sign {
            '[' if !opens(&text[at..]) => None,
            _ => closed_by(sign).and_then(|close| {
                let inner = &text[at + sign.len_utf8()..];
                Some(inner.find(close)? + sign.len_utf8() + close.len_utf8() - 1)
            }),
        };
        // A second opening sign before the end: the first is text.
        let close = close.filter(|end| !text.as_bytes()[at + 1..at + end].iter().any(|byte| b"<\n".contains(byte)));
        if let Some(end) = double(&text[at..]).or(close) {
            if begun < at {
                found.push(Segment::Text(&text[begun..at]));
            }
            found.push(Segment::Marker(&text[at..=at + end]));
            at += end + 1;
            begun = at;
        } else {
            at += sign.len_utf8();
        }
    }
    if begun < text.len() {
        found.push(Segment::Text(&text[begun..]));
    }
    found
}

/// Returns the last byte of a marker in double signs, `<<x>>`.
fn double(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("<<")?;
    let end = inner.find(">>").filter(|&end| !inner[..end].contains(['<', '\n']))?;
    Some(end + 3)
}

/// The segments at the beginning of a text that make one tag: a marker, or marker, word, marker as in
/// `<|open|>x<|sep|>` if the word is `word`. Nothing if there is no marker.
pub(super) fn first_tag<'a>(text: &'a str, word: Option<&str>) -> &'a str {
    let found = segments(text);
    let start = usize::from(matches!(found.first(), Some(Segment::Text(text)) if text.trim().is_empty()));
    let is_marker = |index: usize| matches!(found.get(index), Some(Segment::Marker(_)));
    if !is_marker(start) {
        return "";
    }
    let three = matches!(found.get(start + 1), Some(Segment::Text(text)) if word == Some(text.trim()));
    let end = if three && is_marker(start + 2) { start + 3 } else { start + 1 };
    let length: usize = found[..end].iter().map(|segment| segment.text().len()).sum();
    with_space(text, length)
}

/// The segments at the end of a text that make one tag, as [`first_tag`]; a word only if `word` says so.
pub(super) fn last_tag<'a>(text: &'a str, word: Option<&str>) -> &'a str {
    let found = segments(text);
    let last = found.len().saturating_sub(1);
    let end = if matches!(found.last(), Some(Segment::Text(text)) if text.trim().is_empty()) { last } else { last + 1 };
    let is_marker = |index: usize| matches!(found.get(index), Some(Segment::Marker(_)));
    if end == 0 || !is_marker(end - 1) {
        return "";
    }
    let three = end >= 3 && matches!(found[end - 2], Segment::Text(text) if word == Some(text.trim()));
    let start = if three && is_marker(end - 3) { end - 3 } else { end - 1 };
    let length: usize = found[..start].iter().map(|segment| segment.text().len()).sum();
    &text[length..]
}

/// The word of a tag of three segments at the beginning of a text.
pub(super) fn word_of(text: &str) -> Option<&str> {
    match segments(text.trim_start())[..] {
        [Segment::Marker(_), Segment::Text(word), Segment::Marker(_), ..] if !word.trim().is_empty() => {
            Some(word.trim())
        }
        _ => None,
    }
}

/// So many bytes of a text and the white space after them.
pub(super) fn with_space(text: &str, length: usize) -> &str {
    let rest = &text[length..];
    &text[..length + rest.len() - rest.trim_start().len()]
}

/// A text without this prefix, if it begins with it; white space may differ.
pub(super) fn strip_loosely<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = text;
    for sign in prefix.chars().filter(|sign| !sign.is_whitespace()) {
        rest = rest.trim_start().strip_prefix(sign)?;
    }
    Some(if prefix.ends_with(char::is_whitespace) { rest.trim_start() } else { rest })
}

/// The marker that closes another: `</x>`, `[/X]`, or with `END` for `START`.
pub(super) fn closing(start: &str) -> Option<String> {
    for (open, close) in [("START", "END"), ("start", "end"), ("BEGIN", "END"), ("begin", "end")] {
        if start.contains(open) {
            return Some(start.replace(open, close));
        }
    }
    if let Some(word) = start.strip_prefix("<|").and_then(|rest| rest.strip_suffix('>')) {
        return Some(match word.strip_suffix('|') {
            Some(word) => format!("<|/{word}|>"),
            None => format!("<{word}|>"),
        });
    }
    let sign = start.chars().next()?;
    let word = start.trim_start_matches(sign);
    word.starts_with(char::is_alphanumeric).then(|| format!("{}/{word}", &start[..start.len() - word.len()]))
}

/// The marker that another closes: the inverse of [`closing`].
pub(super) fn opening(end: &str) -> Option<String> {
    let ways =
        [("END", "START"), ("_end", "_start"), ("end_of", "begin_of"), ("\u{2581}end", "\u{2581}begin"), ("/", "")];
    let start = ways.iter().find(|(close, _)| end.contains(close)).map(|(close, open)| end.replacen(close, open, 1));
    let half = || Some(format!("<|{}>", end.strip_prefix('<')?.strip_suffix("|>")?));
    start.or_else(half)
}

/// Returns whether one marker is the end of another: the same words, and a sign or a word more.
pub(super) fn closes(start: &str, end: &str) -> bool {
    let is_other = start.trim() != end.trim();
    let letters = |text: &str| text.chars().filter(|sign| sign.is_alphanumeric()).collect::<String>().to_lowercase();
    let (start, end) = (letters(start), letters(end));
    let root = |text: &str| text.replace("start", "").replace("begin", "").replace("end", "").replace("stop", "");
    !start.is_empty() && is_other && root(&start) == root(&end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_one_and_of_three_segments() {
        assert_eq!(first_tag("</think>\n\nmore", None), "</think>\n\n");
        assert_eq!(first_tag("<|close|>think<|sep|><|open|>", Some("think")), "<|close|>think<|sep|>");
        assert_eq!(first_tag("no", None), "");
        assert_eq!(last_tag("<|im|>bot\n<think>\n", None), "<think>\n");
        assert_eq!(last_tag("<|open|>think<|sep|>", Some("think")), "<|open|>think<|sep|>");
        assert_eq!(word_of("<|close|>think<|sep|>"), Some("think"));
    }

    #[test]
    fn markers_are_not_cut() {
        assert_eq!(common_suffix("<|calls|><|call|>", "}<|end_call|><|call|>"), "<|call|>");
        assert_eq!(common_prefix("<|calls|>", "<|call|>"), "");
        assert_eq!(common_prefix("a[e~[\n", "a[e~[\n]"), "a[e~[\n");
    }

    #[test]
    fn literals_of_a_template() {
        let template = r#"{{ '{"a": "it\'s' }}{{ "\"x\": \"<a>" }}'<b>'{% set t = t.split("</b>")[-1] | f('[C]\n') %}"#;
        assert_eq!(literals(template), [r#"\"x\": \"<a>"#, "</b>", "[C]"]);
    }

    #[test]
    fn white_space_may_differ() {
        assert_eq!(strip_loosely("\n<a>\n\n</a>b", "<a></a>"), Some("b"));
        assert_eq!(strip_loosely("<b>", "<a>"), None);
    }
}
