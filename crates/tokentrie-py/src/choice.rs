//! What a choice gives back: the exact probability of every value.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
#[cfg(feature = "llama")]
use {std::borrow::Cow, trie_core::LeafId, trie_text::ValueSet};

/// What `Model.choose` returns. Values are numbered as they were given (those of a trie or payload: by leaf).
///
/// Example:
///     >>> choice = tokentrie.Model().choose("The sky is ", ["blue", "red", "green"])
///     >>> (choice.ranking.tolist()[0] == choice.index, round(float(choice.probabilities.sum()), 6))
///     (True, 1.0)
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Choice {
    /// str | None: the name of the most probable value; None where the set has no names.
    #[pyo3(get)]
    name: Option<String>,
    /// int: the number of the most probable value.
    #[pyo3(get)]
    index: usize,
    /// float: the probability that the output is any of the values; its lower bound where not all were scored.
    #[pyo3(get)]
    mass: f64,
    /// tuple[float, float]: lower and upper bound of `mass`; equal where all values were scored.
    #[pyo3(get)]
    mass_bounds: (f64, f64),
    /// ChoiceStats: what it took.
    #[pyo3(get)]
    stats: ChoiceStats,
    /// bool: whether no value can be more probable than the first. Where a budget ended the search, it may be
    /// False.
    #[pyo3(get)]
    certain: bool,
    logprobs: Vec<f64>,
    logprobs_high: Option<Vec<f64>>,
    probabilities: Vec<f64>,
    ranking: Vec<i64>,
}

/// What a choice took. Several prompts that were decoded together share one.
///
/// Example:
///     >>> stats = tokentrie.Model().choose("The sky is ", ["blue", "red"]).stats
///     >>> stats.forward_passes
///     2
#[pyclass(frozen, get_all, module = "tokentrie")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChoiceStats {
    /// int: calls of llama.cpp's decode, the prompt included.
    forward_passes: u64,
    /// int: tokens in them.
    tokens_decoded: usize,
    /// int: rows of logits that were read.
    rows: usize,
    /// int: bytes at the end of the prompt that were taken back, because the values begin with them.
    healed_bytes: usize,
    /// float: seconds in all.
    seconds: f64,
    /// int: threads of the last forward pass.
    n_threads: u32,
}

#[cfg(feature = "llama")]
impl Choice {
    pub(crate) fn new(choice: trie_core::Choice, set: &ValueSet) -> Self {
        let best = choice.ranking.first().copied().unwrap_or(LeafId::new(0));
        let trie_core::ChooseStats { forward_passes, tokens_decoded, rows, healed_bytes, seconds, n_threads, .. } =
            choice.stats;
        Self {
            name: set.trie().name(best).map(Cow::into_owned),
            index: set.index_of(best),
            mass: choice.mass_low,
            mass_bounds: (choice.mass_low, choice.mass_high),
            stats: ChoiceStats { forward_passes, tokens_decoded, rows, healed_bytes, seconds, n_threads },
            certain: choice.is_certain,
            logprobs: set.by_value(&choice.logprobs),
            logprobs_high: choice.logprobs_high.as_deref().map(|high| set.by_value(high)),
            probabilities: set.by_value(&choice.probabilities()),
            ranking: choice.ranking.iter().map(|&leaf| set.index_of(leaf) as i64).collect(),
        }
    }
}

#[pymethods]
impl Choice {
    /// numpy.ndarray: float64 [values], the log of each value's probability under the whole vocabulary; NaN for a
    /// value that was not scored (see `top`). With `tokenization="all"` or `open_end=True` that of all its
    /// sequences together, and a lower bound unless all were scored.
    #[getter]
    fn logprobs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.logprobs)
    }

    /// numpy.ndarray: float64 [values], upper bounds; the same as `logprobs` where all were scored. They hold as
    /// far as double precision adds up.
    #[getter]
    fn logprobs_high<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.logprobs_high.as_ref().unwrap_or(&self.logprobs))
    }

    /// numpy.ndarray: float64 [values], the same among the values: they add up to 1. Where not all were scored,
    /// lower bounds.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.probabilities)
    }

    /// numpy.ndarray: int64 [k], numbers of the values, the most probable first: all of them, or `top`.
    #[getter]
    fn ranking<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_slice(py, &self.ranking)
    }

    fn __repr__(&self) -> String {
        let name = self.name.as_ref().map_or_else(|| format!("value {}", self.index), |name| format!("{name:?}"));
        let share = self.probabilities.get(self.index).copied().unwrap_or(f64::NAN);
        format!("<tokentrie.Choice: {name} of {}, probability {share:.4}, mass {:.3e}>", self.logprobs.len(), self.mass)
    }
}

#[pymethods]
impl ChoiceStats {
    /// The same as a dict, for JSON.
    ///
    /// Returns:
    ///     dict[str, int | float].
    ///
    /// Example:
    ///     >>> "rows" in tokentrie.Model().choose("The sky is ", ["blue", "red"]).stats.as_dict()
    ///     True
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("forward_passes", self.forward_passes)?;
        dict.set_item("tokens_decoded", self.tokens_decoded)?;
        dict.set_item("rows", self.rows)?;
        dict.set_item("healed_bytes", self.healed_bytes)?;
        dict.set_item("seconds", self.seconds)?;
        dict.set_item("n_threads", self.n_threads)?;
        Ok(dict)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ChoiceStats({})", self.as_dict(py)?))
    }
}
