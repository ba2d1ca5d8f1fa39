//! A walk that records the rule as an automaton: each step from a state by a byte is computed once.

use crate::rule::{Rule, Walker};
use crate::tokens::order::TokenTree;
use crate::tokens::slices::{ALL, MOST_CHARS, add, set};
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, tokens_from};
use indexmap::IndexSet;
use std::collections::VecDeque;
use std::fmt;
use std::mem::size_of;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::TokenId;
use trie_core::work::quiet;

/// A [`Walker`] for rules whose states are expensive to clone or to step, while a vocabulary reaches only few of them,
/// as in free text and strings. The states are numbered, and a step is a look-up by number and byte. The numbers are
/// kept between walks, up to a limit.
pub struct LazyWalk<R: Rule> {
    rule: Arc<R>,
    tokens: Arc<TokenBytes>,
    known: Mutex<LazyStates<R::State>>,
}

/// No way on, and a way that was not asked yet. Numbers of states are less.
const DEAD: u16 = u16::MAX;
const UNKNOWN: u16 = u16::MAX - 1;

/// States beyond which all are forgotten.
const MOST: usize = 8192;

/// States beyond which a walk goes on without remembering any: a rule may have ever new ones.
const MOST_IN_A_WALK: usize = 2 * MOST;
const _: () = assert!(MOST_IN_A_WALK < UNKNOWN as usize, "numbers of states are kept in so many bits");

/// Walks that later ones may copy from.
const COPIED: usize = 8;

struct LazyStates<S> {
    /// States that were reached, by their numbers.
    states: IndexSet<S>,
    #[allow(clippy::vec_box, reason = "a row is 512 bytes: a vector of them would be copied while it grows")]
    next: Vec<Box<[u16; 256]>>,
    most: usize,
    /// True if a step led to a state beyond the limit.
    full: bool,
    path: Path<u32>,
    /// Recent walks that found many tokens.
    walked: VecDeque<(u32, Box<[u32]>)>,
}

impl<R: Rule> fmt::Debug for LazyWalk<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyWalk").field("rule", &self.rule).finish_non_exhaustive()
    }
}

impl<R: Rule> LazyWalk<R> {
    /// Builds the walk over these tokens.
    pub fn new(rule: Arc<R>, tokens: Arc<TokenBytes>) -> Self {
        Self { rule, tokens, known: Mutex::default() }
    }
}

impl<S> Default for LazyStates<S> {
    fn default() -> Self {
        let (states, next) = (IndexSet::new(), Vec::new());
        Self { states, next, most: MOST, full: false, path: Path::default(), walked: VecDeque::new() }
    }
}

impl<S: Clone + Eq + std::hash::Hash> LazyStates<S> {
    /// Bytes of a state: itself with its hash and place, and its ways.
    const STATE: usize = size_of::<S>() + size_of::<[u16; 256]>() + 32;

    fn number(&mut self, state: S) -> u32 {
        let (number, is_new) = self.states.insert_full(state);
        if is_new {
            self.next.push(Box::new([UNKNOWN; 256]));
        }
        number as u32
    }

    fn step(&mut self, rule: &impl Rule<State = S>, at: u32, byte: u8) -> Option<u32> {
        let known = self.next[at as usize][usize::from(byte)];
        if known < UNKNOWN {
            return Some(u32::from(known));
        }
        if known == DEAD {
            return None;
        }
        let Some(state) = rule.step(&self.states[at as usize], byte) else {
            // What failed is asked again.
            if !rule.failing() {
                self.next[at as usize][usize::from(byte)] = DEAD;
            }
            return None;
        };
        if self.states.len() >= MOST_IN_A_WALK && !self.states.contains(&state) {
            self.full = true;
            return None;
        }
        let next = self.number(state);
        self.next[at as usize][usize::from(byte)] = next as u16;
        Some(next)
    }

    /// Sets the bits of some nodes that go on from a state, which has the number `from`.
    fn scan(
        &mut self,
        rule: &impl Rule<State = S>,
        (state, from): (&S, u32),
        (order, nodes): (&TokenTree, Range<usize>),
        words: &mut [u32],
    ) {
        let mut path = std::mem::take(&mut self.path);
        let step = |at: &u32, byte| self.step(rule, *at, byte);
        tokens_from(step, (order, nodes.clone()), &from, &mut path, |token, _| set(words, token));
        self.path = path;
        if std::mem::take(&mut self.full) {
            let step = |at: &S, byte| rule.step(at, byte);
            tokens_from(step, (order, nodes), state, &mut Path::default(), |token, _| set(words, token));
        }
    }

    /// Returns the walk whose state has the most steps in common with this one, if that is more than half.
    fn walked_like(&mut self, rule: &impl Rule<State = S>, from: u32) -> Option<usize> {
        let mut best = (128, None);
        for number in 0..self.walked.len() {
            let other = self.walked[number].0;
            let alike = (0..=255).filter(|&byte| self.step(rule, from, byte) == self.step(rule, other, byte)).count();
            if alike > best.0 {
                best = (alike, Some(number));
            }
        }
        best.1
    }

    fn nbytes(&self) -> usize {
        let walked: usize = self.walked.iter().map(|(_, words)| size_of_val(&**words)).sum();
        walked + self.states.len() * Self::STATE
    }
}

fn unset(words: &mut [u32], token: TokenId) {
    words[token.index() / 32] &= !(1 << (token.index() % 32));
}

impl<R: Rule> Walker<R::State> for LazyWalk<R> {
    fn tokens(&self, state: &R::State, words: &mut [u32]) {
        quiet(|| self.walk(state, words));
    }

    fn nbytes(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).nbytes()
    }

    fn limit(&self, bytes: usize) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.most = (bytes / size_of::<[u16; 256]>()).clamp(64, MOST);
    }

    fn forget(&self) {
        // Who walks just now needs it.
        if let Ok(mut known) = self.known.try_lock() {
            *known = LazyStates { most: known.most, ..LazyStates::default() };
        }
    }
}

impl<R: Rule> LazyWalk<R> {
    /// Sets the bits of the allowed tokens of these nodes only.
    pub(crate) fn walk_some<'o>(
        &self,
        state: &R::State,
        some: impl IntoIterator<Item = (&'o TokenTree, Range<usize>)>,
        words: &mut [u32],
    ) {
        quiet(|| {
            let known = &mut *self.lock_states();
            let from = known.number(state.clone());
            for nodes in some {
                known.scan(&*self.rule, (state, from), nodes, words);
            }
        });
    }

    /// Number of consecutive free characters that [`LazyWalk::tokens_in_text`] requires.
    pub const FREE_CHARS: u32 = MOST_CHARS as u32 + 1;

    /// Sets the bits of the tokens that are allowed at a state in free text, where any [`LazyWalk::FREE_CHARS`]
    /// characters other than controls, quotes and backslashes may come. Tokens of such characters are added without a
    /// walk.
    pub fn tokens_in_text(&self, state: &R::State, words: &mut [u32]) {
        for blank in [false, true] {
            let kinds = self.tokens.best_slice(blank, ALL);
            if kinds != 0 {
                add(words, self.tokens.slice_mask(blank, kinds, MOST_CHARS));
            }
            self.walk_some(state, self.tokens.remaining_tokens(blank, kinds), words);
        }
    }

    /// Locks the known states, which there is room to extend.
    fn lock_states(&self) -> MutexGuard<'_, LazyStates<R::State>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.states.len() >= known.most {
            let most = known.most;
            *known = LazyStates { most, ..LazyStates::default() };
        }
        known
    }

    fn walk(&self, state: &R::State, words: &mut [u32]) {
        let known = &mut *self.lock_states();
        let from = known.number(state.clone());
        let like = known.walked_like(&*self.rule, from);
        if let Some(number) = like {
            words.copy_from_slice(&known.walked[number].1);
        }
        let other = like.map(|number| known.walked[number].0);
        let (order, all) = self.tokens.all_tokens();
        let mut at = all.start;
        // What begins with a byte that leads to the same state as in the other walk was found there.
        while at < all.end {
            let node = order.nodes()[at];
            let (nodes, byte) = (at..node.subtree_end(), node.byte());
            at = nodes.end;
            if let Some(other) = other {
                if known.step(&*self.rule, from, byte) == known.step(&*self.rule, other, byte) {
                    continue;
                }
                order.ending(nodes.clone()).iter().for_each(|&token| unset(words, token));
            }
            known.scan(&*self.rule, (state, from), (order, nodes), words);
        }
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        // What was given up is copied by nobody.
        if count > words.len() && like.is_none() && !self.rule.failing() {
            known.walked.truncate(COPIED - 1);
            known.walked.push_front((from, (&*words).into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Regex;

    #[test]
    fn finds_what_a_walk_without_memory_finds() {
        let pieces: Vec<Vec<u8>> = (0..2000_u32).map(|n| format!("{n:b}a{n}").into_bytes()).collect();
        let tokens = pieces.iter().zip(0..).map(|(piece, n)| (&piece[..], TokenId::new(n).unwrap()));
        let tokens = Arc::new(TokenBytes::new(pieces.len(), tokens).unwrap());
        let rule = Arc::new(Regex::new("[01]*1a[0-9]*7[0-9]*").unwrap());
        let walker = LazyWalk::new(Arc::clone(&rule), Arc::clone(&tokens));
        walker.limit(1);
        for from in ["", "1", "10", "1a", "1a7"] {
            let state = from.bytes().fold(rule.start(), |state, byte| rule.step(&state, byte).unwrap());
            let (mut lazy, mut plain) = (vec![0; 63], vec![0; 63]);
            walker.tokens(&state, &mut lazy);
            tokens.walk(&state, |state, byte| rule.step(state, byte), |token| set(&mut plain, token));
            assert_eq!(lazy, plain, "after {from:?}");
        }
        assert!(walker.nbytes() > 0);
    }
}
