//! A list of JSON documents: texts of a list, with blanks where JSON allows them.

use super::RegularError;
use super::list::{List, Place};
use crate::automaton::Automaton;
use crate::automaton::regex::Regex;
use crate::automaton::table::DEAD;
use crate::rule::Rule;
use std::fmt;
use std::sync::Arc;
use trie_core::work::{LimitExceeded, hold, spend};

/// Stands in a text where blanks may. No byte of any UTF-8 text.
const MARK: u8 = 0xff;

/// Choice of one of these documents, with or without blanks between its parts. A clone costs two reference counts.
///
/// ```
/// use trie_rules::{Documents, Regex, Rule};
///
/// let mut texts = Documents::builder();
/// texts.push(["[", "1", ",", "\"a b\"", "]"])?;
/// texts.push(["[", "]"])?;
/// let list = texts.build(Some(&Regex::new(" *")?))?.unwrap();
/// let takes = |text: &str| {
///     let end = text.bytes().try_fold(list.start(), |at, byte| list.step(&at, byte));
///     end.is_some_and(|end| list.is_end(&end))
/// };
/// assert!(takes("[1, \"a b\"]") && takes("[ ]") && !takes("[1 2]") && !takes("[1,\"ab\"]") && !takes("[] "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Documents {
    list: Arc<List>,
    blanks: Option<Automaton>,
}

/// Builder of a list of documents.
#[derive(Debug, Default)]
pub struct DocumentsBuilder {
    texts: Vec<Vec<u8>>,
}

/// State of a walk through a list of documents: the length of the matched prefix, and the run of blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DocumentsState {
    place: Place,
    blanks: u32,
}

impl fmt::Debug for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").field("count", &self.list.len()).finish_non_exhaustive()
    }
}

impl DocumentsBuilder {
    /// Adds a document, part by part: blanks may stand between any two parts.
    ///
    /// # Errors
    /// The budget of this thread is used up.
    pub fn push<P: AsRef<str>>(&mut self, parts: impl IntoIterator<Item = P>) -> Result<(), LimitExceeded> {
        let mut text = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 {
                text.push(MARK);
            }
            text.extend_from_slice(part.as_ref().as_bytes());
        }
        spend(1 + text.len() / 64)?;
        // Once here, once in the list, and what finds it there.
        hold(2 * text.len() + 100)?;
        self.texts.push(text);
        Ok(())
    }

    /// Returns the list; `None` without any document. `blanks` must match only JSON's blanks.
    ///
    /// # Errors
    /// More documents than a list can hold.
    pub fn build(self, blanks: Option<&Regex>) -> Result<Option<Documents>, RegularError> {
        let list = List::new(&self.texts, &[])?;
        let blanks = blanks.map(|blanks| blanks.automaton().clone());
        Ok(list.map(|list| Documents { list: Arc::new(list), blanks }))
    }
}

impl Documents {
    /// Returns a builder without any document.
    pub fn builder() -> DocumentsBuilder {
        DocumentsBuilder::default()
    }

    /// Returns the number of distinct documents.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns whether this expression matches only JSON's blanks, so that it can stand between parts.
    pub fn may_be_blanks(blanks: &Regex) -> bool {
        let automaton = blanks.automaton();
        let others = (0..=255u8).filter(|byte| !b" \t\r\n".contains(byte));
        let mut others = others.flat_map(|byte| (0..automaton.states() as u32).map(move |state| (state, byte)));
        others.all(|(state, byte)| automaton.step(&state, byte).is_none())
    }
}

impl Rule for Documents {
    type State = DocumentsState;

    fn is_finite(&self) -> bool {
        true
    }

    fn start(&self) -> DocumentsState {
        DocumentsState { place: self.list.start(), blanks: DEAD }
    }

    #[inline]
    fn step(&self, &DocumentsState { place, blanks }: &DocumentsState, byte: u8) -> Option<DocumentsState> {
        let at = |place| DocumentsState { place, blanks: DEAD };
        let is_inside = blanks != DEAD;
        // No document has the mark itself.
        let on = (!is_inside && byte != MARK).then(|| self.list.step(place, byte)).flatten();
        if let Some(on) = on {
            return Some(at(on));
        }
        let behind = self.list.step(place, MARK)?;
        let automaton = self.blanks.as_ref();
        let may_end = !is_inside || automaton.is_some_and(|automaton| automaton.is_end(&blanks));
        if let Some(on) = may_end.then(|| self.list.step(behind, byte)).flatten() {
            return Some(at(on));
        }
        let automaton = automaton?;
        let before = if is_inside { blanks } else { automaton.start() };
        automaton.step(&before, byte).map(|blanks| DocumentsState { place, blanks })
    }

    #[inline]
    fn is_end(&self, &DocumentsState { place, blanks }: &DocumentsState) -> bool {
        blanks == DEAD && self.list.is_end(place)
    }
}
