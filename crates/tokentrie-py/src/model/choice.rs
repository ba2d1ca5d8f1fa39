//! What a choice gives back: the exact probability of every value.

use crate::convert::generic::generic;
use crate::convert::html::html;
use crate::convert::ids::shown;
use crate::convert::pickled::pickled;
use crate::errors::{Error, Result};
use numpy::PyArray1;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::borrow::Cow;
use trie_core::LeafId;
use trie_text::ValueSet;

/// What `Model.choose` returns. Values are numbered as they were given (those of a trie or payload: by leaf).
///
/// Example:
///     >>> choice = tokentrie.Model().choose("The sky is ", ["blue", "red", "green"])
///     >>> (choice.ranking.tolist()[0] == choice.index, round(float(choice.probabilities.sum()), 6))
///     (True, 1.0)
#[pyclass(frozen, module = "tokentrie")]
#[derive(Debug, Clone)]
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
    /// float | None: the least probability of a value that was asked for.
    #[pyo3(get)]
    threshold: Option<f64>,
    logprobs: Vec<f64>,
    logprobs_high: Option<Vec<f64>>,
    probabilities: Vec<f64>,
    ranking: Vec<i64>,
    names: ValueNames,
}

/// The names of the values, in their order; `None` where they have none.
#[derive(Debug, Clone)]
enum ValueNames {
    Of(ValueSet),
    Listed(Option<Vec<String>>),
}

/// What a choice took. Several prompts that were decoded together share one.
///
/// Example:
///     >>> stats = tokentrie.Model().choose("The sky is ", ["blue", "red"]).stats
///     >>> stats.forward_passes
///     2
#[pyclass(frozen, get_all, from_py_object, module = "tokentrie")]
#[derive(Debug, Clone, PartialEq)]
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
            threshold: None,
            logprobs: set.by_value(&choice.logprobs),
            logprobs_high: choice.logprobs_high.as_deref().map(|high| set.by_value(high)),
            probabilities: set.by_value(&choice.probabilities()),
            ranking: choice.ranking.iter().map(|&leaf| set.index_of(leaf) as i64).collect(),
            names: ValueNames::Of(set.clone()),
        }
    }

    pub(crate) fn with_threshold(self, threshold: Option<f64>) -> Self {
        Self { threshold, ..self }
    }

    /// The threshold that the probability is below. What cannot be compared is below it.
    fn below(&self) -> Option<f64> {
        self.threshold.filter(|threshold| !(self.probability() >= *threshold))
    }
}

generic!(Choice);

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

    /// float: the probability of the most probable value among the values.
    #[getter]
    fn probability(&self) -> f64 {
        self.probabilities.get(self.index).copied().unwrap_or(f64::NAN)
    }

    /// str | int | None: the name of the most probable value, or its number where the set has no names; None where
    /// its probability is below the `threshold`.
    #[getter]
    fn value(&self) -> Option<ValueKey> {
        let key = || self.name.clone().map_or(ValueKey::Index(self.index), ValueKey::Name);
        self.below().is_none().then(key)
    }

    /// str | None: why there is no value.
    #[getter]
    fn reason(&self) -> Option<String> {
        let below = self.below()?;
        Some(format!("the probability {:.4} is below the threshold {below}", self.probability()))
    }

    /// list[str] | None: the names of the values, in their order; None where the set has no names.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.names.list()
    }

    /// Values and their probabilities, the most probable first: those that were ranked.
    ///
    /// Returns:
    ///     list[tuple[str | int, float]]: the name of a value, or its number where the set has no names.
    ///
    /// Example:
    ///     >>> choice = tokentrie.Model().choose("The sky is ", ["blue", "red"])
    ///     >>> [name for name, probability in choice.items() if probability == choice.probability] == [choice.name]
    ///     True
    fn items(&self) -> Vec<(ValueKey, f64)> {
        let names = self.names.list();
        let key = |index: usize| match names.as_ref().and_then(|names| names.get(index)) {
            Some(name) => ValueKey::Name(name.clone()),
            None => ValueKey::Index(index),
        };
        self.ranking.iter().map(|&index| (key(index as usize), self.probabilities[index as usize])).collect()
    }

    /// The choice as a dict, for JSON.
    ///
    /// Returns:
    ///     dict: "name", "value", "reason", "index", "probability", "mass", "certain", "probabilities" (a dict by name,
    ///         or by number where the set has no names, the most probable first) and "stats".
    ///
    /// Example:
    ///     >>> sorted(tokentrie.Model().choose("The sky is ", ["blue", "red"]).to_dict()["probabilities"])
    ///     ['blue', 'red']
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (dict, probabilities) = (PyDict::new(py), PyDict::new(py));
        for (key, probability) in self.items() {
            probabilities.set_item(key, probability)?;
        }
        dict.set_item("name", &self.name)?;
        dict.set_item("value", self.value())?;
        dict.set_item("reason", self.reason())?;
        dict.set_item("index", self.index)?;
        dict.set_item("probability", self.probability())?;
        dict.set_item("mass", self.mass)?;
        dict.set_item("certain", self.certain)?;
        dict.set_item("probabilities", probabilities)?;
        dict.set_item("stats", self.stats.to_dict(py)?)?;
        Ok(dict)
    }

    fn __len__(&self) -> usize {
        self.probabilities.len()
    }

    /// The probability of a value, by its name or number.
    fn __getitem__(&self, value: &Bound<'_, PyAny>) -> Result<f64> {
        if let Ok(name) = value.cast::<PyString>() {
            let name = name.to_str()?;
            let found = self.names.position(name);
            let missing = || Error::Python(PyKeyError::new_err(format!("no value has the name {}", shown(value))));
            return found.map(|index| self.probabilities[index]).ok_or_else(missing);
        }
        let (asked, count) = (value.extract::<isize>()?, self.probabilities.len());
        let index = if asked < 0 { asked.checked_add_unsigned(count) } else { Some(asked) };
        let found = index.and_then(|index| self.probabilities.get(usize::try_from(index).ok()?));
        found.copied().ok_or_else(|| Error::Index(format!("value {asked} of {count}")))
    }

    /// A table with bars, for notebooks.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        html("choice", slf)
    }

    fn __repr__(&self) -> String {
        let name = self.name.as_ref().map_or_else(|| format!("value {}", self.index), |name| format!("{name:?}"));
        let (count, share) = (self.logprobs.len(), self.probability());
        let name = self.below().map_or(name.clone(), |below| format!("none, {name} is below {below},"));
        format!("<tokentrie.Choice: {name} of {count}, probability {share:.4}, mass {:.3e}>", self.mass)
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
    ///     >>> "rows" in tokentrie.Model().choose("The sky is ", ["blue", "red"]).stats.to_dict()
    ///     True
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.fields(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ChoiceStats({})", self.to_dict(py)?))
    }
}

/// A value as the key of a dict.
#[derive(Debug, IntoPyObject)]
pub(crate) enum ValueKey {
    Name(String),
    Index(usize),
}

impl ValueNames {
    fn position(&self, name: &str) -> Option<usize> {
        match self {
            Self::Listed(names) => names.as_ref()?.iter().position(|other| other == name),
            Self::Of(set) => {
                let mut leaves = (0..set.trie().len() as u32).map(LeafId::new);
                leaves
                    .find(|&leaf| set.trie().name(leaf).is_some_and(|other| other == name))
                    .map(|leaf| set.index_of(leaf))
            }
        }
    }

    fn list(&self) -> Option<Vec<String>> {
        match self {
            Self::Listed(names) => names.clone(),
            Self::Of(set) => {
                let trie = set.trie();
                let mut names = vec![String::new(); trie.len()];
                for leaf in (0..trie.len() as u32).map(LeafId::new) {
                    let index = set.index_of(leaf);
                    names.resize(names.len().max(index + 1), String::new());
                    names[index] = trie.name(leaf).map(Cow::into_owned)?;
                }
                Some(names)
            }
        }
    }
}

impl<'py> IntoPyObject<'py> for ValueNames {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        self.list().into_pyobject(py).map(Bound::into_any)
    }
}

impl<'py> FromPyObject<'_, 'py> for ValueNames {
    type Error = PyErr;

    fn extract(names: pyo3::Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        names.extract().map(Self::Listed)
    }
}

/// Scores that are NaN are equal to themselves here: they are those of values that were not scored.
impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        let bits = |scores: &[f64]| scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>();
        let scores = |choice: &Self| {
            let high = choice.logprobs_high.as_deref().map(bits);
            (bits(&choice.logprobs), high, bits(&choice.probabilities), bits(&[choice.mass]))
        };
        let rest =
            |choice: &Self| (choice.index, choice.certain, choice.threshold, choice.stats.clone(), choice.mass_bounds);
        self.name == other.name
            && rest(self) == rest(other)
            && scores(self) == scores(other)
            && self.ranking == other.ranking
            && self.names.list() == other.names.list()
    }
}

pickled!(Choice {
    name,
    index,
    mass,
    mass_bounds,
    stats,
    certain,
    threshold,
    logprobs,
    logprobs_high,
    probabilities,
    ranking,
    names
});
pickled!(ChoiceStats { forward_passes, tokens_decoded, rows, healed_bytes, seconds, n_threads });
