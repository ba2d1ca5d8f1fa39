//! What a form worked out, kept for the next time.

use super::slot_set::{SlotSet, Written};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::TokenId;

#[derive(Debug)]
pub(super) struct Kept<K: std::hash::Hash + Eq, V: ?Sized>(Mutex<LruCache<K, Arc<V>>>);

impl<K: std::hash::Hash + Eq, V: ?Sized> Kept<K, V> {
    pub(super) fn lock(&self) -> MutexGuard<'_, LruCache<K, Arc<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: std::hash::Hash + Eq, V: ?Sized> Default for Kept<K, V> {
    fn default() -> Self {
        const ENTRIES: NonZeroUsize = NonZeroUsize::new(128).unwrap();
        Self(Mutex::new(LruCache::new(ENTRIES)))
    }
}

/// What was worked out for a vocabulary and a part of the form: sets by what stands before, and tokens of free text.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) sets: Kept<(String, usize, Written), SlotSet>,
    pub(super) texts: Kept<(String, usize), [TokenId]>,
}
