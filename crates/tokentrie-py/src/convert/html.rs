//! Results as HTML, for notebooks: the one helper is in Python.

use pyo3::prelude::*;

/// What the function `name` of `tokentrie.html` makes of a result.
pub(crate) fn html(name: &str, result: &Bound<'_, PyAny>) -> PyResult<String> {
    result.py().import("tokentrie.html")?.getattr(name)?.call1((result,))?.extract()
}
