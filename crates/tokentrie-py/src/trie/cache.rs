//! A cache of payloads that lives as long as its owner wants.

use crate::convert::gil::Shared;
use crate::convert::results::{fields, result};
use crate::convert::words::{After, Mode};
use crate::errors::{Class, Result};
use crate::model::options::Options;
use crate::rows::sampler::Sampler;
use crate::rows::sampling::{Given, Keywords, Sampling};
use crate::spec::payloads::Cache;
use crate::vocab::VocabArg;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::num::NonZeroUsize;

/// A cache of tries: the same payload text, or the same content in other words, is built once.
///
/// The least recently used payload leaves first; samplers in use keep their tries. A Sampler that is made without one
/// uses the cache of its thread. One cache may be used from several threads: calls take turns.
///
/// Args:
///     capacity: payloads to hold, 1 to 2**20.
///
/// Raises:
///     OptionError: the capacity is out of range.
///
/// Example:
///     >>> cache = tokentrie.sets.TrieCache(capacity=32)
///     >>> payload = '{"descriptors": [{"path": "action", "leaves": [{"name": "STOP", "tokens": [2]}]}]}'
///     >>> samplers = [cache.sampler(10, payload) for _ in range(3)]
///     >>> (cache.cache_info().misses, cache.cache_info().hits)
///     (1, 2)
#[pyclass(frozen, module = "tokentrie.sets")]
pub(crate) struct TrieCache(Shared<trie_core::TrieCache>);

#[pymethods]
impl TrieCache {
    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        let stats = self.0.lock(py)?.stats();
        Ok(format!("<tokentrie.sets.TrieCache: {} of {} payloads>", stats.len, stats.capacity))
    }

    #[new]
    #[pyo3(signature = (capacity=128))]
    fn new(capacity: i64) -> Result<Self> {
        let payloads = usize::try_from(capacity).ok().and_then(NonZeroUsize::new);
        let payloads = payloads.filter(|payloads| payloads.get() <= Self::MOST);
        match payloads {
            Some(payloads) => Ok(Self(Shared::new(trie_core::TrieCache::new(payloads)))),
            None => Err(Class::Option.error(format!("capacity is {capacity}: it must be from 1 to {}", Self::MOST))),
        }
    }

    /// Makes a Sampler whose payload comes from this cache.
    ///
    /// Cost: from the cache one SHA-256 of the text and a few small allocations.
    ///
    /// Args:
    ///     vocab, constraint, mode, end_tokens, after: as for `Sampler`.
    ///     temperature, top_k, top_p, min_p, seed, sampling, settings: as for `Sampler`.
    ///
    /// Returns:
    ///     Sampler.
    ///
    /// Raises:
    ///     TokenTrieError: as for `Sampler`.
    ///
    /// Example:
    ///     >>> cache = tokentrie.sets.TrieCache()
    ///     >>> payload = {"descriptors": [{"path": "action", "leaves": [{"name": "STOP", "tokens": [2]}]}]}
    ///     >>> cache.sampler(10, payload).forced()
    ///     array([2], dtype=int32)
    #[pyo3(
        signature = (
            vocab, constraint, mode=Given(None), end_tokens=None, after=After(trie_core::After::Free),
            *placed, sampling=None, **settings
        ),
        text_signature = "($self, vocab, constraint, mode=\"greedy\", end_tokens=None, after=\"free\", \
            temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None, *, sampling=None, **settings)",
    )]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn sampler(
        &self,
        vocab: VocabArg<'_>,
        constraint: &Bound<'_, PyAny>,
        mode: Given<Mode>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        after: After,
        placed: &Bound<'_, PyTuple>,
        sampling: Option<&Bound<'_, Sampling>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> Result<Sampler> {
        let keywords = Keywords { call: "sampler", mode, placed: Some(placed), settings, sampling };
        let options = Options { keywords, end_tokens, after };
        Sampler::build(&vocab, constraint, &options, Cache::Session(&self.0))
    }

    /// Counts so far.
    ///
    /// Returns:
    ///     CacheInfo.
    ///
    /// Example:
    ///     >>> tokentrie.sets.TrieCache(capacity=8).cache_info().capacity
    ///     8
    fn cache_info<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let stats = self.0.lock(py)?.stats();
        Ok(result("CacheInfo", fields(py, &stats)?)?)
    }

    /// Forgets all payloads; the counts stay.
    ///
    /// Example:
    ///     >>> cache = tokentrie.sets.TrieCache()
    ///     >>> cache.clear()
    ///     >>> cache.cache_info().size
    ///     0
    fn clear(&self, py: Python<'_>) -> Result<()> {
        self.0.lock(py)?.clear();
        Ok(())
    }
}

impl TrieCache {
    /// More would be a mistake: the cache sets its table aside at once.
    const MOST: usize = 1 << 20;
}
