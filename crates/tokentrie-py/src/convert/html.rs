//! Results as HTML, for notebooks: the one helper is in Python.

use crate::exit::module;
use pyo3::prelude::*;

/// Returns the HTML that the function `name` of `tokentrie.html` makes of a result.
///
/// # Errors
/// Those of the function.
pub(crate) fn html(name: &str, result: &Bound<'_, PyAny>) -> PyResult<String> {
    module(result.py(), "tokentrie.html")?.getattr(name)?.call1((result,))?.extract()
}
