//! Token masks of parts, place by place: the mask of a set of places is the union of theirs, and most places occur in
//! many sets.

use super::choice::ChoiceState;
use super::list::Place;
use super::parts::{Item, Parts, PartsState, Source};
use crate::rule::{Rule, Walker};
use crate::tokens::masks::Legal;
use crate::tokens::slices::set;
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, tokens_from};
use lru::LruCache;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct PartsWalk {
    parts: Parts,
    tokens: Arc<TokenBytes>,
    /// The automata's own ways to their tokens, part by part.
    walkers: Vec<Option<Arc<dyn Walker<u32>>>>,
    kept: Mutex<PlaceCache>,
}

struct PlaceCache {
    by_place: LruCache<Item, Legal>,
    bytes: usize,
    limit: usize,
}

impl PlaceCache {
    /// Gives up what was not used for longest.
    fn shrink(&mut self) {
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.by_place.pop_lru() else { break };
            self.bytes -= oldest.nbytes();
        }
    }
}

impl fmt::Debug for PartsWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsWalk").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl PartsWalk {
    pub(super) fn new(parts: Parts, tokens: Arc<TokenBytes>) -> Self {
        let walkers =
            parts.automata().map(|automaton| automaton.and_then(|automaton| automaton.walker(&tokens))).collect();
        let kept = PlaceCache { by_place: LruCache::unbounded(), bytes: 0, limit: usize::MAX };
        Self { parts, tokens, walkers, kept: Mutex::new(kept) }
    }

    fn cache(&self) -> MutexGuard<'_, PlaceCache> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached_bytes(&self) -> usize {
        self.cache().bytes + self.walkers.iter().flatten().map(|walker| walker.nbytes()).sum::<usize>()
    }

    fn hold(&self, bytes: usize) {
        let mut kept = self.cache();
        kept.limit = bytes;
        kept.shrink();
    }

    fn let_go(&self) {
        if let Ok(mut kept) = self.kept.try_lock() {
            (kept.by_place, kept.bytes) = (LruCache::unbounded(), 0);
        }
    }

    /// Returns the tokens allowed while only this place is open.
    fn legal(&self, place: Item) -> Legal {
        if let Some(known) = self.cache().by_place.get(&place) {
            return known.clone();
        }
        let found = self.walk_place(place);
        let mut kept = self.cache();
        kept.bytes += found.nbytes();
        if let Some(before) = kept.by_place.put(place, found.clone()) {
            kept.bytes -= before.nbytes();
        }
        kept.shrink();
        found
    }

    fn walk_place(&self, place: Item) -> Legal {
        let mut words = vec![0u32; self.tokens.n_vocab().div_ceil(32)];
        match self.parts.last(place) {
            // Nothing follows: no sets are needed.
            Some(Source::Automaton(automaton)) => {
                if let Some(walker) = &self.walkers[place.part as usize] {
                    walker.tokens(&place.at.node, &mut words);
                } else {
                    let step = |state: &u32, byte| automaton.step(state, byte);
                    let each = |token, _: &u32| set(&mut words, token);
                    tokens_from(step, self.tokens.all_tokens(), &place.at.node, &mut Path::default(), each);
                }
            }
            Some(Source::List(list)) => {
                let step = |at: &Place, byte| list.step(*at, byte);
                let each = |token, _: &Place| set(&mut words, token);
                tokens_from(step, self.tokens.all_tokens(), &place.at, &mut Path::default(), each);
            }
            None => {
                let step = |state: &PartsState, byte| self.parts.step(state, byte);
                let each = |token, _: &PartsState| set(&mut words, token);
                tokens_from(step, self.tokens.all_tokens(), &self.parts.state_at(place), &mut Path::default(), each);
            }
        }
        Legal::from_mask(&words)
    }
}

impl Walker<PartsState> for PartsWalk {
    fn nbytes(&self) -> usize {
        self.cached_bytes()
    }

    fn limit(&self, bytes: usize) {
        self.hold(bytes);
    }

    fn forget(&self) {
        self.let_go();
    }

    fn tokens(&self, state: &PartsState, words: &mut [u32]) {
        for place in self.parts.places(state) {
            self.legal(place).add_to(words);
        }
    }
}

/// The automaton is the first part, the list the second.
impl Walker<ChoiceState> for PartsWalk {
    fn nbytes(&self) -> usize {
        self.cached_bytes()
    }

    fn limit(&self, bytes: usize) {
        self.hold(bytes);
    }

    fn forget(&self) {
        self.let_go();
    }

    fn tokens(&self, state: &ChoiceState, words: &mut [u32]) {
        if let Some(node) = state.automaton() {
            self.legal(Item { part: 0, at: Place { node, depth: 0 } }).add_to(words);
        }
        if let Some(at) = state.list() {
            self.legal(Item { part: 1, at }).add_to(words);
        }
    }
}
