//! Hit rate of a rule's mask cache.

use crate::convert::pickled::pickled;
use pyo3::prelude::*;
use tokentrie::constraint::MaskStats;

/// Mask cache of a rule for a vocabulary.
///
/// Example:
///     >>> vocab = tokentrie.Model().vocab
///     >>> digits = tokentrie.Regex("[0-9]+")
///     >>> sampler = tokentrie.Sampler(vocab, digits)
///     >>> digits.stats(vocab).masks >= 1
///     True
#[pyclass(frozen, get_all, module = "tokentrie.rules")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RuleStats {
    /// int: masks kept, one for each state that was visited.
    masks: usize,
    /// int: bytes of them.
    bytes: usize,
    /// int: how often a mask was there already.
    hits: u64,
    /// int: how often one had to be worked out.
    misses: u64,
}

impl From<MaskStats> for RuleStats {
    fn from(stats: MaskStats) -> Self {
        let MaskStats { masks, bytes, hits, misses, .. } = stats;
        Self { masks, bytes, hits, misses }
    }
}

#[pymethods]
impl RuleStats {
    fn __repr__(&self) -> String {
        let Self { masks, bytes, hits, misses } = self;
        format!("RuleStats(masks={masks}, bytes={bytes}, hits={hits}, misses={misses})")
    }
}

pickled!(RuleStats { masks, bytes, hits, misses });
