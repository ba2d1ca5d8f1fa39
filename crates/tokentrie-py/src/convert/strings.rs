//! Legal values given as text.

use crate::convert::gil::step;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Result};
use crate::exit::items;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use trie_text::{TextValues, Tokenization};

/// A str.
///
/// # Errors
/// `TypeError` for anything that is not a str, `VocabularyError` for half a surrogate pair.
pub(crate) fn text(value: &Bound<'_, PyAny>, place: impl Fn() -> String) -> Result<String> {
    if let Ok(text) = value.cast::<PyString>() {
        let half = |_| Class::Vocabulary.error(format!("{}: half a surrogate pair is not text", place()));
        return Ok(text.to_str().map_err(half)?.to_owned());
    }
    let (place, shown, name) = (place(), shown(value), type_name(value));
    let next = if value.is_instance_of::<PyInt>() {
        ": numbers are values of a type, such as Literal[1, 2], or of a rule, such as Integer(1, 9)"
    } else {
        ""
    };
    Err(PyTypeError::new_err(format!("{place} must be a str, not {shown} of type {name}{next}")).into())
}

/// A str, or a list or tuple of them.
///
/// # Errors
/// As [`text`], and `TypeError` for other things.
pub(crate) fn one_or_more(what: &str, given: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    if given.is_instance_of::<PyString>() {
        return Ok(vec![text(given, || what.to_owned())?]);
    }
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        let message = format!("{what} must be a str or a list of str, not {}", type_name(given));
        return Err(PyTypeError::new_err(message).into());
    }
    let each = given.try_iter()?.enumerate();
    each.map(|(number, one)| text(&one?, || format!("{what}[{number}]"))).collect()
}

/// A list of str with nothing around them.
///
/// # Errors
/// As [`list`].
pub(crate) fn texts(values: &Bound<'_, PyAny>) -> Result<TextValues> {
    Ok(TextValues::new(list(values)?))
}

/// Returns the error message for one str instead of a list.
pub(crate) fn one_text(what: &str, text: &Bound<'_, PyString>) -> String {
    const SHOWN: usize = 60;
    let text = text.to_string_lossy();
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{what} must be a list of str, not one str: give [{shown:?}{more}]")
}

/// Returns advice for a str in place of a constraint: one value, a pattern, a grammar.
pub(crate) fn meant(what: &str, given: &Bound<'_, PyString>) -> String {
    let text = given.to_string_lossy();
    let has = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let rule = if has(&["::="]) {
        ", a grammar in GBNF as Gbnf(...)"
    } else if has(&["start:", "%import", "%ignore"]) {
        ", a grammar in Lark as Lark(...)"
    } else if has(&["%%", "%token"]) {
        ", a grammar as Grammar(...)"
    } else if has(&["\\", "[", "(", "|", "*", "+", "?", "{", "^", "$"]) {
        ", a pattern as Regex(...)"
    } else {
        ""
    };
    format!("{}{rule}", one_text(what, given))
}

/// Returns whether the argument is a collection of texts, and neither a payload nor one of our classes: a list, a
/// tuple, a set, a generator, a column.
pub(crate) fn is_list(values: &Bound<'_, PyAny>) -> bool {
    if values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>() {
        return true;
    }
    let is_text = values.is_instance_of::<PyString>() || values.is_instance_of::<PyBytes>();
    if is_text || values.is_instance_of::<PyByteArray>() || values.is_instance_of::<PyDict>() {
        return false;
    }
    let ours = values.get_type().module().is_ok_and(|module| module == "tokentrie");
    // A table of pyarrow is told apart where its columns are read.
    !ours && ["__iter__", "column_names"].iter().any(|name| values.hasattr(*name).unwrap_or(false))
}

/// Values one by one: those of a column of pyarrow as Python's, all others as they come.
///
/// # Errors
/// `TypeError` for a whole table, which would give the names of its columns, or its rows.
pub(crate) fn column<'py>(what: &str, values: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let module = values.get_type().module()?;
    if module.to_cow()?.starts_with("tokentrie") || module == "builtins" {
        return Ok(values.clone());
    }
    let names = match values.getattr_opt("column_names")? {
        Some(names) => Some(names),
        None => values.getattr_opt("columns")?,
    };
    let Some(names) = names.filter(|names| names.hasattr("__iter__").unwrap_or(false)) else {
        let list = values.getattr_opt("to_pylist")?;
        return Ok(list.map(|list| list.call0()).transpose()?.unwrap_or_else(|| values.clone()));
    };
    let names: Vec<Bound<'_, PyAny>> = names.try_iter()?.collect::<PyResult<_>>()?;
    let of_texts = names.iter().find(|name| has_texts(values, name)).or(names.first());
    let (name, first) = (type_name(values), of_texts.map_or_else(|| "\"name\"".to_owned(), shown));
    let names: Vec<String> = names.iter().map(shown).collect();
    let message = format!(
        "{what} is a whole {name} with the columns {}: give one of them, such as [{first}] of it",
        names.join(", ")
    );
    Err(PyTypeError::new_err(message).into())
}

/// Returns whether the first item of a column is a str.
fn has_texts(table: &Bound<'_, PyAny>, name: &Bound<'_, PyAny>) -> bool {
    let first = table.get_item(name).and_then(|column| column.try_iter()?.next().transpose());
    first.is_ok_and(|first| first.is_some_and(|first| is_text(&first)))
}

/// A str, also one of pyarrow's.
fn is_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>() || type_name(value).ends_with("StringScalar")
}

/// A list of str.
///
/// # Errors
/// `TypeError` for an item of another type, by number, and for a whole table.
pub(crate) fn list(values: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    items(&column("values", values)?)?
        .enumerate()
        .map(|(row, value)| step().and_then(|()| text(&value?, || format!("value {row}"))))
        .collect()
}

/// Parses the option that says which token sequences `from_strings` builds for each text.
///
/// # Errors
/// `OptionError` for a name that is not known, or if open ends are combined with `"all"`.
pub(crate) fn tokenization(name: &str, open_end: bool) -> Result<Tokenization> {
    match (name, open_end) {
        ("canonical", false) => Ok(Tokenization::Canonical),
        ("canonical", true) => Ok(Tokenization::OpenEnd),
        ("all", false) => Ok(Tokenization::All),
        ("all", true) => Err(Class::Option.error("open_end goes with tokenization=\"canonical\", not with \"all\"")),
        _ => {
            let message = format!("tokenization is {name:?}: it must be \"canonical\" or \"all\"");
            Err(Class::Option.error(message))
        }
    }
}

/// The bytes of a str or bytes.
///
/// # Errors
/// `TypeError` for another type.
pub(crate) fn text_bytes(what: &str, text: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    if let Ok(text) = text.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = text.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    Err(PyTypeError::new_err(format!("{what} must be str or bytes, not {}", type_name(text))).into())
}
