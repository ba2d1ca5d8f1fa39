//! Where payloads are looked up.

use crate::convert::gil::{Shared, released};
use crate::errors::Result;
use crate::exit::attached_or_fail;
use crate::rule::problem::problem;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;
use tokentrie::spec::SpecProblem;
use trie_core::{Payload, PayloadError, TrieCache};

/// Where payloads are looked up.
#[derive(Clone, Copy)]
pub(crate) enum Cache<'c> {
    /// The cache of the calling thread.
    Thread,
    /// A session's own.
    Session(&'c Shared<TrieCache>),
}

thread_local! {
    static THREAD_CACHE: RefCell<TrieCache> = RefCell::default();
}

impl Cache<'_> {
    /// A payload, read or from the cache.
    ///
    /// # Errors
    /// What the session is locked for; inside, what is wrong with the payload.
    pub(crate) fn read(self, py: Python<'_>, text: &[u8], n_vocab: Option<usize>) -> Result<Read> {
        match self {
            Self::Thread => Ok(THREAD_CACHE.with_borrow_mut(|cache| released(py, || cache.payload(text, n_vocab)))),
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
            Self::Thread => THREAD_CACHE.with_borrow_mut(|cache| cache.payload(text, n_vocab)),
            Self::Session(_) => attached_or_fail(|py| self.read(py, text, n_vocab)).map_err(problem)?,
        };
        Ok(read?)
    }
}

type Read = std::result::Result<Arc<Payload>, PayloadError>;
