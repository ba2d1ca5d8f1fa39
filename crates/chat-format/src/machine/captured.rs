//! Name and id of a call, captured from the text of a sequence, and the text that a sequence has for a name.

use super::members::Members;
use super::seq::{Atom, Seq};

impl Seq {
    /// The text of the sequence for a tool of this name, as the template writes it, and the part of the next text that
    /// it needs.
    pub(crate) fn spell_for_tool(&self, name: &str) -> Vec<u8> {
        let mut text = Vec::new();
        for atom in &self.atoms {
            match atom {
                Atom::Text(literal) => {
                    text.extend_from_slice(&literal.blanks);
                    text.extend_from_slice(literal);
                }
                Atom::Exactly(literal) => text.extend_from_slice(literal),
                Atom::Name => text.extend_from_slice(name.as_bytes()),
                Atom::Id | Atom::Index => text.push(b'0'),
                Atom::Ahead(bytes) => text.extend(bytes.first()),
                Atom::Blank | Atom::Anything | Atom::WholeId | Atom::Members(_) => {}
            }
        }
        text
    }

    /// Returns the text captured for name and id in a whole sequence, or in its beginning.
    pub(crate) fn capture(&self, text: &[u8]) -> CapturedCall {
        let mut captured = CapturedCall::default();
        let (mut rest, mut whole) = (text, None::<&[u8]>);
        for (number, atom) in self.atoms.iter().enumerate() {
            match atom {
                Atom::Text(t) | Atom::Exactly(t) => {
                    let Some(at) = find(rest, t) else { break };
                    rest = &rest[at + t.len()..];
                }
                Atom::WholeId => match whole.take() {
                    None => whole = Some(rest.trim_ascii_start()),
                    Some(begun) => captured.id = Some(trimmed_text(&begun[..begun.len() - rest.len()])),
                },
                Atom::Blank | Atom::Ahead(_) => {}
                Atom::Members(side) => {
                    let next = self.atoms.get(number + 1).and_then(Atom::literal).unwrap_or_default();
                    let Some(after) = Members::skip_members(*side, rest, next.as_bytes()) else { break };
                    rest = after;
                }
                open => {
                    if *open == Atom::Name {
                        rest = rest.trim_ascii_start();
                    }
                    let end = self.atoms[number + 1..].iter().find_map(|atom| match atom {
                        Atom::Text(t) | Atom::Exactly(t) => Some(find(rest, t)),
                        Atom::Ahead(bytes) => Some(rest.iter().position(|byte| bytes.contains(byte))),
                        _ => None,
                    });
                    let end = end.flatten().unwrap_or(rest.len());
                    let written = trimmed_text(&rest[..end]);
                    match open {
                        Atom::Name => captured.name = Some(written),
                        Atom::Id => captured.id = Some(written),
                        _ => {}
                    }
                    rest = &rest[end..];
                }
            }
        }
        captured
    }
}

/// Captured name of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CapturedCall {
    pub name: Option<String>,
    pub id: Option<String>,
}

fn find(text: &[u8], of: &[u8]) -> Option<usize> {
    text.windows(of.len().max(1)).position(|window| window == of)
}

fn trimmed_text(text: &[u8]) -> String {
    String::from_utf8_lossy(text.trim_ascii()).into_owned()
}
