//! Days of the calendar.

use crate::convert::gil::asked;
use crate::convert::ids::{shown, type_name};
use crate::errors::Result;
use crate::rule::Rule;
use crate::rule::regular::{hash_of, value_of};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyString, PyType};
use trie_core::work::Limits;
use trie_rules::{Regular, Value};

/// Days as "YYYY-MM-DD", from 0001-01-01 to 9999-12-31, only those that there are. Its values are datetime.date.
///
/// Compares by its bounds; can be pickled.
///
/// Args:
///     lo, hi: the first and the last day, both included: datetime.date or str. None: no bound.
///
/// Raises:
///     RuleError: a bound is no day, or no day is in the range.
///
/// Example:
///     >>> (tokentrie.rules.Date().matches("2024-02-29"), tokentrie.rules.Date().matches("2023-02-29"))
///     (True, False)
///     >>> tokentrie.rules.Date("2024-01-01", "2024-12-31").matches("2025-01-01")
///     False
///     >>> tokentrie.rules.Date().parse("2024-02-29")
///     datetime.date(2024, 2, 29)
#[pyclass(frozen, extends = Rule, module = "tokentrie.rules")]
pub(crate) struct Date {
    lo: Option<String>,
    hi: Option<String>,
}

/// A day as it is written.
fn day(name: &str, given: Option<&Bound<'_, PyAny>>) -> Result<Option<String>> {
    let Some(given) = given else { return Ok(None) };
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Some(text.to_str()?.to_owned()));
    }
    // A datetime is a date to Python, and no day.
    if given.is_exact_instance_of::<PyDate>() {
        return Ok(Some(given.call_method0("isoformat")?.extract()?));
    }
    let message =
        format!("{name} must be a datetime.date, a str or None, not {} of type {}", shown(given), type_name(given));
    Err(PyTypeError::new_err(message).into())
}

impl Date {
    pub(crate) fn bounds(&self) -> (Option<&str>, Option<&str>) {
        (self.lo.as_deref(), self.hi.as_deref())
    }

    fn day<'py>(py: Python<'py>, text: Option<&str>) -> PyResult<Option<Bound<'py, PyAny>>> {
        text.map(|text| py.get_type::<PyDate>().call_method1("fromisoformat", (text,))).transpose()
    }
}

#[pymethods]
impl Date {
    #[new]
    #[pyo3(signature = (lo=None, hi=None))]
    fn new(
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let (lo, hi) = (day("lo", lo)?, day("hi", hi)?);
        let rule = asked(py, Limits::default(), || match (&lo, &hi) {
            (None, None) => Ok(Regular::date()),
            _ => Regular::date_between(lo.as_deref(), hi.as_deref()),
        })??;
        Ok(PyClassInitializer::from(Rule::of_regular(rule)).add_subclass(Self { lo, hi }))
    }

    /// datetime.date | None: the first day.
    #[getter]
    fn lo<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Self::day(py, self.lo.as_deref())
    }

    /// datetime.date | None: the last day.
    #[getter]
    fn hi<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Self::day(py, self.hi.as_deref())
    }

    /// The day that a text stands for.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     datetime.date.
    ///
    /// Raises:
    ///     RuleError: the text is no day, or none of the range.
    ///
    /// Example:
    ///     >>> tokentrie.rules.Date().parse("1999-12-31").year
    ///     1999
    fn parse<'py>(slf: &Bound<'py, Self>, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        match value_of(slf.as_super(), text)? {
            Value::Date { year, month, day } => Ok(PyDate::new(slf.py(), year.into(), month, day)?.into_any()),
            _ => Ok(text.clone().into_any()),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.bounds() == other.get().bounds())
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.bounds())
    }

    fn __repr__(&self) -> String {
        let shown = |day: Option<&str>| day.map_or_else(|| "None".to_owned(), |day| format!("{day:?}"));
        match self.bounds() {
            (None, None) => "tokentrie.rules.Date()".to_owned(),
            (lo, hi) => format!("tokentrie.rules.Date({}, {})", shown(lo), shown(hi)),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Option<String>, Option<String>)) {
        (slf.get_type(), (slf.get().lo.clone(), slf.get().hi.clone()))
    }
}
