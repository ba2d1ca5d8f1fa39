//! Calls whose arguments are lines, in a text that tells of them: a name, and a key and a value on each line after it.

use super::cores::{Core, PromptTools};
use super::words::{is_sign_of_word, is_word};
use crate::analysis::calls::ends::{FENCE, ends};
use crate::analysis::calls::example::{ArgumentSyntax, Piece};
use crate::analysis::text::Segment;

impl PromptTools<'_> {
    /// All calls between a marker and what closes it, and those that are code.
    pub(super) fn lines(&self) -> impl Iterator<Item = Core> + '_ {
        let marked = self.segments.windows(3).filter_map(|three| match three {
            [(at, Segment::Marker(tag)), (from, Segment::Text(_)), (to, Segment::Marker(close))] => {
                (ends(tag, close) && at + tag.len() == *from).then_some((*from, *to))
            }
            _ => None,
        });
        let code = self.text.match_indices(FENCE).filter_map(|(at, _)| {
            let from = at + self.text[at..].find('\n')? + 1;
            Some((from, from + self.text[from..].find(FENCE)?))
        });
        marked.chain(code).filter_map(|(from, to)| self.find_lines(from, to))
    }

    /// A name and lines, between two places.
    fn find_lines(&self, from: usize, to: usize) -> Option<Core> {
        let inner = &self.text[from..to];
        let start = from + inner.len() - inner.trim_start().len();
        let (name, rest) = self.text[start..to].split_once('\n')?;
        let lines = &rest[..rest.trim_end().len()];
        let mut all = lines.lines().map(around_key);
        let (key, joint) = all.next()??;
        let end = start + name.len() + 1 + lines.len() + 1;
        if !is_word(name) || end > to || all.any(|other| other != Some((key, joint))) {
            return None;
        }
        let given = ArgumentSyntax::Tagged { key: key.to_owned(), value: joint.to_owned(), end: "\n".into() };
        Some(Core { start, end, pieces: vec![Piece::Name, Piece::Text("\n".into()), Piece::Arguments(given)] })
    }
}

/// Returns the text before and after the key of a line.
fn around_key(line: &str) -> Option<(&str, &str)> {
    let (before, rest) = line.split_at(line.find(char::is_alphanumeric)?);
    let after = rest.trim_start_matches(is_sign_of_word);
    let value = after.trim_start_matches([' ', '\t', ':', '=']);
    let joint = &after[..after.len() - value.len()];
    // Texts in quotes are no lines as they are.
    let is_said = value.is_empty() || value.starts_with(['"', '\'']) || before.chars().count() > 2;
    (joint.contains(['\t', ':', '=']) && !is_said).then_some((before, joint))
}
