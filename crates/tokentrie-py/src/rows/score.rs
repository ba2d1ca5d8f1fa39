//! Scoring of continuations, and the scores of rows so far.

use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::{load_numpy, module};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use trie_core::ScoreMode;

/// Scoring of a continuation.
pub(crate) struct Score(pub(crate) ScoreMode);

impl<'a, 'py> FromPyObject<'a, 'py> for Score {
    type Error = Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        let word = obj.cast::<PyString>().ok();
        match word.as_ref().and_then(|word| word.to_str().ok()) {
            Some("model") => Ok(Self(ScoreMode::Model)),
            Some("renormalised") => Ok(Self(ScoreMode::Renormalised)),
            Some("given") => Ok(Self(ScoreMode::AsGiven)),
            _ => Err(Class::Option
                .error(format!("score is {}: it must be \"model\", \"renormalised\" or \"given\"", shown(&obj)))),
        }
    }
}

/// Scores of rows as doubles, from any sequence of numbers.
pub(crate) fn doubles(py: Python<'_>, what: &str, values: &Bound<'_, PyAny>) -> Result<Vec<f64>> {
    load_numpy(py)?;
    let array = module(py, "numpy")?.call_method1("asarray", (values, "float64")).map_err(|_| {
        let message = format!("{what} must be a list or array of numbers, not {}", type_name(values));
        Error::from(PyTypeError::new_err(message))
    })?;
    let array = array.call_method0("ravel")?.cast_into::<PyArray1<f64>>().map_err(PyErr::from)?;
    array.to_vec().map_err(|error| Error::Array(error.to_string()))
}
