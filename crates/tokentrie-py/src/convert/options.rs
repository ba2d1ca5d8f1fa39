//! Options of a call: one dict of Python's, read as those of every host.

use crate::convert::ids::{self, shown, tokens, type_name};
use crate::convert::strings::one_or_more;
use crate::convert::words::Mode;
use crate::errors::{Class, Error, Result};
use crate::rows::sampling::{Given, Keywords, Sampling};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use serde_json::{Map, Value};
use tokentrie::call::Stops;
use tokentrie::constraint::{SpecError, SpecProblem};
use trie_core::{LogitBias, SamplerOptions, TokenId};

/// The options of a call, and those of them that Python gives as objects.
pub(crate) struct Options<T> {
    /// Options that are data.
    pub(crate) data: T,
    /// Sampling options, from all their keywords.
    pub(crate) sampling: SamplerOptions,
    /// `true` where `mode` was "exact".
    pub(crate) exact: bool,
    pub(crate) stop: Stops,
    pub(crate) end_tokens: Option<Vec<TokenId>>,
    pub(crate) logit_bias: LogitBias,
}

/// Keyword argument that may be missing.
type Keyword<'py> = Option<Bound<'py, PyAny>>;

/// Options that are objects in Python.
#[derive(Default)]
struct Objects<'py> {
    mode: Keyword<'py>,
    sampling: Keyword<'py>,
    settings: Option<Bound<'py, PyDict>>,
    stop: Keyword<'py>,
    end_tokens: Keyword<'py>,
    logit_bias: Keyword<'py>,
}

impl<T> Options<T> {
    /// Reads the keywords that a call does not take itself: `taken` of them as objects, the others by `read`.
    ///
    /// # Errors
    /// `TypeError` for names that there are not and values of another type, `OptionError` for values out of range.
    pub(crate) fn read(
        py: Python<'_>,
        call: &'static str,
        given: Option<&Bound<'_, PyDict>>,
        taken: &[&str],
        read: impl FnOnce(&Value) -> std::result::Result<T, SpecError>,
    ) -> Result<Self> {
        let (mut objects, mut fields) = (Objects::default(), Map::new());
        let draws = taken.contains(&"sampling");
        for (name, value) in given.into_iter().flatten() {
            let name = name.cast::<PyString>().map_err(PyErr::from)?;
            let name = name.to_str()?;
            let place = match name {
                "mode" if draws => &mut objects.mode,
                "sampling" if draws => &mut objects.sampling,
                "stop" if taken.contains(&name) => &mut objects.stop,
                "end_tokens" if taken.contains(&name) => &mut objects.end_tokens,
                "logit_bias" if taken.contains(&name) => &mut objects.logit_bias,
                // There it is a mode.
                "exact" => return Err(unknown(call, name)),
                setting if draws && Keywords::knows(setting) => {
                    objects.settings.get_or_insert_with(|| PyDict::new(py)).set_item(name, value)?;
                    continue;
                }
                // Said of them by name in the signatures of Python.
                "max_tokens" | "logprobs" if value.is_none() && draws => continue,
                _ => {
                    fields.insert(name.to_owned(), value_of(name, &value)?);
                    continue;
                }
            };
            *place = Some(value).filter(|value| !value.is_none());
        }
        let data = read(&Value::Object(fields)).map_err(|error| refused(call, error, given))?;
        let exact = |mode: &Bound<'_, PyAny>| mode.cast::<PyString>().is_ok_and(|word| word == "exact");
        let exact = call == "generate" && objects.mode.as_ref().is_some_and(exact);
        let mode = objects.mode.filter(|_| !exact).map(|mode| mode.extract::<Mode>()).transpose()?;
        let mode = if exact { Some(Mode(trie_core::Mode::Greedy)) } else { mode };
        let sampling = objects.sampling.as_ref().map(|sampling| sampling.cast::<Sampling>()).transpose();
        let sampling = sampling.map_err(PyErr::from)?;
        let keywords =
            Keywords { call, mode: Given(mode), placed: None, settings: objects.settings.as_ref(), sampling };
        let stop = objects.stop.map(|stop| one_or_more("stop", &stop)).transpose()?.unwrap_or_default();
        Ok(Self {
            data,
            sampling: keywords.options(py)?,
            exact,
            stop: Stops::new(&stop).map_err(|error| Class::Option.error(error.to_string()))?,
            end_tokens: objects.end_tokens.map(|ends| tokens(&ends, "end_tokens, ")).transpose()?,
            logit_bias: ids::logit_bias(objects.logit_bias.as_ref())?,
        })
    }
}

/// A value of JSON that is not a list.
fn value_of(name: &str, value: &Bound<'_, PyAny>) -> Result<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.into());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        // Anything that is not a number in JSON is refused as one that is out of range.
        let number = number.value();
        return Ok(serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number));
    }
    if let (true, Ok(number)) = (value.is_instance_of::<PyInt>(), value.extract::<i64>()) {
        return Ok(number.into());
    }
    // Also numbers of numpy's, and those that are too large for any option.
    let is_number = value.hasattr("__index__")?;
    match value.extract::<i64>() {
        Ok(number) => Ok(number.into()),
        Err(_) if is_number => Err(Class::Option.error(format!("{name} is {}: no option is so large", shown(value)))),
        Err(_) => Err(wrong_type(name, value, "a bool, a number or a str")),
    }
}

fn unknown(call: &str, name: &str) -> Error {
    PyTypeError::new_err(format!("{call}() got an unexpected keyword argument '{name}'")).into()
}

fn wrong_type(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> Error {
    let (shown, of) = (shown(value), type_name(value));
    PyTypeError::new_err(format!("argument '{name}': it must be {expected}, not {shown} of type {of}")).into()
}

/// The error of options that were read, as Python says it: keywords have no place, but a name.
fn refused(call: &str, error: SpecError, given: Option<&Bound<'_, PyDict>>) -> Error {
    let (place, problem) = error.into_parts();
    let name = place.trim_start_matches("$.");
    let value = given.and_then(|given| given.get_item(name).ok().flatten());
    match (problem, value) {
        (SpecProblem::Unknown { .. }, _) => unknown(call, name),
        (SpecProblem::Type { expected, .. }, Some(value)) => {
            let is_word = value.is_instance_of::<PyString>() && expected.starts_with('"');
            let is_whole = value.hasattr("__index__").unwrap_or(false) && !value.is_instance_of::<PyBool>();
            let is_number = is_whole || (value.is_instance_of::<PyFloat>() && expected.starts_with("a number"));
            let range = expected.strip_prefix("an integer ").filter(|_| is_whole);
            let range = range.or_else(|| expected.strip_prefix("a number ").filter(|_| is_number));
            match range {
                Some(range) => Class::Option.error(format!("{name} is {}: it must be {range}", shown(&value))),
                None if is_word || (is_number && expected.starts_with("a number")) => {
                    Class::Option.error(format!("{name} is {}: it must be {expected}", shown(&value)))
                }
                None => wrong_type(name, &value, &expected),
            }
        }
        (problem, _) => {
            let reason = problem.to_string();
            Class::Option.error(match reason.strip_prefix("it ") {
                Some(rest) => format!("{name} {rest}"),
                None => format!("{name}: {reason}"),
            })
        }
    }
}
