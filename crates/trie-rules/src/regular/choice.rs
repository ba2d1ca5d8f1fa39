//! Choice between the texts of an automaton and the texts of a list.

use super::RegularError;
use super::list::{List, Place};
use super::parts::{Factor, Parts};
use super::parts_walk::PartsWalk;
use crate::automaton::Automaton;
use crate::automaton::table::DEAD;
use crate::rule::{Rule, Walker};
use crate::texts::{TextsError, texts};
use crate::tokens::token_bytes::TokenBytes;
use std::fmt;
use std::sync::Arc;

/// Union of an automaton and a list of texts. Its state is `Copy`: a state of each. A clone costs two reference counts.
#[derive(Clone, PartialEq, Eq)]
pub struct Choice {
    pub(super) automaton: Option<Automaton>,
    pub(super) list: Arc<List>,
}

/// State of a [`Choice`]: the state of the automaton and the place in the list, either of which may be dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChoiceState {
    automaton: u32,
    list: Place,
}

impl ChoiceState {
    pub(super) fn automaton(self) -> Option<u32> {
        (self.automaton != DEAD).then_some(self.automaton)
    }

    pub(super) fn list(self) -> Option<Place> {
        (self.list.node != DEAD).then_some(self.list)
    }
}

const NOWHERE: Place = Place { node: DEAD, depth: 0 };

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Choice");
        if let Some(automaton) = &self.automaton {
            shown.field("automaton", automaton);
        }
        shown.field("texts", &self.list.len()).finish()
    }
}

impl Choice {
    /// Builds a list from texts and other lists; `None` without any.
    pub(super) fn list<T: AsRef<[u8]>>(texts: &[T], lists: &[Arc<List>]) -> Result<Option<Self>, RegularError> {
        Ok(List::new(texts, lists)?.map(|list| Self { automaton: None, list: Arc::new(list) }))
    }

    /// Returns the number of distinct texts in the list.
    pub fn texts(&self) -> usize {
        self.list.len()
    }

    /// All texts, shorter ones first. A list alone is not walked.
    pub(super) fn list_texts(&self, limit: usize) -> Result<Vec<Vec<u8>>, TextsError> {
        let listed = self.list.len();
        if listed > limit {
            // Of the automaton it must still be known whether it ends.
            let endless = self.automaton.as_ref().map(|automaton| texts(automaton, limit));
            return Err(endless.and_then(Result::err).unwrap_or(TextsError::TooMany { limit }));
        }
        let mut all: Vec<Vec<u8>> = self.list.texts().map(|(text, _)| text.to_vec()).collect();
        if let Some(automaton) = &self.automaton {
            all.extend(texts(automaton, limit)?);
        }
        all.sort_unstable_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        all.dedup();
        if all.len() > limit { Err(TextsError::TooMany { limit }) } else { Ok(all) }
    }

    /// Returns the number of bytes held for the list.
    pub fn nbytes(&self) -> usize {
        self.list.nbytes()
    }

    /// Returns the index of the listed text that ends here: the first one among the given texts.
    pub fn entry(&self, state: &ChoiceState) -> Option<usize> {
        self.list.entry(state.list()?)
    }

    /// Returns the index of a text: the first one among the given texts.
    pub fn entry_of(&self, text: &[u8]) -> Option<usize> {
        let end = text.iter().try_fold(self.list.start(), |at, &byte| self.list.step(at, byte))?;
        self.list.entry(end)
    }
}

impl Rule for Choice {
    type State = ChoiceState;

    fn is_finite(&self) -> bool {
        true
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<ChoiceState>>> {
        // A list alone has few tokens at most places: they need not be kept twice.
        self.automaton.as_ref()?;
        let parts = Parts::one_of(&[Factor::Choice(self.clone())]);
        Some(Arc::new(PartsWalk::new(parts, Arc::clone(tokens))))
    }

    fn start(&self) -> ChoiceState {
        ChoiceState { automaton: self.automaton.as_ref().map_or(DEAD, Rule::start), list: self.list.start() }
    }

    #[inline]
    fn step(&self, state: &ChoiceState, byte: u8) -> Option<ChoiceState> {
        let automaton = self.automaton.as_ref().zip(state.automaton());
        let automaton = automaton.and_then(|(automaton, state)| automaton.step(&state, byte));
        let list = state.list().and_then(|at| self.list.step(at, byte));
        let goes_on = automaton.is_some() || list.is_some();
        goes_on.then(|| ChoiceState { automaton: automaton.unwrap_or(DEAD), list: list.unwrap_or(NOWHERE) })
    }

    #[inline]
    fn is_end(&self, state: &ChoiceState) -> bool {
        let automaton = self.automaton.as_ref().zip(state.automaton());
        automaton.is_some_and(|(automaton, state)| automaton.is_end(&state))
            || state.list().is_some_and(|at| self.list.is_end(at))
    }
}
