//! `a + b` of constraints, which is decided in Python.

use crate::errors::Result;
use crate::exit::{called, module};
use pyo3::prelude::*;

/// `one + other`: the one constraint after the other, as the classes of Python's say.
pub(crate) fn added<'py>(one: &Bound<'py, PyAny>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let py = one.py();
    let added = module(py, "tokentrie.rules")?.getattr("add_constraints")?;
    Ok(called(&added, &(one, other).into_pyobject(py)?, None)?)
}
