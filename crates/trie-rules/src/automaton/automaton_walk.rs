//! Tokens of a finite automaton: whole slices of the vocabulary where all of their texts are legal, and a scan of the
//! others.

use crate::automaton::Automaton;
use crate::automaton::dense::{Alphabet, Dense};
use crate::automaton::table::Table;
use crate::rule::Walker;
use crate::tokens::slices::add;
use crate::tokens::token_bytes::TokenBytes;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct AutomatonWalk {
    automaton: Automaton,
    alphabet: Alphabet,
    tokens: Arc<TokenBytes>,
    /// Memory of walks that are over.
    spare: Mutex<Vec<Vec<u32>>>,
}

impl Table {
    pub(crate) fn dense(&self) -> Dense<'_> {
        Dense { classes: &self.classes, width: self.width, next: &self.next }
    }
}

impl AutomatonWalk {
    pub(crate) fn new(automaton: Automaton, tokens: Arc<TokenBytes>) -> Self {
        let alphabet = Alphabet::new(&automaton.0.classes);
        Self { automaton, alphabet, tokens, spare: Mutex::default() }
    }
}

impl Walker<u32> for AutomatonWalk {
    fn tokens(&self, &state: &u32, words: &mut [u32]) {
        let dense = self.automaton.0.dense();
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut path = spare().pop().unwrap_or_else(|| vec![0; self.tokens.longest() + 1]);
        for blank in [false, true] {
            let after = if blank { dense.step(state, b' ') } else { Some(state) };
            let Some(after) = after else { continue };
            let whole = dense.whole(&self.alphabet, after, true, |_| true);
            let kinds = self.tokens.slices().best(blank, whole.kinds);
            if kinds != 0 {
                add(words, self.tokens.slice_mask(blank, kinds, whole.chars));
            }
            for others in self.tokens.others(blank, kinds) {
                dense.scan(others, state, &mut path, words);
            }
        }
        spare().push(path);
    }

    fn nbytes(&self) -> usize {
        self.alphabet.nbytes()
    }
}
