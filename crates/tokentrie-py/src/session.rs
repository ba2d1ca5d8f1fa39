//! A cache of payloads that lives as long as its owner wants.

use crate::errors::{Class, Result};
use crate::gil::locked;
use crate::options::{After, Mode, Options};
use crate::payload::Cache;
use crate::sampler::Sampler;
use crate::vocab::VocabArg;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use trie_core::{CacheStats, TrieCache};

/// Owns a cache of payloads: the same text, or the same content in other words, is built once.
///
/// The least recently used payload leaves first; samplers in use keep their tries. One session may be used from several
/// threads: calls take turns.
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Session(Mutex<TrieCache>);

/// What a cache did so far.
#[pyclass(frozen, eq, get_all, module = "tokentrie")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheInfo {
    /// int: found by the text.
    hits: u64,
    /// int: other text with the same content; the tries are shared.
    content_hits: u64,
    /// int: built anew.
    misses: u64,
    /// int: texts that had to leave.
    evictions: u64,
    /// int: texts held.
    size: usize,
    /// int: texts that can be held.
    capacity: usize,
}

impl From<CacheStats> for CacheInfo {
    fn from(stats: CacheStats) -> Self {
        let CacheStats { hits, content_hits, misses, evictions, len: size, capacity } = stats;
        Self { hits, content_hits, misses, evictions, size, capacity }
    }
}

#[pymethods]
impl CacheInfo {
    fn __repr__(&self) -> String {
        let Self { hits, content_hits, misses, evictions, size, capacity } = self;
        format!(
            "CacheInfo(hits={hits}, content_hits={content_hits}, misses={misses}, evictions={evictions}, size={size}, capacity={capacity})"
        )
    }
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (capacity=128))]
    fn new(capacity: i64) -> Result<Self> {
        let payloads = usize::try_from(capacity).ok().and_then(NonZeroUsize::new);
        let payloads = payloads.filter(|payloads| payloads.get() <= Self::MOST);
        match payloads {
            Some(payloads) => Ok(Self(Mutex::new(TrieCache::new(payloads)))),
            None => Err(Class::Option.error(format!("capacity is {capacity}: it must be in 1..={}", Self::MOST))),
        }
    }

    /// A sampler whose payload comes from this session's cache; arguments as for `Sampler`.
    ///
    /// From the cache this costs one SHA-256 of the text and a few small allocations.
    #[pyo3(
        signature = (
            vocab, constraint, mode=Mode(trie_core::Mode::Greedy), end_tokens=None, after=After(trie_core::After::Free),
            temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None
        ),
        text_signature = "($self, vocab, constraint, mode=\"greedy\", end_tokens=None, after=\"free\", temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None)",
    )]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn sampler(
        &self,
        vocab: VocabArg<'_>,
        constraint: &Bound<'_, PyAny>,
        mode: Mode,
        end_tokens: Option<&Bound<'_, PyAny>>,
        after: After,
        temperature: f32,
        top_k: i64,
        top_p: f32,
        min_p: f32,
        seed: Option<i64>,
    ) -> Result<Sampler> {
        let options = Options { mode, end_tokens, after, temperature, top_k, top_p, min_p, seed };
        Sampler::build(&vocab, constraint, &options, Cache::Session(&self.0))
    }

    /// Counts so far: CacheInfo(hits, content_hits, misses, evictions, size, capacity).
    fn cache_info(&self, py: Python<'_>) -> Result<CacheInfo> {
        Ok(locked(py, &self.0)?.stats().into())
    }

    /// Forgets all payloads; the counts stay.
    fn clear(&self, py: Python<'_>) -> Result<()> {
        locked(py, &self.0)?.clear();
        Ok(())
    }
}

impl Session {
    /// More would be a mistake: the cache sets its table aside at once.
    const MOST: usize = 1 << 20;
}
