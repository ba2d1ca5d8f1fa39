//! What was asked of a text: kept, so that asking again costs a look-up. Bounded in bytes.

use crate::error::GuidedError;
use crate::path::Key;
use lru::LruCache;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::work::Over;
use trie_core::{Ending, Problem, TokenId};
use trie_rules::{DeadEnd, Legal, MaskLimits, MaskStats};

/// What may come after a text.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) legal: Legal,
    pub(crate) ending: Ending,
    /// Why nothing may come, where something went wrong.
    pub(crate) problem: Option<Problem>,
}

/// About what a problem takes.
const PROBLEM: usize = 512;

impl Known {
    pub(crate) fn nothing(reason: String) -> Self {
        let problem = Some(Problem::new(GuidedError::Failed { reason }));
        Self { legal: Legal::Ids(Arc::default()), ending: Ending::No, problem }
    }

    /// Where the work was over before there was an answer.
    pub(crate) fn given_up(over: Over) -> Self {
        Self { legal: Legal::Ids(Arc::default()), ending: Ending::No, problem: Some(Problem::new(over)) }
    }

    /// Where a text would go on with these bytes, and no token does.
    pub(crate) fn dead_end(bytes: Vec<u8>) -> Self {
        let problem = Some(Problem::new(DeadEnd { bytes }));
        Self { legal: Legal::Ids(Arc::default()), ending: Ending::No, problem }
    }

    fn bytes(&self) -> usize {
        // The key, and what a look-up table adds.
        self.legal.nbytes() + if self.problem.is_some() { PROBLEM } else { 0 } + size_of::<(Key, Self)>() + 64
    }
}

/// A key is spread already.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, part: u64) {
        self.0 = (self.0 ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

pub(crate) struct Kept {
    kept: Mutex<Part>,
    limits: MaskLimits,
}

struct Part {
    by_text: LruCache<Key, Known, BuildHasherDefault<Spread>>,
    stats: MaskStats,
}

impl Kept {
    pub(crate) fn new(limits: MaskLimits) -> Self {
        let by_text = LruCache::unbounded_with_hasher(BuildHasherDefault::default());
        Self { kept: Mutex::new(Part { by_text, stats: MaskStats::default() }), limits }
    }

    fn part(&self) -> MutexGuard<'_, Part> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of a text; it counts as a use.
    pub(crate) fn get(&self, key: Key) -> Option<Known> {
        let part = &mut *self.part();
        let found = part.by_text.get(&key).cloned();
        *if found.is_some() { &mut part.stats.hits } else { &mut part.stats.misses } += 1;
        found
    }

    /// Whether a token may come after a text, if that is kept.
    pub(crate) fn allows(&self, key: Key, token: TokenId) -> Option<bool> {
        self.part().by_text.peek(&key).map(|known| known.legal.contains(token))
    }

    /// Why nothing may come after a text, if that is kept.
    pub(crate) fn problem(&self, key: Key) -> Option<Problem> {
        self.part().by_text.peek(&key).and_then(|known| known.problem.clone())
    }

    pub(crate) fn put(&self, key: Key, known: Known) {
        let part = &mut *self.part();
        part.stats.bytes += known.bytes();
        if let Some(before) = part.by_text.put(key, known) {
            part.stats.bytes -= before.bytes();
        }
        while part.stats.bytes > self.limits.bytes && part.by_text.len() > 1 {
            let Some((_, oldest)) = part.by_text.pop_lru() else { break };
            part.stats.bytes -= oldest.bytes();
        }
    }

    pub(crate) fn stats(&self) -> MaskStats {
        let part = self.part();
        let mut stats = part.stats;
        stats.masks = part.by_text.len();
        stats
    }
}
