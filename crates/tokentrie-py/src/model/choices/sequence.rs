//! Choices over many prompts as a sequence and as a table.

use crate::convert::generic::generic;
use crate::errors::{Error, Result};
use crate::exit::module;
use crate::model::choices::{Choices, OnError};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PySlice};

generic!(Choices);

impl Choices {
    fn table<'py>(slf: &Bound<'py, Self>, name: &str) -> Result<Bound<'py, PyAny>> {
        let Self { given, on_error, .. } = slf.get();
        let tables = module(slf.py(), "tokentrie.tables")?;
        Ok(tables.call_method1(name, (slf, given, *on_error == OnError::Return))?)
    }
}

#[pymethods]
impl Choices {
    /// As a pyarrow.Table, which needs the package pyarrow.
    ///
    /// Returns:
    ///     pyarrow.Table: a row a choice, with the columns "choice" (its value: null below the threshold),
    ///         "probability", "mass" and "probabilities" (a map from names or numbers, the most probable
    ///         first); with `on_error="return"` also "error", whose text stands beside nulls.
    ///
    /// Raises:
    ///     ModuleNotFoundError: pyarrow is not installed.
    ///
    /// Example:
    ///     >>> import pyarrow
    ///     >>> choices = tokentrie.Model().choose_many(["The sky is ", "Roses are "], ["blue", "red"])
    ///     >>> choices.to_arrow().column_names
    ///     ['choice', 'probability', 'mass', 'probabilities']
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Self::table(slf, "to_arrow")
    }

    /// As a pandas.DataFrame, which needs the package pandas.
    ///
    /// Returns:
    ///     pandas.DataFrame: the columns of `to_arrow`, with a dict in "probabilities". Where the prompts are a Series,
    ///         its index is theirs: `frame.join(choices.to_pandas())`.
    ///
    /// Raises:
    ///     ModuleNotFoundError: pandas is not installed.
    ///
    /// Example:
    ///     >>> import pandas
    ///     >>> frame = pandas.DataFrame({"text": ["The sky is ", "Roses are "]})
    ///     >>> choices = tokentrie.Model().choose_many(frame["text"], ["blue", "red"])
    ///     >>> sorted(frame.join(choices.to_pandas()).columns)
    ///     ['choice', 'mass', 'probabilities', 'probability', 'text']
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Self::table(slf, "to_pandas")
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        self.size(py, "length")
    }

    fn __bool__(&self, py: Python<'_>) -> Result<bool> {
        Ok(self.count.is_none() || self.size(py, "length")? > 0)
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let py = key.py();
        if let Ok(slice) = key.cast::<PySlice>() {
            let size = self.size(py, "slices")?;
            let range = slice.indices(size as isize)?;
            let numbers = (0..range.slicelength).map(|step| (range.start + step as isize * range.step) as usize);
            let made = numbers.map(|number| self.at(py, number)).collect::<Result<Vec<_>>>()?;
            return Ok(PyList::new(py, made.into_iter().flatten())?.into_any());
        }
        let outside = |asked: &dyn std::fmt::Display| Error::Index(format!("there is no choice {asked}"));
        let asked = key
            .extract::<isize>()
            .map_err(|error| if error.is_instance_of::<PyOverflowError>(py) { outside(key) } else { error.into() })?;
        // An index from the front need not know how many there are.
        let size = if asked < 0 || self.count.is_none() { self.size(py, "indices")? } else { 0 };
        let number = usize::try_from(if asked < 0 { asked.saturating_add_unsigned(size) } else { asked }).ok();
        let found = number.map(|number| self.at(py, number)).transpose()?.flatten();
        found.map(|made| made.into_bound(py)).ok_or_else(|| outside(&asked))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().count {
            None => Ok(slf.clone().into_any()),
            Some(_) => Ok(Bound::new(slf.py(), Pass { of: slf.clone().unbind(), next: 0 })?.into_any()),
        }
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyIterator>> {
        Ok(self.__getitem__(&PySlice::new(py, isize::MAX, isize::MIN, -1).into_any())?.try_iter()?)
    }
}

/// One pass over choices that are kept.
#[pyclass(module = "tokentrie")]
struct Pass {
    of: Py<Choices>,
    next: usize,
}

#[pymethods]
impl Pass {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> Result<Option<Py<PyAny>>> {
        let made = self.of.get().at(py, self.next)?;
        self.next += usize::from(made.is_some());
        Ok(made)
    }
}
