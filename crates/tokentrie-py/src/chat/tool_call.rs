//! A call of a tool, as a model asked for it.

use crate::convert::pickled::pickled;
use crate::exit::module;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A call of a tool, as a model asked for it.
///
/// Args:
///     id: its id; "" where the format of the model has none.
///     name: the tool.
///     arguments: its arguments as JSON text.
///     probability: how probable the name was, where that was asked for.
///     probabilities: the same for arguments with an enum or a boolean, by their names.
///
/// Example:
///     >>> call = tokentrie.ToolCall("", "ring", '{"times": 2}')
///     >>> (call.name, call.parsed["times"])
///     ('ring', 2)
#[pyclass(frozen, from_py_object, module = "tokentrie")]
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolCall {
    /// str: its id; "" where the format of the model has none.
    #[pyo3(get)]
    pub(crate) id: String,
    /// str: the tool.
    #[pyo3(get)]
    pub(crate) name: String,
    /// str: its arguments as JSON text; cut off where the reply was cut off inside them.
    #[pyo3(get)]
    pub(crate) arguments: String,
    /// float | None: the probability of the name's tokens among what was legal; None where it was not asked for, or
    /// where the name began inside a token of free text.
    #[pyo3(get)]
    pub(crate) probability: Option<f64>,
    pub(crate) probabilities: Vec<(String, f64)>,
}

#[pymethods]
impl ToolCall {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str, &'static str) = ("id", "name", "arguments");

    #[new]
    #[pyo3(signature = (id, name, arguments, probability=None, probabilities=None))]
    fn new(
        id: String,
        name: String,
        arguments: String,
        probability: Option<f64>,
        probabilities: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let shares = probabilities.into_iter().flatten();
        let shares = shares.map(|(name, share)| Ok((name.extract()?, share.extract()?)));
        Ok(Self { id, name, arguments, probability, probabilities: shares.collect::<PyResult<_>>()? })
    }

    /// Any: the arguments as `json.loads` reads them, mostly a dict; ValueError where they were cut off.
    #[getter]
    fn parsed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        module(py, "json")?.call_method1("loads", (&self.arguments,))
    }

    /// dict[str, float]: the probabilities of arguments with an enum or a boolean, by their names, where they were
    /// asked for.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shares = PyDict::new(py);
        self.probabilities.iter().try_for_each(|(name, share)| shares.set_item(name, share))?;
        Ok(shares)
    }

    /// The call as chat APIs write it.
    ///
    /// Returns:
    ///     dict[str, Any].
    ///
    /// Example:
    ///     >>> tokentrie.ToolCall("c1", "ring", "{}").to_dict()
    ///     {'id': 'c1', 'type': 'function', 'function': {'name': 'ring', 'arguments': '{}'}}
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (call, function) = (PyDict::new(py), PyDict::new(py));
        function.set_item("name", &self.name)?;
        function.set_item("arguments", &self.arguments)?;
        call.set_item("id", &self.id)?;
        call.set_item("type", "function")?;
        call.set_item("function", function)?;
        Ok(call)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let repr = |text: &str| PyString::new(py, text).repr().map(|text| text.to_string());
        let [id, name, arguments] = [repr(&self.id)?, repr(&self.name)?, repr(&self.arguments)?];
        Ok(format!("ToolCall({id}, {name}, {arguments})"))
    }
}

impl From<chat_format::ToolCall> for ToolCall {
    fn from(call: chat_format::ToolCall) -> Self {
        let chat_format::ToolCall { id, name, arguments, .. } = call;
        Self { id, name, arguments, ..Self::default() }
    }
}

pickled!(ToolCall { id, name, arguments, probability, probabilities });
