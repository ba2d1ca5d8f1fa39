//! Tokens of parts, place by place: what may come at several places is what may come at any of them, and most places
//! come again in other sets.

use super::parts::{Item, Parts, PartsState};
use crate::masks::Legal;
use crate::rule::{Rule, Walker};
use crate::token_bytes::TokenBytes;
use crate::walk::{Path, tokens_from};
use lru::LruCache;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of what is kept for all places.
const KEPT: usize = 64 << 20;

pub(super) struct PartsWalk {
    parts: Parts,
    tokens: Arc<TokenBytes>,
    kept: Mutex<Kept>,
}

struct Kept {
    by_place: LruCache<Item, Legal>,
    bytes: usize,
}

impl fmt::Debug for PartsWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsWalk").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl PartsWalk {
    pub(super) fn new(parts: Parts, tokens: Arc<TokenBytes>) -> Self {
        Self { parts, tokens, kept: Mutex::new(Kept { by_place: LruCache::unbounded(), bytes: 0 }) }
    }

    /// What may come where only this place is open.
    fn legal(&self, place: Item) -> Legal {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().by_place.get(&place) {
            return known.clone();
        }
        let mut words = vec![0u32; self.tokens.n_vocab().div_ceil(32)];
        let step = |state: &PartsState, byte| self.parts.step(state, byte);
        let alone = self.parts.alone(place);
        tokens_from(step, &self.tokens, &alone, &mut Path::default(), |token, _| {
            words[token.index() / 32] |= 1 << (token.index() % 32);
        });
        let found = Legal::of(&words);
        let mut kept = kept();
        kept.bytes += found.bytes();
        if let Some(before) = kept.by_place.put(place, found.clone()) {
            kept.bytes -= before.bytes();
        }
        while kept.bytes > KEPT {
            let Some((_, oldest)) = kept.by_place.pop_lru() else { break };
            kept.bytes -= oldest.bytes();
        }
        found
    }
}

impl Walker<PartsState> for PartsWalk {
    fn tokens(&self, state: &PartsState, words: &mut [u32]) {
        for place in self.parts.places(state) {
            self.legal(place).add_to(words);
        }
    }
}
