//! Payloads as Python gives them: text and dictionaries.

use crate::convert::ids::type_name;
use crate::convert::strings::meant;
use crate::errors::{Class, Result, warn};
use crate::exit::{called, module};
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use trie_formats::{Payload, PayloadReport};

/// Runs `use_text` on the JSON text of a payload.
///
/// # Errors
/// `TypeError` for other types, `PayloadError` for a dictionary that is not JSON; and those of `use_text`.
pub(crate) fn with_text<R>(payload: &Bound<'_, PyAny>, use_text: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    if let Ok(text) = payload.cast::<PyString>() {
        let text =
            text.to_str().map_err(|error| Class::Payload.error(format!("payload: not valid Unicode: {error}")))?;
        return use_text(text.as_bytes());
    }
    if let Ok(bytes) = payload.cast::<PyBytes>() {
        return use_text(bytes.as_bytes());
    }
    if payload.is_instance_of::<PyDict>() {
        let dumps = module(payload.py(), "json")?.getattr("dumps")?;
        let text = called(&dumps, &(payload,).into_pyobject(payload.py())?, None).map_err(|error| {
            if error.is_instance_of::<PyException>(payload.py()) {
                return Class::Payload.error(format!("payload: the dictionary is not JSON: {error}"));
            }
            error.into() // Ctrl-C, for one
        })?;
        return use_text(text.cast::<PyString>().map_err(PyErr::from)?.to_str()?.as_bytes());
    }
    let message =
        format!("a payload must be JSON text (str or bytes) or a dict, or give a Trie, not {}", type_name(payload));
    Err(PyTypeError::new_err(message).into())
}

/// Runs `use_text` on the JSON text of a constraint that is not another type.
///
/// # Errors
/// As [`with_text`], and those of `use_text`; a str that is not an object of JSON was meant as something else, which it
/// says.
pub(crate) fn payload_text<R>(
    what: &str,
    given: &Bound<'_, PyAny>,
    use_text: impl FnOnce(&[u8]) -> Result<R>,
) -> Result<R> {
    with_text(given, |text| {
        let begins = text.iter().find(|byte| !byte.is_ascii_whitespace());
        let is_object = begins == Some(&b'{');
        match given.cast::<PyString>() {
            Ok(said) if !is_object => {
                // Neither a payload nor a spec nor a JSON Schema: a value, a pattern, a grammar.
                let reason = Payload::from_json(text, None).err().map_or_else(String::new, |error| error.to_string());
                Err(Class::Payload.error(format!("{}, or the JSON of a payload ({reason})", meant(what, said))))
            }
            _ => use_text(text),
        }
    })
}

/// Says what a vocabulary made unusable.
pub(crate) fn warn_dropped(py: Python<'_>, report: &PayloadReport, n_vocab: usize) -> Result<()> {
    Ok(report.warning(n_vocab).map_or(Ok(()), |warning| warn(py, &warning))?)
}
