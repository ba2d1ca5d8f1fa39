//! Regular expressions as rules.

use crate::convert::gil::{asked, released};
use crate::errors::{Class, Error, Result};
use crate::limits::{Limits, limits};
use crate::rule::Rule;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tokentrie::spec::Spec;
use trie_core::work;
use trie_rules::{AutomatonLimits, RegexError, Rule as _};

/// A regular expression as a rule: the whole text matches, and every way to match counts.
///
/// Syntax of the Rust crate `regex` (docs.rs/regex): Unicode classes, flags such as (?i), no look-around and no
/// back-references. Text is UTF-8. A finite automaton decides, so that nothing that is allowed leads into a dead end;
/// one object serves any number of samplers and threads. Compares by pattern; can be pickled.
///
/// Args:
///     pattern: str.
///     max_bytes: the most memory that its automaton may take, and the most in which it is made; 1 GiB at most.
///     limits: Limits of what making it may cost; None: the defaults.
///
/// Raises:
///     RuleError: it is no regular expression (with position), looks around or back, matches nothing, or makes an
///         automaton that is too large or takes too long. Also a ValueError.
///
/// Example:
///     >>> model = tokentrie.Model()
///     >>> year = tokentrie.Regex("(19|20)[0-9]{2}")
///     >>> year.matches(model.generate("The year was ", year).value)
///     True
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Regex {
    inner: trie_rules::Regex,
    /// int: the most memory that its automaton may take.
    #[pyo3(get)]
    max_bytes: usize,
    limits: work::Limits,
}

#[pymethods]
impl Regex {
    #[new]
    #[pyo3(signature = (pattern, *, max_bytes=33_554_432, limits=None))]
    fn new(
        py: Python<'_>,
        pattern: &str,
        max_bytes: usize,
        limits: Option<&Bound<'_, Limits>>,
    ) -> Result<PyClassInitializer<Self>> {
        let (most, limits) = (AutomatonLimits::bytes(max_bytes), self::limits(limits));
        let regex = asked(py, limits, || trie_rules::Regex::with_limits(pattern, most))??;
        Ok(PyClassInitializer::from(Rule::of_regular((&regex).into())).add_subclass(Self {
            inner: regex,
            max_bytes,
            limits,
        }))
    }

    /// Limits: what making it may cost.
    #[getter]
    fn limits(&self) -> Limits {
        self.limits.into()
    }

    /// str: the pattern.
    #[getter]
    fn pattern(&self) -> &str {
        self.inner.pattern()
    }

    /// int: states of its automaton.
    #[getter]
    fn states(&self) -> usize {
        self.inner.automaton().states()
    }

    /// The table of its automaton, shortest beginnings first: state 0 is the start. O(256 · states).
    ///
    /// Returns:
    ///     list[tuple[bool, list[tuple[list[tuple[int, int]], int]]]]: for each state whether a text may end there, and
    ///         where bytes lead: ranges of bytes, first and last included, with the state after them. Other bytes are
    ///         not legal. The automaton is minimal, and every state leads to an end.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("a[0-9]*").table()
    ///     [(False, [([(97, 97)], 1)]), (True, [([(48, 57)], 1)])]
    fn table(&self, py: Python<'_>) -> Vec<(bool, Vec<Way>)> {
        released(py, || table(&self.inner))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner == other.get().inner)
    }

    fn __hash__(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.inner.pattern().hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        format!("tokentrie.Regex({:?})", self.inner.pattern())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, usize, Limits))> {
        let Self { inner: regex, max_bytes, limits } = slf.get();
        Ok((slf.get_type().getattr("_restore")?, (regex.pattern().to_owned(), *max_bytes, (*limits).into())))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(py: Python<'_>, pattern: &str, max_bytes: usize, limits: &Bound<'_, Limits>) -> Result<Py<Self>> {
        Ok(Py::new(py, Self::new(py, pattern, max_bytes, Some(limits))?)?)
    }
}

impl Regex {
    pub(crate) fn spec(&self) -> Spec {
        Spec::regex(self.inner.pattern(), self.max_bytes, self.limits.into())
    }

    /// Of a pattern alone.
    pub(crate) fn of(py: Python<'_>, pattern: &str) -> Result<PyClassInitializer<Self>> {
        Self::new(py, pattern, AutomatonLimits::default().bytes, None)
    }
}

/// Ranges of bytes, and the state after them.
type Way = (Vec<(u8, u8)>, usize);

/// Whether a text may end, and the ways on, of each state in the order in which they are reached.
fn table(regex: &trie_rules::Regex) -> Vec<(bool, Vec<Way>)> {
    let start = regex.start();
    let (mut numbers, mut order, mut rows) = (HashMap::from([(start, 0)]), vec![start], Vec::new());
    while let Some(state) = order.get(rows.len()).copied() {
        let mut ways: Vec<Way> = Vec::new();
        for byte in 0..=255 {
            let Some(after) = regex.step(&state, byte) else { continue };
            let to = *numbers.entry(after).or_insert_with(|| {
                order.push(after);
                order.len() - 1
            });
            match ways.iter_mut().find(|(_, known)| *known == to) {
                Some((ranges, _)) => match ranges.last_mut() {
                    Some((_, last)) if *last + 1 == byte => *last = byte,
                    _ => ranges.push((byte, byte)),
                },
                None => ways.push((vec![(byte, byte)], to)),
            }
        }
        rows.push((regex.is_end(&state), ways));
    }
    rows
}

impl From<RegexError> for Error {
    fn from(error: RegexError) -> Self {
        Class::Rule.error(error.to_string())
    }
}
