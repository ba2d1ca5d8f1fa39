//! Results of calls: objects of the classes of `tokentrie.results`, made of their fields.

use crate::exit::{called, module};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use serde::Serialize;

/// The fields of a value, by their names.
///
/// # Errors
/// What Python raises.
pub(crate) fn fields<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyDict>> {
    Ok(pythonize::pythonize(py, value)?.cast_into::<PyDict>()?)
}

/// The value as Python's own lists, dicts and numbers.
///
/// # Errors
/// What Python raises.
pub(crate) fn plain<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}

/// A result of this class with these fields.
///
/// # Errors
/// What Python raises.
pub(crate) fn result<'py>(class: &str, fields: Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    // Looked up once: events and steps come for every token.
    static MAKERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = fields.py();
    let load = || PyResult::Ok(module(py, "tokentrie.results")?.getattr("_MAKERS")?.unbind());
    let maker = MAKERS.get_or_try_init(py, load)?.bind(py).get_item(class)?;
    called(&maker, &(fields,).into_pyobject(py)?, None)
}
