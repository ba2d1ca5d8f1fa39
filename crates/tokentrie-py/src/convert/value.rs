//! Value of a text: the text itself, or a Python object.

use crate::errors::Result;
use crate::exit::called;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::convert::Infallible;
use std::sync::Arc;

/// A text, or what a rule made of one.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Parsed(Arc<Py<PyAny>>),
}

impl Value {
    /// Parses a text with a rule or another pattern.
    ///
    /// # Errors
    /// What its `parse` raises.
    pub(crate) fn parsed(rule: &Bound<'_, PyAny>, text: String) -> Result<Self> {
        let parse = rule.getattr("parse")?;
        let value = called(&parse, &(text,).into_pyobject(rule.py())?, None)?;
        Ok(Self::from(&value))
    }
}

impl From<&Bound<'_, PyAny>> for Value {
    fn from(value: &Bound<'_, PyAny>) -> Self {
        match value.cast_exact::<PyString>().ok().and_then(|text| text.to_str().ok()) {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Parsed(Arc::new(value.clone().unbind())),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Parsed(one), Self::Parsed(other)) => {
                Python::attach(|py| one.bind(py).eq(other.bind(py)).unwrap_or(false))
            }
            _ => false,
        }
    }
}

impl<'py> IntoPyObject<'py> for Value {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> std::result::Result<Self::Output, Infallible> {
        Ok(match self {
            Self::Text(text) => PyString::new(py, &text).into_any(),
            Self::Parsed(value) => value.bind(py).clone(),
        })
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Value {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::from(&*value))
    }
}
