//! Cache of built constraints, by content.

use super::build::{Built, Over, Spans};
use super::{Host, Spec, SpecError};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use trie_text::Vocab;

/// The specs used last, each over the vocabulary with which it was used.
///
/// Names and files are resolved when a spec is first used: a host that changes them must clear the cache. Entries keep
/// their vocabulary alive, so the owner of the vocabulary should own the cache.
#[derive(Debug)]
pub struct SpecCache(Mutex<LruCache<(Spec, Key), Entry>>);

/// The address of a vocabulary, or the size where no more is known.
type Key = (usize, usize);

#[derive(Debug)]
struct Entry {
    built: Built,
    /// Kept alive because its address is in the key: no other vocabulary may get that address.
    _vocab: Option<Arc<Vocab>>,
}

impl Default for SpecCache {
    fn default() -> Self {
        const USUAL: NonZeroUsize = NonZeroUsize::new(32).unwrap();
        Self::new(USUAL)
    }
}

impl SpecCache {
    /// Returns a cache for this number of specs.
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self(Mutex::new(LruCache::new(capacity)))
    }

    /// Builds a spec as [`Spec::build`] does, or returns it from the cache.
    ///
    /// # Errors
    /// As [`Spec::build`]; errors are not kept.
    pub fn build(&self, spec: &Spec, over: &Over<'_>, host: &dyn Host) -> Result<Built, SpecError> {
        let key = (spec.clone(), (over.vocab.map_or(0, |vocab| Arc::as_ptr(vocab) as usize), over.n_vocab));
        // Only whole entries are behind this lock, and nothing is locked while a host is asked.
        if let Some(entry) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(entry.built.clone());
        }
        let built = spec.build(over, host)?;
        let entry = Entry { built: built.clone(), _vocab: over.vocab.cloned() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, entry);
        Ok(built)
    }

    /// Returns constraints as [`Spec::constraint`] does, from the cache. Only texts are tokenised again, unless the
    /// host caches them.
    ///
    /// # Errors
    /// As [`Spec::constraint`].
    pub fn constraint(&self, spec: &Spec, over: &Over<'_>, host: &dyn Host) -> Result<Spans, SpecError> {
        self.build(spec, over, host)?.spans(over, host)
    }

    /// Removes all entries from the cache.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
