//! Values of rules' texts, as Python objects.

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateTime, PyInt, PyList, PyString, PyTime, PyTzInfo};
use tokentrie::constraint::{Clock, Value};

/// Returns what a text stands for: an int, a float, a day, a time or a str.
pub(crate) fn in_python<'py>(
    py: Python<'py>,
    value: Value,
    text: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    let zone = |time: &Clock| time.utc.then(|| PyTzInfo::utc(py).map(Borrowed::to_owned)).transpose();
    Ok(match value {
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        // More digits than 128 bits have.
        Value::LongInteger(digits) => py.get_type::<PyInt>().call1((digits,))?,
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Date { year, month, day } => PyDate::new(py, year.into(), month, day)?.into_any(),
        Value::Time(time) => {
            let Clock { hour, minute, second, microsecond, .. } = time;
            PyTime::new(py, hour, minute, second, microsecond, zone(&time)?.as_ref())?.into_any()
        }
        Value::DateTime { year, month, day, time } => {
            let Clock { hour, minute, second, microsecond, .. } = time;
            let zone = zone(&time)?;
            PyDateTime::new(py, year.into(), month, day, hour, minute, second, microsecond, zone.as_ref())?.into_any()
        }
        Value::List(items) => {
            let items: Vec<_> = items.into_iter().map(|item| in_python(py, item, text)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Text(said) | Value::String(said) | Value::Entry { text: said, .. } => {
            PyString::new(py, &said).into_any()
        }
        _ => text.clone().into_any(),
    })
}
