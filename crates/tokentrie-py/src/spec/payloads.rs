//! Caches for the lookup of payloads.

use crate::convert::gil::{Shared, released};
use crate::errors::Result;
use crate::exit::attached_or_fail;
use crate::rule::problem::problem;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};
use tokentrie::constraint::SpecProblem;
use trie_formats::{Payload, PayloadError, TrieCache};

/// Cache for the lookup of payloads.
#[derive(Clone, Copy)]
pub(crate) enum Cache<'c> {
    /// The cache of the calling thread.
    Thread,
    /// Cache of a session.
    Session(&'c Shared<TrieCache>),
}

thread_local! {
    static THREAD_CACHE: Arc<Mutex<TrieCache>> = {
        let cache = Arc::default();
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other: &Weak<_>| other.strong_count() > 0);
        all.push(Arc::downgrade(&cache));
        cache
    };
}

/// Caches of all threads, for clearing.
static ALL: Mutex<Vec<Weak<Mutex<TrieCache>>>> = Mutex::new(Vec::new());

/// The cache of this thread; none where it is in use, by who forgets or by what a signal's handler came into.
fn own<T>(work: impl FnOnce(&mut TrieCache) -> T) -> T {
    THREAD_CACHE.with(|cache| match cache.try_lock() {
        Ok(mut cache) => work(&mut cache),
        // What a panic left of it is whole payloads.
        Err(TryLockError::Poisoned(cache)) => work(&mut cache.into_inner()),
        Err(TryLockError::WouldBlock) => work(&mut TrieCache::default()),
    })
}

/// Forgets the payloads of all threads but those that read one now.
pub(crate) fn forget() {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for cache in all.iter().filter_map(Weak::upgrade) {
        if let Ok(mut cache) = cache.try_lock() {
            cache.clear();
        }
    }
}

impl Cache<'_> {
    /// A payload, read or from the cache.
    ///
    /// # Errors
    /// What the session is locked for; inside, what is wrong with the payload.
    pub(crate) fn read(self, py: Python<'_>, text: &[u8], n_vocab: Option<usize>) -> Result<Read> {
        match self {
            Self::Thread => Ok(own(|cache| released(py, || cache.payload(text, n_vocab)))),
            Self::Session(cache) => {
                let mut cache = cache.lock(py)?;
                let cache = &mut *cache;
                Ok(released(py, || cache.payload(text, n_vocab)))
            }
        }
    }

    /// As [`Cache::read`], from work without the GIL.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn payload(self, text: &[u8], n_vocab: Option<usize>) -> std::result::Result<Arc<Payload>, SpecProblem> {
        let read = match self {
            Self::Thread => own(|cache| cache.payload(text, n_vocab)),
            Self::Session(_) => attached_or_fail(|py| self.read(py, text, n_vocab)).map_err(problem)?,
        };
        Ok(read?)
    }
}

type Read = std::result::Result<Arc<Payload>, PayloadError>;
