//! Ends of calls, and the end of the turn after them: told apart by the markers opened before.

use crate::analysis::text::{CLOSING, Segment, closes, segments};
use crate::machine::is_set_off;

/// Divides what stands after the arguments of calls. All up to the last marker that closes one of those before belongs
/// to the calls; what comes after it is the end of the turn. Nothing where none is closed.
pub(super) fn divide<'a>(before: &str, after: &'a str) -> Option<(&'a str, &'a str)> {
    let mut open = open_tags(before);
    let (mut at, mut end) = (0, 0);
    for segment in segments(after) {
        let closed = match as_marker(segment) {
            Segment::Marker(marker) => {
                open.iter().rposition(|tag| ends(tag, marker)).map(|closed| (closed, marker.len()))
            }
            Segment::Text(text) => {
                let fence = open.iter().rposition(|tag| tag.starts_with(FENCE));
                fence.zip(text.find(FENCE).map(|at| at + FENCE.len()))
            }
        };
        if let Some((closed, length)) = closed {
            open.truncate(closed);
            end = at + length;
        }
        at += segment.text().len();
    }
    (end > 0).then(|| after.split_at(end))
}

/// The tags of a text that are open at its end: markers, and those that go on with a name.
pub(super) fn open_tags(text: &str) -> Vec<&str> {
    let mut open: Vec<&str> = Vec::new();
    for segment in segments(text) {
        match as_marker(segment) {
            Segment::Marker(marker) => match open.iter().rposition(|tag| ends(tag, marker)) {
                Some(closed) => open.truncate(closed),
                None => open.push(marker),
            },
            Segment::Text(piece) => {
                open.extend(piece.match_indices(['<', '[']).map(|(at, _)| &piece[at..]));
                open.extend(piece.rfind(FENCE).map(|at| &piece[at..]));
            }
        }
    }
    open
}

/// A word between signs, `__x__`, is a marker where it stands alone.
fn as_marker(segment: Segment<'_>) -> Segment<'_> {
    match segment {
        Segment::Text(text) if is_set_off(text.trim().as_bytes()) && !text.contains(['<', '[', '`']) => {
            Segment::Marker(text)
        }
        segment => segment,
    }
}

/// Fence around blocks of code.
pub(super) const FENCE: &str = "```";

/// Returns whether a marker closes a tag: by its words, or as `</x>` a tag that begins with `<x` and continues with a
/// name.
pub(super) fn ends(tag: &str, marker: &str) -> bool {
    let named = || {
        let word = marker.get(1..)?.strip_prefix('/')?.trim_end_matches(CLOSING);
        let rest = tag.get(1..)?.strip_prefix(word)?;
        (tag[..1] == marker[..1] && !word.is_empty() && !rest.starts_with(char::is_alphanumeric)).then_some(())
    };
    closes(tag, marker) || (tag.is_char_boundary(1) && marker.is_char_boundary(1) && named().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_closes_nothing_ends_the_turn() {
        for (before, after, calls, turn) in [
            ("<call>", "</call><|call_end|>", "</call>", "<|call_end|>"),
            (
                "<|fns_start|>\n<|step_start|>",
                "<|step_end|>\n<|fns_end|><|eom|>",
                "<|step_end|>\n<|fns_end|>",
                "<|eom|>",
            ),
            ("<calls>\n<invoke name=\"", "</invoke>\n</calls>\n<|eom|>\n", "</invoke>\n</calls>", "\n<|eom|>\n"),
            ("<fn=", "</fn></s>", "</fn>", "</s>"),
            ("<calls><call_0>", "<call_1></calls><|eom|>", "<call_1></calls>", "<|eom|>"),
            ("[CALL]", "[END_CALL]", "[END_CALL]", ""),
            ("<<call>>", "<</call>>\n<|eom|>", "<</call>>", "\n<|eom|>"),
            ("__calls__<fn=>", "</fn>__end_calls__<|eom|>", "</fn>__end_calls__", "<|eom|>"),
            ("```code\n", "\n```<|eom|>", "\n```", "<|eom|>"),
            ("<call><name>x</name><arguments>", "</arguments></call>", "</arguments></call>", ""),
        ] {
            assert_eq!(divide(before, after), Some((calls, turn)), "{before} {after}");
        }
        assert_eq!(divide("[TOOL_CALLS]", "</s>"), None);
        assert_eq!(divide("", "</s>"), None);
    }
}
