//! Types of Python as constraints: what is written of one, and what reads it.

use crate::errors::Result;
use crate::exit::{called, module};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

/// A type of Python whose texts are not its values: `Literal["a", "b"]`, an Enum, `bool`, `int | None`.
#[pyclass(frozen, name = "_Typed", module = "tokentrie")]
pub(crate) struct Typed {
    kind: Py<PyAny>,
    held: Py<PyAny>,
}

/// A function of the part that is written in Python.
fn in_python<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    module(py, "tokentrie.typed")?.getattr(name)
}

/// Returns whether it describes a type: a class, `list[int]`, `Literal["a"]`, `int | None`, a compiled pattern, an
/// adapter of pydantic's.
pub(crate) fn is_type(given: &Bound<'_, PyAny>) -> bool {
    const MODULES: [&str; 5] = ["types", "typing", "typing_extensions", "re", "pydantic.type_adapter"];
    given.is_instance_of::<PyType>()
        || given.get_type().module().is_ok_and(|module| MODULES.iter().any(|known| module == *known))
}

/// The rule that a type is, or its texts with what reads them.
///
/// # Errors
/// `TypeError` for a type that cannot be written, `RuleError` for what its schema or pattern holds.
pub(crate) fn of_type<'py>(kind: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    Ok(called(&in_python(kind.py(), "constraint")?, &PyTuple::new(kind.py(), [kind])?, None)?)
}

impl Typed {
    /// A list of str, or a rule.
    pub(crate) fn held<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.held.bind(py)
    }
}

#[pymethods]
impl Typed {
    #[new]
    fn new(kind: Py<PyAny>, held: Py<PyAny>) -> Self {
        Self { kind, held }
    }

    /// For what is written in Python: one place says what a type is.
    #[staticmethod]
    #[pyo3(name = "is_type")]
    fn py_is_type(given: &Bound<'_, PyAny>) -> bool {
        is_type(given)
    }

    fn parse<'py>(&self, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        let py = text.py();
        Ok(called(&in_python(py, "read")?, &(&self.kind, text).into_pyobject(py)?, None)?)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        self.kind.bind(other.py()).eq(&other.get().kind)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.kind.bind(py).hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name: String = module(py, "tokentrie.schemas")?.getattr("name")?.call1((&self.kind,))?.extract()?;
        Ok(format!("<tokentrie._Typed: {name}>"))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Py<PyAny>,))> {
        Ok((in_python(py, "constraint")?, (self.kind.clone_ref(py),)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.kind)?;
        visit.call(&self.held)
    }
}
