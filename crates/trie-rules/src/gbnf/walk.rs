//! Tokens of automata that call each other: whole slices of the vocabulary where one automaton takes all of their
//! texts, and a walk by all of them through the others.

use super::machine::{Machine, Places};
use crate::automaton::Table;
use crate::automaton::dense::Alphabet;
use crate::rule::Walker;
use crate::tokens::lazy_walk::LazyWalk;
use crate::tokens::slices::{MOST_CHARS, add};
use crate::tokens::token_bytes::TokenBytes;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct MachineWalk {
    machine: Arc<Machine>,
    /// Of each automaton.
    alphabets: Vec<Alphabet>,
    tokens: Arc<TokenBytes>,
    lazy: LazyWalk<Machine>,
}

impl MachineWalk {
    pub(super) fn new(machine: Arc<Machine>, tokens: Arc<TokenBytes>) -> Self {
        let alphabets = machine.tables().map(|table| Alphabet::new(&table.classes)).collect();
        let lazy = LazyWalk::new(Arc::clone(&machine), Arc::clone(&tokens));
        Self { machine, alphabets, tokens, lazy }
    }

    /// Kinds of characters all of whose texts one of the places takes, after a blank or without one.
    fn whole(&self, places: &Places, blank: bool) -> u8 {
        let of = |(body, table, state): (usize, &Table, u32)| {
            let dense = table.dense();
            let after = if blank { dense.step(state, b' ') } else { Some(state) };
            after.map_or(0, |after| dense.whole(&self.alphabets[body], after, false, |_| true).kinds)
        };
        let kinds = self.machine.in_tables(places).map(of).max_by_key(|kinds| kinds.count_ones());
        self.tokens.slices().best(blank, kinds.unwrap_or(0))
    }
}

impl Walker<Places> for MachineWalk {
    fn tokens(&self, places: &Places, words: &mut [u32]) {
        let kinds = [false, true].map(|blank| self.whole(places, blank));
        if kinds == [0, 0] {
            return self.lazy.tokens(places, words);
        }
        for (blank, kinds) in [false, true].into_iter().zip(kinds) {
            if kinds != 0 {
                add(words, self.tokens.slice_mask(blank, kinds, MOST_CHARS));
            }
            self.lazy.walk_some(places, self.tokens.others(blank, kinds), words);
        }
    }

    fn nbytes(&self) -> usize {
        self.lazy.nbytes() + self.alphabets.iter().map(Alphabet::nbytes).sum::<usize>()
    }

    fn limit(&self, bytes: usize) {
        self.lazy.limit(bytes);
    }
}
