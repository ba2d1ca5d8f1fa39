//! What a form worked out, kept for the next time.

use super::options::FormOptions;
use super::slot_rule::SlotRule;
use super::slot_set::{SlotSet, Written};
use lru::LruCache;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::TokenId;

/// What was worked out for a vocabulary and a part of the form: sets and rules by what stands before, and tokens of
/// free text.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) sets: Kept<(String, usize, Written), SlotSet>,
    /// By what stands before and is not written yet.
    pub(super) rules: Kept<(String, usize, Vec<u8>, FormOptions), SlotRule>,
    pub(super) texts: Kept<(String, usize), [TokenId]>,
}

/// The entries used last.
#[derive(Debug)]
pub(super) struct Kept<K: Hash + Eq, V: ?Sized>(Mutex<LruCache<K, Arc<V>>>);

impl<K: Hash + Eq, V: ?Sized> Default for Kept<K, V> {
    fn default() -> Self {
        const ENTRIES: NonZeroUsize = NonZeroUsize::new(128).unwrap();
        Self(Mutex::new(LruCache::new(ENTRIES)))
    }
}

impl<K: Hash + Eq, V: ?Sized> Kept<K, V> {
    /// What is kept, or what is made now. Nothing is locked meanwhile, because making may wait for other threads: two
    /// of them may make the same, once.
    pub(super) fn get_or_make<E>(&self, key: K, make: impl FnOnce(&K) -> Result<Arc<V>, E>) -> Result<Arc<V>, E> {
        if let Some(kept) = self.entries().get(&key) {
            return Ok(Arc::clone(kept));
        }
        let value = make(&key)?;
        self.entries().put(key, Arc::clone(&value));
        Ok(value)
    }

    /// Only whole entries are behind this lock, which no panic can leave half changed.
    fn entries(&self) -> MutexGuard<'_, LruCache<K, Arc<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
