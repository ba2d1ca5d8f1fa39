//! Texts of calls, cut into the parts of a pattern.

use crate::analysis::probe::Probe;
use crate::analysis::text::{CLOSING, Segment, segments};
use crate::dialect::Part;
use crate::machine::is_set_off;

/// Stands for a tool's name.
pub(super) const NAME: char = '\u{E000}';
/// Stands for a call's id.
pub(super) const ID: char = '\u{E001}';
/// Stands for a call's number.
pub(super) const INDEX: char = '\u{E002}';

/// The text with signs in the place of names and ids.
pub(super) fn normal(probe: &Probe, text: &str) -> String {
    let mut text = text.to_owned();
    for (needles, sign) in [(&probe.needles.names, NAME), (&probe.needles.ids, ID)] {
        for needle in needles {
            text = text.replace(needle.as_str(), sign.encode_utf8(&mut [0; 4]));
        }
    }
    text
}

/// The first of two texts, with a sign where they have different numbers.
pub(super) fn with_index_sign(first: &str, second: &str) -> String {
    let prefix = common_prefix_of_chars(first, second);
    let (left, right) = (&first[prefix..], &second[prefix..]);
    let digits = |text: &str| text.len() - text.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    let (from, to) = (digits(left), digits(right));
    if from == 0 || to == 0 || left[from..] != right[to..] {
        return first.to_owned();
    }
    format!("{}{INDEX}{}", &first[..prefix], &left[from..])
}

fn common_prefix_of_chars(first: &str, second: &str) -> usize {
    // Not `common_prefix`, which spares markers: numbers stand inside of some.
    let all = first.char_indices().zip(second.chars());
    all.take_while(|((_, a), b)| a == b).last().map_or(0, |((at, a), _)| at + a.len_utf8())
}

/// The parts of a text with signs in it.
pub(super) fn parse_parts(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find([NAME, ID, INDEX]) {
        texts(&rest[..at], &mut found);
        let sign = rest[at..].chars().next().unwrap_or(NAME);
        found.push(match sign {
            NAME => Part::Name,
            ID => Part::Id,
            _ => Part::Index,
        });
        rest = &rest[at + sign.len_utf8()..];
    }
    texts(rest, &mut found);
    found
}

/// One text a tag; words between tags stay with what is before them.
fn texts(text: &str, found: &mut Vec<Part>) {
    let mut begun = String::new();
    let mut marked = false;
    for segment in segments(text) {
        let (is_tag, piece) = match segment {
            Segment::Marker(piece) => (true, piece),
            Segment::Text(piece) => (piece.starts_with('<'), piece),
        };
        let words = begun.contains(char::is_alphanumeric) && !marked;
        if is_tag && !words && (marked || begun.trim_end().ends_with(['}', ')'])) && !begun.is_empty() {
            found.push(Part::Text(std::mem::take(&mut begun)));
        }
        marked = match segment {
            Segment::Marker(_) => !words,
            Segment::Text(piece) => {
                // An opening tag that goes on with a name begins after white space.
                if let Some(at) = piece.find('<').filter(|at| *at > 0 && piece[..*at].trim().is_empty()) {
                    begun.push_str(&piece[..at]);
                    found.push(Part::Text(std::mem::take(&mut begun)));
                    begun.push_str(&piece[at..]);
                    marked = false;
                    continue;
                }
                marked && piece.trim().is_empty()
            }
        };
        begun.push_str(piece);
    }
    if !begun.is_empty() {
        found.push(Part::Text(begun));
    }
}

/// Says that the id is all from the word before the name on, up to what comes after the number.
pub(super) fn whole_id(found: &mut Vec<Part>, name: usize) {
    let mut at = name;
    if let Some(before) = name.checked_sub(1)
        && let Part::Text(text) = found[before].clone()
    {
        let word =
            text.rsplit(|sign| CLOSING.contains(&sign) || matches!(sign, ' ' | '\n' | '"')).next().unwrap_or_default();
        // A marker that is a word between signs is not part of the id.
        let word = if is_set_off(word.trim().as_bytes()) { "" } else { word };
        let tag = &text[..text.len() - word.len()];
        let pieces = [tag, word].map(|text| Part::Text(text.to_owned()));
        let pieces: Vec<Part> = pieces.into_iter().filter(|part| *part != Part::Text(String::new())).collect();
        at = before + usize::from(!tag.is_empty());
        found.splice(before..name, pieces);
    }
    found.insert(at, Part::WholeId);
    if let Some(index) = found.iter().position(|part| *part == Part::Index) {
        found.insert(index + 1, Part::WholeId);
    }
}
