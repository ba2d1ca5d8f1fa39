//! Cache of built constraints, by content.

use super::build::{Built, Over, Spans};
use super::{Host, Spec, SpecError};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use trie_text::Vocab;

/// The specs used last, each over the vocabulary with which it was used.
///
/// Names and files are what the host said when a spec was first used: a host that changes them clears the cache.
/// Entries hold their vocabulary, so whoever owns the vocabulary should own the cache.
#[derive(Debug)]
pub struct SpecCache(Mutex<LruCache<(Spec, Key), Entry>>);

/// The address of a vocabulary, or the size where no more is known.
type Key = (usize, usize);

#[derive(Debug)]
struct Entry {
    built: Built,
    /// Its address is in the key: no other may lie there meanwhile.
    _vocab: Option<Arc<Vocab>>,
}

impl Default for SpecCache {
    fn default() -> Self {
        const USUAL: NonZeroUsize = NonZeroUsize::new(32).unwrap();
        Self::new(USUAL)
    }
}

impl SpecCache {
    /// A cache of so many.
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self(Mutex::new(LruCache::new(capacity)))
    }

    /// As [`Spec::build`], once.
    ///
    /// # Errors
    /// As there; errors are not kept.
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

    /// As [`Spec::constraint`], of what is built once: only texts are tokenised anew, which the host keeps.
    ///
    /// # Errors
    /// As there.
    pub fn constraint(&self, spec: &Spec, over: &Over<'_>, host: &dyn Host) -> Result<Spans, SpecError> {
        self.build(spec, over, host)?.spans(over, host)
    }

    /// Removes all entries from the cache.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
