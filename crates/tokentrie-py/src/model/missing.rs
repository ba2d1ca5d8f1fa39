//! Functions that need llama.cpp, in a package without it: all raise one error.

use crate::errors::{Class, Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Returns the error, with the way to install llama.cpp.
pub(crate) fn refused(what: &str) -> Error {
    Class::Model.error(format!(
        "{what}, and this package was built without llama.cpp: install tokentrie without \
         `build-args=\"--no-default-features\"` to have it"
    ))
}

/// The native part of `tokentrie.Model`: this package was built without llama.cpp, so it can only be refused.
#[pyclass(frozen, subclass, name = "NativeModel", module = "tokentrie._native")]
pub(crate) struct Model;

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (*_args, **_keywords))]
    fn new(_args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Result<Self> {
        Err(refused("a Model runs on llama.cpp"))
    }
}

/// Iterator over the choices of `Model.choose_many`.
#[pyclass(frozen, module = "tokentrie.sets")]
pub(crate) struct Choices;

/// Checks a receipt: this package was built without llama.cpp, so it can only be refused.
///
/// Raises:
///     ModelError: always; it says how to get a package with llama.cpp.
#[pyfunction]
#[pyo3(signature = (*_args, **_keywords))]
pub(crate) fn verify_receipt(_args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Result<()> {
    Err(refused("receipts are of models that run on llama.cpp"))
}
