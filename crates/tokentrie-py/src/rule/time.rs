//! Times of the day, and moments: a day and a time.

use crate::errors::Result;
use crate::rule::Rule;
use crate::rule::date::{
    Made, Parts, Value, made, parts, repr, time_bound, timespec_beside, timespec_of, value, written_as,
};
use crate::rule::regular::{hash_of, parsed};
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyString, PyTime};
use tokentrie::spec::MomentSpec;
use trie_rules::Moment;

/// Times of a day as "HH:MM:SS", from 00:00:00 to 23:59:59. Its values are datetime.time.
///
/// Its texts are those of `datetime.time.isoformat(timespec)`. Compares by its settings; can be pickled.
///
/// Args:
///     lo, hi: the first and the last time, both included: datetime.time, or a str such as "09:30". None: no bound.
///     timespec: how exactly it is written: "minutes" is HH:MM, "seconds" (the default) HH:MM:SS, "milliseconds" and
///         "microseconds" have 3 and 6 digits more. A bound may be more or less exact.
///     format: how it is written instead, in the directives of `datetime.time.strftime`: %H, or %I with %p (AM, PM);
///         %M, %S and %f. "%-I" has no zeros in front. What is left out is 0.
///     utc: whether it is a time of UTC: then a "Z" follows, if no format says otherwise, values have the zone, and
///         bounds need it.
///
/// Raises:
///     RuleError: a bound is no time, no time is in the range, or the format leaves open which time is meant.
///     OptionError: `timespec` is none of these words, or stands beside a format.
///     TypeError: a bound has a time zone where none is written, or none where one is.
///
/// Example:
///     >>> office = tokentrie.rules.Time("09:00", "17:30", timespec="minutes")
///     >>> (office.matches("17:30"), office.matches("17:31"), office.parse("09:15"))
///     (True, False, datetime.time(9, 15))
///     >>> tokentrie.rules.Time(format="%-I:%M %p").parse("9:15 PM")
///     datetime.time(21, 15)
#[pyclass(frozen, extends = Rule, module = "tokentrie.rules")]
pub(crate) struct Time(MomentSpec);

/// A day and a time as "YYYY-MM-DDTHH:MM:SS". Its values are datetime.datetime.
///
/// Its texts are those of `datetime.datetime.isoformat(timespec=timespec)`. Compares by its settings; can be pickled.
///
/// Args:
///     lo, hi: the first and the last moment, both included: datetime.datetime, or a str such as "2024-02-29T09:30".
///         None: no bound.
///     timespec: how exactly the time is written: "minutes" is HH:MM, "seconds" (the default) HH:MM:SS, "milliseconds"
///         and "microseconds" have 3 and 6 digits more. A bound may be more or less exact.
///     format: how it is written instead, in the directives of `datetime.datetime.strftime` that `Date` and `Time`
///         have.
///     utc: whether it is a moment of UTC: then a "Z" follows, if no format says otherwise, values have the zone, and
///         bounds need one.
///
/// Raises:
///     RuleError: a bound is no such moment, none is in the range, or the format leaves open which one is meant.
///     OptionError: `timespec` is none of these words, or stands beside a format.
///     TypeError: a bound has a time zone where none is written, or none where one is.
///
/// Example:
///     >>> soon = tokentrie.rules.DateTime("2024-02-28T12:00", "2024-03-01T00:00")
///     >>> (soon.matches("2024-02-29T07:30:00"), soon.matches("2024-02-30T07:30:00"))
///     (True, False)
///     >>> tokentrie.rules.DateTime(timespec="minutes", utc=True).parse("2024-02-29T07:30Z")
///     datetime.datetime(2024, 2, 29, 7, 30, tzinfo=datetime.timezone.utc)
///     >>> tokentrie.rules.DateTime(format="%d.%m.%Y %H:%M").parse("29.02.2024 07:30")
///     datetime.datetime(2024, 2, 29, 7, 30)
#[pyclass(frozen, extends = Rule, module = "tokentrie.rules")]
pub(crate) struct DateTime(MomentSpec);

impl Time {
    pub(crate) fn spec(&self) -> &MomentSpec {
        &self.0
    }
}

impl DateTime {
    pub(crate) fn spec(&self) -> &MomentSpec {
        &self.0
    }
}

#[pymethods]
impl Time {
    #[new]
    #[pyo3(signature = (lo=None, hi=None, *, timespec=None, format=None, utc=false))]
    fn new(
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        timespec: Option<&str>,
        format: Option<&str>,
        utc: bool,
    ) -> Made<Self> {
        let time = |name: &str, given| time_bound::<PyTime>(name, "time", given, utc);
        let kind = Moment::Time { timespec: timespec_beside(format, timespec)?, utc };
        made(py, kind, format, (time("lo", lo)?, time("hi", hi)?), Self)
    }

    /// datetime.time | None: the first time.
    #[getter]
    fn lo<'py>(&self, py: Python<'py>) -> Value<'py> {
        value(py, &self.0, self.0.min())
    }

    /// datetime.time | None: the last time.
    #[getter]
    fn hi<'py>(&self, py: Python<'py>) -> Value<'py> {
        value(py, &self.0, self.0.max())
    }

    /// str: how exactly it is written.
    #[getter]
    fn timespec(&self) -> &'static str {
        written_as(&self.0).0.name()
    }

    /// str | None: how it is written, where that is not as in ISO 8601.
    #[getter]
    fn format(&self) -> Option<&str> {
        self.0.format()
    }

    /// bool: whether it is a time of UTC.
    #[getter]
    fn utc(&self) -> bool {
        written_as(&self.0).1
    }

    /// The time that a text stands for.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     datetime.time: with the zone UTC where that is written.
    ///
    /// Raises:
    ///     RuleError: the text is no time, or none of the range.
    ///
    /// Example:
    ///     >>> tokentrie.rules.Time().parse("07:30:00")
    ///     datetime.time(7, 30)
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
        repr("Time", &self.0)
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
        timespec: &str,
        format: Option<&str>,
        utc: bool,
    ) -> Result<Py<Self>> {
        let kind = Moment::Time { timespec: timespec_of(timespec)?, utc };
        Ok(Py::new(py, made(py, kind, format, (lo, hi), Self)?)?)
    }
}

#[pymethods]
impl DateTime {
    #[new]
    #[pyo3(signature = (lo=None, hi=None, *, timespec=None, format=None, utc=false))]
    fn new(
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        timespec: Option<&str>,
        format: Option<&str>,
        utc: bool,
    ) -> Made<Self> {
        let moment = |name: &str, given| time_bound::<PyDateTime>(name, "datetime", given, utc);
        let kind = Moment::DateTime { timespec: timespec_beside(format, timespec)?, utc };
        made(py, kind, format, (moment("lo", lo)?, moment("hi", hi)?), Self)
    }

    /// datetime.datetime | None: the first moment.
    #[getter]
    fn lo<'py>(&self, py: Python<'py>) -> Value<'py> {
        value(py, &self.0, self.0.min())
    }

    /// datetime.datetime | None: the last moment.
    #[getter]
    fn hi<'py>(&self, py: Python<'py>) -> Value<'py> {
        value(py, &self.0, self.0.max())
    }

    /// str: how exactly the time is written.
    #[getter]
    fn timespec(&self) -> &'static str {
        written_as(&self.0).0.name()
    }

    /// str | None: how it is written, where that is not as in ISO 8601.
    #[getter]
    fn format(&self) -> Option<&str> {
        self.0.format()
    }

    /// bool: whether it is a moment of UTC.
    #[getter]
    fn utc(&self) -> bool {
        written_as(&self.0).1
    }

    /// The moment that a text stands for.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     datetime.datetime: with the zone UTC where that is written.
    ///
    /// Raises:
    ///     RuleError: the text is no moment, or none of the range.
    ///
    /// Example:
    ///     >>> tokentrie.rules.DateTime().parse("2024-02-29T07:30:00")
    ///     datetime.datetime(2024, 2, 29, 7, 30)
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
        repr("DateTime", &self.0)
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
        timespec: &str,
        format: Option<&str>,
        utc: bool,
    ) -> Result<Py<Self>> {
        let kind = Moment::DateTime { timespec: timespec_of(timespec)?, utc };
        Ok(Py::new(py, made(py, kind, format, (lo, hi), Self)?)?)
    }
}
