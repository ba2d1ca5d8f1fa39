//! Sampling options as a value, and the keywords that replace one.

use crate::convert::words::{Mode, unsigned};
use crate::errors::{Class, Error, Result, warn};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::hash::{Hash, Hasher};
use trie_core::{DrawSetting, DrawSettings, SamplerOptions};

/// An argument that was given, or was not: `None` is a value like any other.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given<T>(pub(crate) Option<T>);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Given<T> {
    type Error = T::Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self, T::Error> {
        Ok(Self(Some(obj.extract()?)))
    }
}

/// Options for the choice of the next token among the legal ones, as one value.
///
/// Give it as `sampling=` in place of the single keywords. It cannot change, compares and hashes by content, and
/// can be pickled.
///
/// Args:
///     mode: "greedy" or 0: the highest logit, ties to the lowest id. "sampled" or 1: a seeded draw, for which the
///         others count. Where it is not given, it is "sampled" with any setting of the draw but seed and penalties,
///         else "greedy".
///     temperature: divides the logits, finite and at least 0; 0 takes the highest.
///     top_k: keep the k highest logits, 0 to 2**32 - 1; 0 keeps all.
///     top_p: keep the fewest tokens whose probabilities add up to this, 0 to 1; 1 keeps all.
///     min_p: keep tokens at least this times as probable as the best, 0 to 1; 0 keeps all.
///     seed: seed of the draw, 0 to 2**32 - 1; with None each sampler takes one from the operating system.
///     typical_p: keep the tokens whose surprise, -log p, is nearest to the mean one, until their probabilities add
///         up to this, 0 to 1; 1 keeps all.
///     repeat_penalty: divides the logits above 0 of tokens that were written, and multiplies the others; finite and
///         more than 0; 1 changes nothing.
///     presence_penalty: subtracted from the logits of tokens that were written; finite; less than 0 prefers them.
///     frequency_penalty: subtracted from the logit of a token once for each time it was written; finite.
///     penalty_last_n: how many of the last tokens that were written count for penalties, -1 to 2**31 - 1; -1 are all,
///         0 none.
///
/// Penalties, truncation and draw are those of llama.cpp, in its order, over the legal tokens alone: penalties, top_k,
/// typical_p, top_p, min_p, temperature, draw. Penalties change a greedy choice too. They count what was written after
/// the prompt, forced tokens and literals of a form included: a prompt that lists the legal values makes none of them
/// less probable.
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
    /// As they were given, in the order of `DrawSettings::ALL`.
    numbers: [f64; COUNT],
    draw: DrawSettings,
    seed: Option<u32>,
}

const COUNT: usize = DrawSettings::ALL.len();

/// Name, default, range, and what it does.
type Listed<'py> = (&'static str, Bound<'py, PyAny>, &'static str, &'static str);

/// Position of the seed among the settings of a call: later additions come after it.
const SEED_AT: usize = 4;
const SEED: &str = "seed";

/// Sampling options of a call: keywords, or the value that may replace them.
pub(crate) struct Keywords<'a, 'py> {
    /// Name of the call, for errors.
    pub(crate) call: &'static str,
    pub(crate) mode: Given<Mode>,
    /// Settings by position, where a call takes them so.
    pub(crate) placed: Option<&'a Bound<'py, PyTuple>>,
    pub(crate) settings: Option<&'a Bound<'py, PyDict>>,
    pub(crate) sampling: Option<&'a Bound<'py, Sampling>>,
}

/// Settings that were given.
#[derive(Default)]
struct Changes {
    mode: Option<trie_core::Mode>,
    numbers: [Option<f64>; COUNT],
    seed: Given<Option<u32>>,
}

/// The names of settings, as they may stand by position.
fn names() -> impl Iterator<Item = &'static str> {
    let (first, later) = DrawSettings::ALL.split_at(SEED_AT);
    let name = |setting: &DrawSetting| setting.name;
    first.iter().map(name).chain([SEED]).chain(later.iter().map(name))
}

impl Changes {
    /// # Errors
    /// `TypeError` for names that there are not, too many values, or values of another type; `OptionError` for negative
    /// numbers and for those that are too large.
    fn read(
        call: &str,
        mode: Given<Mode>,
        placed: Option<&Bound<'_, PyTuple>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self> {
        let wrong = |message: String| Error::from(PyTypeError::new_err(format!("{call}() {message}")));
        let mut changes = Self { mode: mode.0.map(|mode| mode.0), ..Self::default() };
        for (at, value) in placed.into_iter().flatten().enumerate() {
            let name = names().nth(at);
            let name = name.ok_or_else(|| wrong(format!("got too many values: no setting comes after {value}")))?;
            changes.put(name, &value)?;
        }
        for (name, value) in settings.into_iter().flatten() {
            let name = name.cast::<PyString>().map_err(PyErr::from)?.to_str()?;
            let known = names().find(|known| *known == name);
            let known = known.ok_or_else(|| wrong(format!("got an unexpected keyword argument '{name}'")))?;
            if placed.is_some_and(|placed| names().take(placed.len()).any(|before| before == name)) {
                return Err(wrong(format!("got multiple values for argument '{name}'")));
            }
            changes.put(known, &value)?;
        }
        Ok(changes)
    }

    fn put(&mut self, name: &'static str, value: &Bound<'_, PyAny>) -> Result<()> {
        let py = value.py();
        // As pyo3 says it of other arguments.
        let named = |error: PyErr| {
            let is_type = error.is_instance_of::<PyTypeError>(py);
            let message = || PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
            Error::from(if is_type { message() } else { error })
        };
        let Some(at) = DrawSettings::ALL.iter().position(|setting| setting.name == name) else {
            let seed = value.extract::<Option<i64>>().map_err(named)?;
            self.seed = Given(Some(seed.map(|seed| unsigned(SEED, seed)).transpose()?));
            return Ok(());
        };
        self.numbers[at] = Some(if DrawSettings::ALL[at].is_count {
            let count = value.extract::<i64>().map_err(named)?;
            if DrawSettings::ALL[at].is_signed() { count as f64 } else { f64::from(unsigned(name, count)?) }
        } else {
            // Adding 0.0 makes -0.0 the 0.0 that it is equal to, so that both have one hash.
            value.extract::<f64>().map_err(named)? + 0.0
        });
        Ok(())
    }

    /// The mode, where none was given: with any setting of the draw tokens are drawn.
    fn or_drawn(mut self) -> Self {
        let is_drawn = |(setting, given): (&DrawSetting, &Option<f64>)| given.is_some() && !setting.is_for_greedy;
        if self.mode.is_none() && DrawSettings::ALL.iter().zip(&self.numbers).any(is_drawn) {
            self.mode = Some(trie_core::Mode::Sampled);
        }
        self
    }

    fn names(&self) -> Vec<&'static str> {
        let is_given = |name: &str| match DrawSettings::ALL.iter().position(|setting| setting.name == name) {
            Some(at) => self.numbers[at].is_some(),
            None => self.seed.0.flatten().is_some(),
        };
        self.mode.map(|_| "mode").into_iter().chain(names().filter(|name| is_given(name))).collect()
    }
}

impl Keywords<'_, '_> {
    /// Returns whether there is a setting of this name.
    #[cfg(feature = "llama")]
    pub(crate) fn knows(name: &str) -> bool {
        names().any(|known| known == name)
    }

    /// # Errors
    /// `OptionError` for a setting out of range, or for keywords beside the value; `TypeError` for names that there are
    /// not. Settings that have no effect are warned of.
    pub(crate) fn options(&self, py: Python<'_>) -> Result<SamplerOptions> {
        let is_bare = self.settings.is_none() && self.placed.is_none_or(PyTupleMethods::is_empty);
        if let (true, None) = (is_bare, self.sampling) {
            // Nothing to look up, to check or to warn of.
            let mode = self.mode.0.map_or(trie_core::Mode::Greedy, |mode| mode.0);
            return Ok(SamplerOptions { mode, ..SamplerOptions::default() });
        }
        let changes = Changes::read(self.call, self.mode, self.placed, self.settings)?;
        let Some(sampling) = self.sampling else { return Sampling::plain().with(&changes.or_drawn())?.used(py) };
        let given = changes.names();
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
    /// Returns the default options.
    fn plain() -> Self {
        let numbers = DrawSettings::ALL.map(|setting| setting.default.into());
        Self { mode: trie_core::Mode::Greedy, numbers, draw: DrawSettings::default(), seed: None }
    }

    /// # Errors
    /// `OptionError` for a setting out of range.
    fn with(mut self, changes: &Changes) -> Result<Self> {
        self.mode = changes.mode.unwrap_or(self.mode);
        self.seed = changes.seed.0.unwrap_or(self.seed);
        for ((setting, number), given) in DrawSettings::ALL.iter().zip(&mut self.numbers).zip(changes.numbers) {
            *number = given.unwrap_or(*number);
            setting.set(&mut self.draw, *number)?;
        }
        Ok(self)
    }

    /// The settings for use, with a warning of those that have no effect. A seed is none of them: it goes with a loop.
    pub(crate) fn used(&self, py: Python<'_>) -> Result<SamplerOptions> {
        let names = self.without_effect();
        if !names.is_empty() {
            let (names, verb) = (names.join(" and "), if names.len() == 1 { "has" } else { "have" });
            warn(py, &format!("{names} {verb} no effect with mode=\"greedy\": use mode=\"sampled\""))?;
        }
        Ok(SamplerOptions { mode: self.mode, draw: self.draw, seed: self.seed })
    }

    /// Each with its name, mode first, in the order of positions.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
        let mut items = vec![("mode", self.mode().into_pyobject(py)?.into_any())];
        for (setting, number) in DrawSettings::ALL.iter().zip(self.numbers) {
            let value = if setting.is_count {
                (number as i64).into_pyobject(py)?.into_any()
            } else {
                number.into_pyobject(py)?.into_any()
            };
            items.push((setting.name, value));
        }
        items.insert(SEED_AT + 1, (SEED, self.seed.into_pyobject(py)?));
        Ok(items)
    }
}

impl Hash for Sampling {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.mode == trie_core::Mode::Sampled, self.numbers.map(f64::to_bits), self.seed).hash(state);
    }
}

#[pymethods]
impl Sampling {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    fn match_args(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, ["mode"].into_iter().chain(names()).collect::<Vec<_>>())
    }

    #[new]
    #[pyo3(
        signature = (mode=None, *placed, **settings),
        text_signature = "(mode=None, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=None, typical_p=1.0, \
            repeat_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0, penalty_last_n=64)",
    )]
    fn new(mode: Option<Mode>, placed: &Bound<'_, PyTuple>, settings: Option<&Bound<'_, PyDict>>) -> Result<Self> {
        Self::plain().with(&Changes::read("Sampling", Given(mode), Some(placed), settings)?.or_drawn())
    }

    /// The same value with some settings changed.
    ///
    /// Args:
    ///     mode: as for `Sampling`; what is not given stays.
    ///     settings: temperature, seed and all others, as for `Sampling`.
    ///
    /// Returns:
    ///     A new Sampling.
    ///
    /// Raises:
    ///     OptionError: a setting is out of range.
    ///     TypeError: there is no such setting.
    ///
    /// Example:
    ///     >>> cool = tokentrie.Sampling("sampled", seed=1).replace(temperature=0.5)
    ///     >>> (cool.temperature, cool.seed)
    ///     (0.5, 1)
    #[pyo3(signature = (*, mode=Given(None), **settings), text_signature = "($self, *, mode=\"greedy\", **settings)")]
    fn replace(&self, mode: Given<Mode>, settings: Option<&Bound<'_, PyDict>>) -> Result<Self> {
        self.with(&Changes::read("replace", mode, None, settings)?)
    }

    /// All settings of a draw but mode and seed, with defaults and ranges.
    ///
    /// Returns:
    ///     A list of (name, default, range, what it does), with an int as default where only whole numbers are taken.
    ///
    /// Example:
    ///     >>> [(name, default) for name, default, _, _ in tokentrie.Sampling.settings()][:2]
    ///     [('temperature', 1.0), ('top_k', 0)]
    #[staticmethod]
    fn settings(py: Python<'_>) -> PyResult<Vec<Listed<'_>>> {
        let items = Self::plain().items(py)?;
        let default = |name| items.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let row = |setting: &DrawSetting| Some((setting.name, default(setting.name)?, setting.range, setting.about));
        Ok(DrawSettings::ALL.iter().filter_map(row).collect())
    }

    /// str: "greedy" or "sampled".
    #[getter]
    fn mode(&self) -> &'static str {
        match self.mode {
            trie_core::Mode::Greedy => "greedy",
            trie_core::Mode::Sampled => "sampled",
        }
    }

    /// float: divides the logits; 0 takes the highest.
    #[getter]
    fn temperature(&self) -> f64 {
        self.numbers[0]
    }

    /// int: how many of the highest logits are kept; 0 keeps all.
    #[getter]
    fn top_k(&self) -> u32 {
        self.draw.top_k
    }

    /// float: the fewest tokens are kept whose probabilities add up to this; 1 keeps all.
    #[getter]
    fn top_p(&self) -> f64 {
        self.numbers[2]
    }

    /// float: tokens at least this times as probable as the best are kept; 0 keeps all.
    #[getter]
    fn min_p(&self) -> f64 {
        self.numbers[3]
    }

    /// float: tokens nearest to the mean surprise are kept until their probabilities add up to this; 1 keeps all.
    #[getter]
    fn typical_p(&self) -> f64 {
        self.numbers[4]
    }

    /// float: divides logits above 0 of tokens that were written, and multiplies the others; 1 changes nothing.
    #[getter]
    fn repeat_penalty(&self) -> f64 {
        self.numbers[5]
    }

    /// float: subtracted from the logits of tokens that were written.
    #[getter]
    fn presence_penalty(&self) -> f64 {
        self.numbers[6]
    }

    /// float: subtracted from the logit of a token once for each time it was written.
    #[getter]
    fn frequency_penalty(&self) -> f64 {
        self.numbers[7]
    }

    /// int: how many of the last tokens that were written count for penalties; -1 are all, 0 none.
    #[getter]
    fn penalty_last_n(&self) -> i32 {
        self.draw.penalty_last_n
    }

    /// int | None: seed of the draw; with None each sampler takes one from the operating system.
    #[getter]
    fn seed(&self) -> Option<u32> {
        self.seed
    }

    /// list[str]: settings that change nothing in this mode, such as a temperature with "greedy".
    ///
    /// Example:
    ///     >>> tokentrie.Sampling("greedy", temperature=0.5, top_k=3).without_effect
    ///     ['temperature', 'top_k']
    #[getter]
    fn without_effect(&self) -> Vec<&'static str> {
        let settings = DrawSettings::ALL.iter().zip(self.numbers);
        let lost = |(setting, value): &(&DrawSetting, f64)| {
            self.mode == trie_core::Mode::Greedy && setting.is_lost_in_greedy(*value)
        };
        settings.filter(lost).map(|(setting, _)| setting.name).collect()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let items = slf.get().items(slf.py())?;
        Ok((slf.get_type().into_any(), PyTuple::new(slf.py(), items.into_iter().map(|(_, value)| value))?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |(name, value): (&str, Bound<'_, PyAny>)| match name {
            "mode" => Ok(format!("mode={:?}", self.mode())),
            _ => Ok(format!("{name}={}", value.repr()?)),
        };
        let items = self.items(py)?.into_iter().map(shown).collect::<PyResult<Vec<_>>>()?;
        Ok(format!("Sampling({})", items.join(", ")))
    }
}
