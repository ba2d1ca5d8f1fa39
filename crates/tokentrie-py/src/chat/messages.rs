//! Messages and tools as Python gives them, as JSON.

use crate::convert::data::data;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::module;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::{Map, Number, Value};
use tokentrie::chat::Data;
use tokentrie::chat::check_message;

/// # Errors
/// `OptionError` for an integer that JSON's libraries do not hold.
pub(crate) fn json(what: &str, data: Data) -> Result<Value> {
    Ok(match data {
        Data::None => Value::Null,
        Data::Bool(flag) => Value::Bool(flag),
        Data::Int(number) => {
            let known = i64::try_from(number).map(Number::from).or_else(|_| u64::try_from(number).map(Number::from));
            let wrong = |_| Class::Option.error(format!("{what}: the integer {number} has more than 64 bits"));
            Value::Number(known.map_err(wrong)?)
        }
        Data::Float(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        Data::Text(text) => Value::String(text),
        Data::Traced(text) => Value::String(text.into_text()),
        Data::List(items) => Value::Array(items.into_iter().map(|item| json(what, item)).collect::<Result<_>>()?),
        Data::Dict(entries) => {
            let entry = |(key, value)| Ok((key, json(what, value)?));
            Value::Object(entries.into_iter().map(entry).collect::<Result<Map<_, _>>>()?)
        }
    })
}

/// A dict as JSON.
///
/// # Errors
/// As [`data`].
pub(crate) fn dict(what: &str, value: &Bound<'_, PyAny>) -> Result<Value> {
    json(what, data(what, value)?)
}

/// The messages of a conversation: dicts, and messages of a model. `template` may know more roles.
///
/// # Errors
/// `TypeError` for anything that is not a list of those, `OptionError` for a role nobody knows and for content of
/// another shape.
pub(crate) fn messages(given: &Bound<'_, PyAny>, template: &str) -> Result<Vec<Value>> {
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        let message = format!("messages must be a list of dict or Message, not {}", type_name(given));
        return Err(PyTypeError::new_err(message).into());
    }
    let mut read = Vec::new();
    for (number, message) in given.try_iter()?.enumerate() {
        let (message, place) = (message?, format!("messages[{number}]"));
        let message = if is_message(&message)? { message.call_method0("to_dict")? } else { message };
        if !message.is_instance_of::<PyDict>() {
            let text =
                format!("{place} must be a dict or a Message, not {} of type {}", shown(&message), type_name(&message));
            return Err(PyTypeError::new_err(text).into());
        }
        let value = dict(&place, &message)?;
        check(&place, &value, template, given.py())?;
        read.push(value);
    }
    Ok(read)
}

/// Returns whether it is a reply of a model.
fn is_message(given: &Bound<'_, PyAny>) -> Result<bool> {
    if given.is_instance_of::<PyDict>() {
        return Ok(false);
    }
    let class = module(given.py(), "tokentrie.results")?.getattr("Message")?;
    Ok(given.is_instance(&class)?)
}

fn check(place: &str, message: &Value, template: &str, py: Python<'_>) -> Result<()> {
    let near = |name: &str, known: &[&str]| nearest(py, name, known).unwrap_or_default();
    check_message(message, template, &near).map_err(|reason| Class::Option.error(format!("{place}: {reason}")))
}

/// "; did you mean ...", where a name is near.
pub(crate) fn nearest<S: AsRef<str>>(py: Python<'_>, name: &str, known: &[S]) -> Result<String, Error> {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let found = module(py, "difflib")?.call_method1("get_close_matches", (name, known, 1))?;
    let found: Vec<String> = found.extract()?;
    Ok(found.first().map_or_else(String::new, |near| format!(": did you mean {near:?}?")))
}
