//! Python's values as what a chat template is given.

use crate::convert::gil::step;
use crate::convert::ids::type_name;
use crate::errors::{Class, Result};
use crate::exit::module;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::fmt::Display;
use tokentrie::chat::Data;

/// Lists and dicts inside each other.
const DEEPEST: u32 = 200;

/// Returns Python's objects for JSON text, by Python's own reader.
///
/// # Errors
/// What Python raises.
pub(crate) fn objects_of_json(py: Python<'_>, json: impl Display) -> PyResult<Bound<'_, PyAny>> {
    module(py, "json")?.call_method1("loads", (json.to_string(),))
}

/// A list of dicts.
///
/// # Errors
/// `TypeError` for what is none, or holds what JSON does not have; `OptionError` for numbers and texts that JSON cannot
/// write, and for what is too deep.
pub(crate) fn list_of_dicts(what: &str, value: &Bound<'_, PyAny>) -> Result<Data> {
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        let message = format!("{what} must be a list of dict, not {}", type_name(value));
        return Err(PyTypeError::new_err(message).into());
    }
    data(what, value)
}

/// Any value of JSON. Errors are those of [`list_of_dicts`].
pub(crate) fn data(what: &str, value: &Bound<'_, PyAny>) -> Result<Data> {
    read(what, value, DEEPEST)
}

fn read(what: &str, value: &Bound<'_, PyAny>, deeper: u32) -> Result<Data> {
    step()?;
    let refused = |reason: String| Err(Class::Option.error(format!("{what}: {reason}")));
    if value.is_none() {
        return Ok(Data::None);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Data::Bool(flag.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(Data::Text(text.to_owned())),
            Err(_) => refused("a text with half a surrogate pair is not Unicode".into()),
        };
    }
    if value.is_instance_of::<PyInt>() {
        return match value.extract() {
            Ok(number) => Ok(Data::Int(number)),
            Err(_) => refused("an integer of more than 127 bits".into()),
        };
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        return if number.is_finite() { Ok(Data::Float(number)) } else { refused(format!("{number} is not JSON")) };
    }
    let Some(deeper) = deeper.checked_sub(1) else {
        return refused(format!("lists and dicts inside each other, more than {DEEPEST} deep"));
    };
    if let Ok(dict) = value.cast::<PyDict>() {
        let mut entries = Vec::with_capacity(dict.len());
        for (key, value) in dict {
            let Data::Text(name) = read(what, &key, 0)? else {
                let message = format!("{what}: keys must be str, not {}", type_name(&key));
                return Err(PyTypeError::new_err(message).into());
            };
            entries.push((name, read(what, &value, deeper)?));
        }
        return Ok(Data::Dict(entries));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items: Result<Vec<Data>> = value.try_iter()?.map(|item| read(what, &item?, deeper)).collect();
        return items.map(Data::List);
    }
    Err(PyTypeError::new_err(format!("{what}: {} is not JSON", type_name(value))).into())
}
