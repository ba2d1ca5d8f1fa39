//! Days of the calendar, and what they share with times.

use crate::convert::gil::asked;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Result};
use crate::rule::Rule;
use crate::rule::regular::{hash_of, in_python, parsed};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateTime, PyDict, PyString, PyTzInfo};
use pyo3::{PyClass, PyTypeInfo};
use tokentrie::spec::MomentSpec;
use trie_core::work::Limits;
use trie_rules::{Moment, Timespec};

pub(super) type Made<T> = Result<PyClassInitializer<T>>;
/// A value of Python's, where there is one.
pub(super) type Value<'py> = PyResult<Option<Bound<'py, PyAny>>>;
/// Bounds as texts, `timespec`, `format` and `utc`.
pub(super) type Parts = (Option<String>, Option<String>, String, Option<String>, bool);

/// A bound as it is written: a str, or what a value of Python's is.
fn bound<'py>(
    name: &str,
    class: &str,
    given: Option<&Bound<'py, PyAny>>,
    written: impl FnOnce(&Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>>,
) -> Result<Option<String>> {
    let Some(given) = given else { return Ok(None) };
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Some(text.to_str()?.to_owned()));
    }
    if let Some(text) = written(given)? {
        return Ok(Some(text.extract()?));
    }
    let (shown, type_name) = (shown(given), type_name(given));
    let message = format!("{name} must be a datetime.{class}, a str or None, not {shown} of type {type_name}");
    Err(PyTypeError::new_err(message).into())
}

/// A time as it is written, in UTC with a `Z`.
fn written<'py>(name: &str, given: &Bound<'py, PyAny>, utc: bool) -> Result<Bound<'py, PyAny>> {
    let py = given.py();
    let offset = given.call_method0("utcoffset")?;
    if offset.is_none() == utc {
        let reason = if utc {
            "without a time zone: utc=True needs one, such as datetime.timezone.utc"
        } else {
            "with a time zone: give utc=True, or a value without one"
        };
        return Err(PyTypeError::new_err(format!("{name} is {}, {reason}", shown(given))).into());
    }
    let plain = PyDict::new(py);
    plain.set_item("tzinfo", py.None())?;
    let given = if utc && given.is_instance_of::<PyDateTime>() {
        given.call_method1("astimezone", (PyTzInfo::utc(py)?,))?
    } else if utc && offset.is_truthy()? {
        let message = format!("{name} is {}: a time of another zone than UTC is none without its day", shown(given));
        return Err(PyTypeError::new_err(message).into());
    } else {
        given.clone()
    };
    let timespec = PyDict::new(py);
    timespec.set_item("timespec", "microseconds")?;
    let text = given.call_method("replace", (), Some(&plain))?.call_method("isoformat", (), Some(&timespec))?;
    Ok(if utc { text.add("Z")? } else { text })
}

/// A bound that is a time of some class.
pub(super) fn time_bound<T: PyTypeInfo>(
    name: &str,
    class: &str,
    given: Option<&Bound<'_, PyAny>>,
    utc: bool,
) -> Result<Option<String>> {
    bound(name, class, given, |given| given.is_instance_of::<T>().then(|| written(name, given, utc)).transpose())
}

pub(super) fn timespec_of(name: &str) -> Result<Timespec> {
    Timespec::named(name).ok_or_else(|| {
        let names = Timespec::ALL.map(|timespec| format!("{:?}", timespec.name())).join(", ");
        Class::Option.error(format!("timespec is {name:?}: it must be one of {names}"))
    })
}

/// How exactly a time is written, where no format says so.
pub(super) fn timespec_beside(format: Option<&str>, timespec: Option<&str>) -> Result<Timespec> {
    match (format, timespec) {
        (Some(_), Some(timespec)) => Err(Class::Option.error(format!(
            "timespec is {timespec:?} beside a format, which says how exactly a time is written: leave timespec out"
        ))),
        (_, timespec) => timespec.map_or(Ok(Timespec::default()), timespec_of),
    }
}

pub(super) fn made<T: PyClass<BaseType = Rule>>(
    py: Python<'_>,
    kind: Moment,
    format: Option<&str>,
    (lo, hi): (Option<String>, Option<String>),
    class: fn(MomentSpec) -> T,
) -> Made<T> {
    let (rule, spec) = asked(py, Limits::default(), || {
        let spec = MomentSpec::between(kind, lo.as_deref(), hi.as_deref())?;
        let spec = if let Some(format) = format { spec.with_format(format)? } else { spec };
        Ok::<_, trie_rules::RegularError>((spec.rule()?, spec))
    })??;
    Ok(PyClassInitializer::from(Rule::of_regular(rule)).add_subclass(class(spec)))
}

/// What a bound is in Python.
pub(super) fn value<'py>(py: Python<'py>, spec: &MomentSpec, bound: Option<&str>) -> Value<'py> {
    let Some(text) = bound else { return Ok(None) };
    spec.moment().value(text).map(|value| in_python(py, value, text)).transpose()
}

pub(super) fn repr(class: &str, spec: &MomentSpec) -> String {
    let shown = |bound: Option<&str>| bound.map_or_else(|| "None".to_owned(), |bound| format!("{bound:?}"));
    let mut parts = Vec::new();
    if (spec.min(), spec.max()) != (None, None) {
        parts.extend([shown(spec.min()), shown(spec.max())]);
    }
    let (timespec, utc) = written_as(spec);
    parts.extend(spec.format().map(|format| format!("format={format:?}")));
    parts.extend((timespec != Timespec::default()).then(|| format!("timespec={:?}", timespec.name())));
    parts.extend(utc.then(|| "utc=True".to_owned()));
    format!("tokentrie.rules.{class}({})", parts.join(", "))
}

pub(super) fn written_as(spec: &MomentSpec) -> (Timespec, bool) {
    (spec.moment().timespec().unwrap_or_default(), spec.moment().utc())
}

pub(super) fn parts(spec: &MomentSpec) -> Parts {
    let (timespec, utc) = written_as(spec);
    (
        spec.min().map(Into::into),
        spec.max().map(Into::into),
        timespec.name().to_owned(),
        spec.format().map(Into::into),
        utc,
    )
}

/// Days as "YYYY-MM-DD", from 0001-01-01 to 9999-12-31, only those that there are. Its values are datetime.date.
///
/// Compares by its settings; can be pickled.
///
/// Args:
///     lo, hi: the first and the last day, both included: datetime.date, or str as "YYYY-MM-DD". None: no bound.
///     format: how a day is written instead, in the directives of `datetime.date.strftime` with English names: %Y or %y
///         (from 1969 to 2068); %m, %B or %b with %d, or %j; %A and %a. "%-d" has no zeros in front. All of a text must
///         agree: of "Friday, 1 March 2024" the weekday, too.
///
/// Raises:
///     RuleError: a bound is no day, no day is in the range, or the format leaves open which day is meant.
///
/// Example:
///     >>> (tokentrie.rules.Date().matches("2024-02-29"), tokentrie.rules.Date().matches("2023-02-29"))
///     (True, False)
///     >>> tokentrie.rules.Date("2024-01-01", "2024-12-31").matches("2025-01-01")
///     False
///     >>> tokentrie.rules.Date().parse("2024-02-29")
///     datetime.date(2024, 2, 29)
///     >>> tokentrie.rules.Date(format="%A, %-d %B %Y").parse("Thursday, 29 February 2024")
///     datetime.date(2024, 2, 29)
#[pyclass(frozen, extends = Rule, module = "tokentrie.rules")]
pub(crate) struct Date(MomentSpec);

impl Date {
    pub(crate) fn spec(&self) -> &MomentSpec {
        &self.0
    }
}

#[pymethods]
impl Date {
    #[new]
    #[pyo3(signature = (lo=None, hi=None, *, format=None))]
    fn new(
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        format: Option<&str>,
    ) -> Made<Self> {
        let day = |name: &str, given| {
            bound(name, "date", given, |given| {
                // A datetime is a date to Python, and no day.
                let is_day = given.is_exact_instance_of::<PyDate>();
                Ok(is_day.then(|| given.call_method0("isoformat")).transpose()?)
            })
        };
        made(py, Moment::Date, format, (day("lo", lo)?, day("hi", hi)?), Self)
    }

    /// datetime.date | None: the first day.
    #[getter]
    fn lo<'py>(&self, py: Python<'py>) -> Value<'py> {
        value(py, &self.0, self.0.min())
    }

    /// datetime.date | None: the last day.
    #[getter]
    fn hi<'py>(&self, py: Python<'py>) -> Value<'py> {
        value(py, &self.0, self.0.max())
    }

    /// str | None: how a day is written, where that is not as "YYYY-MM-DD".
    #[getter]
    fn format(&self) -> Option<&str> {
        self.0.format()
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
        parsed(slf.as_super(), text)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0)
    }

    fn __repr__(&self) -> String {
        repr("Date", &self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        Ok((slf.get_type().getattr("_restore")?, parts(&slf.get().0)))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(
        py: Python<'_>,
        lo: Option<String>,
        hi: Option<String>,
        _timespec: &str,
        format: Option<&str>,
        _utc: bool,
    ) -> Result<Py<Self>> {
        Ok(Py::new(py, made(py, Moment::Date, format, (lo, hi), Self)?)?)
    }
}
