//! How the next token is chosen, as a value, and the keywords that stand for one.

use crate::errors::{Class, Result, warn};
use crate::model::options::{Mode, unsigned};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::hash::{Hash, Hasher};
use trie_core::{DrawSettings, SamplerOptions};

/// An argument that was given, or was not: `None` is a value like any other.
#[derive(Clone, Copy)]
pub(crate) struct Given<T>(pub(crate) Option<T>);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Given<T> {
    type Error = T::Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self, T::Error> {
        Ok(Self(Some(obj.extract()?)))
    }
}

/// How the next token is chosen among the legal ones, as one value.
///
/// Give it as `sampling=` in place of the single keywords. It cannot change, compares and hashes by content, and
/// can be pickled.
///
/// Args:
///     mode: "greedy" or 0: the highest logit, ties to the lowest id. "sampled" or 1: a seeded draw, for which the
///         others count.
///     temperature: divides the logits, finite and at least 0; 0 takes the highest.
///     top_k: keep the k highest logits, 0 to 2**32 - 1; 0 keeps all.
///     top_p: keep the fewest tokens whose probabilities add up to this, 0 to 1; 1 keeps all.
///     min_p: keep tokens at least this times as probable as the best, 0 to 1; 0 keeps all.
///     seed: seed of the draw, 0 to 2**32 - 1; with None each sampler takes one from the operating system.
///
/// Truncation and draw are those of llama.cpp, in its order: top_k, top_p, min_p, temperature, draw.
///
/// Raises:
///     OptionError: a setting is out of range.
///
/// Example:
///     >>> sampling = tokentrie.Sampling("sampled", temperature=0.7, seed=1)
///     >>> sampling == tokentrie.Sampling(mode=1, temperature=0.7, seed=1)
///     True
///     >>> trie = tokentrie.Trie.from_sequences([[2], [5, 6]])
///     >>> tokentrie.Sampler(10, trie, sampling=sampling).seed
///     1
#[pyclass(frozen, eq, hash, module = "tokentrie")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampling {
    mode: trie_core::Mode,
    /// float: divides the logits; 0 takes the highest.
    #[pyo3(get)]
    temperature: f64,
    /// int: how many of the highest logits are kept; 0 keeps all.
    #[pyo3(get)]
    top_k: u32,
    /// float: the fewest tokens are kept whose probabilities add up to this; 1 keeps all.
    #[pyo3(get)]
    top_p: f64,
    /// float: tokens at least this times as probable as the best are kept; 0 keeps all.
    #[pyo3(get)]
    min_p: f64,
    /// int | None: seed of the draw; with None each sampler takes one from the operating system.
    #[pyo3(get)]
    seed: Option<u32>,
}

/// The keywords of a call, and the value that may stand in their place.
pub(crate) struct Keywords<'a, 'py> {
    pub(crate) mode: Given<Mode>,
    pub(crate) temperature: Given<f64>,
    pub(crate) top_k: Given<i64>,
    pub(crate) top_p: Given<f64>,
    pub(crate) min_p: Given<f64>,
    /// `None` says nothing: then each sampler takes its own.
    pub(crate) seed: Option<i64>,
    pub(crate) sampling: Option<&'a Bound<'py, Sampling>>,
}

impl Keywords<'_, '_> {
    /// # Errors
    /// `OptionError` for a setting out of range, or for keywords beside the value. Settings that have no effect are
    /// warned of.
    pub(crate) fn options(&self, py: Python<'_>) -> Result<SamplerOptions> {
        let &Self { mode, temperature, top_k, top_p, min_p, seed, sampling } = self;
        let Some(sampling) = sampling else {
            let seed = Given(seed.map(Some));
            return Sampling::DEFAULT.with(mode, temperature, top_k, top_p, min_p, seed)?.used(py);
        };
        let given = [
            ("mode", mode.0.is_some()),
            ("temperature", temperature.0.is_some()),
            ("top_k", top_k.0.is_some()),
            ("top_p", top_p.0.is_some()),
            ("min_p", min_p.0.is_some()),
            ("seed", seed.is_some()),
        ];
        let given: Vec<&str> = given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
        if given.is_empty() {
            return sampling.get().used(py);
        }
        let names = given.join(", ");
        Err(Class::Option.error(format!(
            "{names} and sampling are both given: leave one out, or give sampling.replace({}=...)",
            given.join("=..., ")
        )))
    }
}

impl Sampling {
    const DEFAULT: Self =
        Self { mode: trie_core::Mode::Greedy, temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: None };

    /// # Errors
    /// `OptionError` for a setting out of range.
    fn with(
        self,
        mode: Given<Mode>,
        temperature: Given<f64>,
        top_k: Given<i64>,
        top_p: Given<f64>,
        min_p: Given<f64>,
        seed: Given<Option<i64>>,
    ) -> Result<Self> {
        // Adding 0.0 makes -0.0 the 0.0 that it is equal to, so that both have one hash.
        let float = |given: Given<f64>, before| given.0.unwrap_or(before) + 0.0;
        let seed = seed.0.map(|seed| seed.map(|seed| unsigned("seed", seed)).transpose()).transpose()?;
        let sampling = Self {
            mode: mode.0.map_or(self.mode, |mode| mode.0),
            temperature: float(temperature, self.temperature),
            top_k: top_k.0.map_or(Ok(self.top_k), |top_k| unsigned("top_k", top_k))?,
            top_p: float(top_p, self.top_p),
            min_p: float(min_p, self.min_p),
            seed: seed.unwrap_or(self.seed),
        };
        sampling.core().draw.check()?;
        Ok(sampling)
    }

    /// The settings for use, with a warning of those that have no effect. A seed is none of them: it goes with a loop.
    fn used(&self, py: Python<'_>) -> Result<SamplerOptions> {
        if self.mode == trie_core::Mode::Greedy {
            let plain = Self::DEFAULT;
            // Greedy is what temperature 0 and top_k 1 are anyway.
            let changed = [
                ("temperature", ![0.0, plain.temperature].contains(&self.temperature)),
                ("top_k", self.top_k > 1),
                ("top_p", ![plain.top_p].contains(&self.top_p)),
                ("min_p", ![plain.min_p].contains(&self.min_p)),
            ];
            let names: Vec<&str> = changed.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect();
            if !names.is_empty() {
                let (names, verb) = (names.join(" and "), if names.len() == 1 { "has" } else { "have" });
                warn(py, &format!("{names} {verb} no effect with mode=\"greedy\": use mode=\"sampled\""))?;
            }
        }
        Ok(self.core())
    }

    fn core(&self) -> SamplerOptions {
        let &Self { mode, temperature, top_k, top_p, min_p, seed } = self;
        let [temperature, top_p, min_p] = [temperature as f32, top_p as f32, min_p as f32];
        SamplerOptions { mode, draw: DrawSettings { temperature, top_k, top_p, min_p }, seed }
    }
}

impl Hash for Sampling {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let &Self { mode, temperature, top_k, top_p, min_p, seed } = self;
        (mode == trie_core::Mode::Sampled, top_k, seed).hash(state);
        [temperature, top_p, min_p].map(f64::to_bits).hash(state);
    }
}

#[pymethods]
impl Sampling {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str) =
        ("mode", "temperature", "top_k", "top_p", "min_p", "seed");

    #[new]
    #[pyo3(
        signature = (
            mode=Given(None), temperature=Given(None), top_k=Given(None), top_p=Given(None), min_p=Given(None),
            seed=Given(None)
        ),
        text_signature = "(mode=\"greedy\", temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None)",
    )]
    fn new(
        mode: Given<Mode>,
        temperature: Given<f64>,
        top_k: Given<i64>,
        top_p: Given<f64>,
        min_p: Given<f64>,
        seed: Given<Option<i64>>,
    ) -> Result<Self> {
        Self::DEFAULT.with(mode, temperature, top_k, top_p, min_p, seed)
    }

    /// The same value with some settings changed.
    ///
    /// Args:
    ///     mode, temperature, top_k, top_p, min_p, seed: as for `Sampling`; what is not given stays.
    ///
    /// Returns:
    ///     A new Sampling.
    ///
    /// Raises:
    ///     OptionError: a setting is out of range.
    ///
    /// Example:
    ///     >>> tokentrie.Sampling("sampled", seed=1).replace(temperature=0.5)
    ///     Sampling(mode="sampled", temperature=0.5, top_k=0, top_p=1.0, min_p=0.0, seed=1)
    #[pyo3(signature = (
        *, mode=Given(None), temperature=Given(None), top_k=Given(None), top_p=Given(None), min_p=Given(None),
        seed=Given(None)
    ))]
    fn replace(
        &self,
        mode: Given<Mode>,
        temperature: Given<f64>,
        top_k: Given<i64>,
        top_p: Given<f64>,
        min_p: Given<f64>,
        seed: Given<Option<i64>>,
    ) -> Result<Self> {
        self.with(mode, temperature, top_k, top_p, min_p, seed)
    }

    /// str: "greedy" or "sampled".
    #[getter]
    fn mode(&self) -> &'static str {
        match self.mode {
            trie_core::Mode::Greedy => "greedy",
            trie_core::Mode::Sampled => "sampled",
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let &Self { temperature, top_k, top_p, min_p, seed, .. } = slf.get();
        let arguments = (slf.get().mode(), temperature, top_k, top_p, min_p, seed);
        Ok((slf.get_type().into_any(), arguments.into_pyobject(slf.py())?))
    }

    fn __repr__(&self) -> String {
        let &Self { temperature, top_k, top_p, min_p, seed, .. } = self;
        let (mode, seed) = (self.mode(), seed.map_or_else(|| "None".to_owned(), |seed| seed.to_string()));
        format!(
            "Sampling(mode={mode:?}, temperature={temperature:?}, top_k={top_k}, top_p={top_p:?}, min_p={min_p:?}, \
             seed={seed})"
        )
    }
}
