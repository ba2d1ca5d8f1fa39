//! The tools of a chat: definitions, and Python functions.

use crate::chat::constraint::choice_object;
use crate::chat::format::tool_choice;
use crate::chat::messages::dict;
use crate::convert::data::objects_of_json;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::{called, module};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use serde_json::Value;
use std::sync::Arc;
use tokentrie::chat::ToolError;
use tokentrie::chat::{known_tools, wrapped_tool};
use trie_core::work::{Limits, Work};

/// The tools that a model may call, prepared once.
///
/// Wherever tools are taken, a list will do too. What was worked out for one of these objects is found again at once,
/// however many tools there are.
///
/// Args:
///     tools: a list of definitions as chat APIs have them (dict with "type" and "function", or what stands in
///         "function" alone; those with "type" and "custom" are tools whose input is text), of Python functions with
///         type hints, of classes that describe arguments (pydantic models, dataclasses, TypedDicts), or of all of
///         these. A function's name, docstring and hints say what it does and takes; the docstring, as Google, numpy or
///         Sphinx write it, describes the arguments, and so does `Annotated[str, "..."]`. `Annotated[int, Field(ge=1)]`
///         is held. pydantic converts the hints where it is installed.
///
/// Raises:
///     OptionError: a tool has no name, two have the same, its parameters are no JSON Schema, or the grammar of its
///         input cannot be held.
///     TypeError: it is not a list of tools, a function takes what cannot be named or converted, or is a generator.
///
/// Example:
///     >>> def ring(times: int = 1) -> str:
///     ...     '''Rings the bell.'''
///     ...     return "ding " * times
///     >>> tools = tokentrie.Tools([ring, {"name": "stop", "description": "Stops it."}])
///     >>> tools.names
///     ['ring', 'stop']
///     >>> tools.definitions[0]["function"]["parameters"]["properties"]["times"]["type"]
///     'integer'
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Tools {
    core: tokentrie::chat::Tools,
    /// Definitions that templates get.
    definitions: Arc<Value>,
    /// As they were given.
    given: Vec<Py<PyAny>>,
}

impl Tools {
    pub(crate) fn core(&self) -> &tokentrie::chat::Tools {
        &self.core
    }

    pub(crate) fn definitions(&self) -> &Arc<Value> {
        &self.definitions
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.core.iter().map(|tool| &tool.name[..]).collect()
    }

    /// Converts an argument to tools: tools themselves, or a list of them.
    ///
    /// # Errors
    /// As the class.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> Result<Py<Self>> {
        match given.cast::<Self>() {
            Ok(tools) => Ok(tools.clone().unbind()),
            Err(_) => Ok(Py::new(given.py(), Self::new(given)?)?),
        }
    }

    /// The same, and none for None.
    pub(crate) fn of_optional(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> Result<Py<Self>> {
        if let Some(given) = given {
            return Self::of(given);
        }
        let (core, definitions) = (tokentrie::chat::Tools::default(), Arc::new(Value::Array(Vec::new())));
        Ok(Py::new(py, Self { core, definitions, given: Vec::new() })?)
    }
}

fn one(number: usize, tool: &Bound<'_, PyAny>) -> Result<Value> {
    let (py, place) = (tool.py(), format!("tools[{number}]"));
    if tool.is_instance_of::<PyDict>() {
        return Ok(wrapped_tool(dict(&place, tool)?));
    }
    if tool.is_callable() {
        let made = called(&module(py, "tokentrie.tools")?.getattr("of_function")?, &(tool,).into_pyobject(py)?, None)?;
        return Ok(wrapped_tool(dict(&place, &made)?));
    }
    let message = format!(
        "{place} must be a dict, a function or a class that describes arguments, not {} of type {}",
        shown(tool),
        type_name(tool)
    );
    Err(PyTypeError::new_err(message).into())
}

#[pymethods]
impl Tools {
    #[new]
    fn new(tools: &Bound<'_, PyAny>) -> Result<Self> {
        if let Ok(tools) = tools.cast::<Self>() {
            let Self { core, definitions, given } = tools.get();
            let given = given.iter().map(|tool| tool.clone_ref(tools.py())).collect();
            return Ok(Self { core: core.clone(), definitions: Arc::clone(definitions), given });
        }
        if !tools.is_instance_of::<PyList>() && !tools.is_instance_of::<PyTuple>() {
            let message = format!("tools must be a list of dict and functions, or Tools, not {}", type_name(tools));
            return Err(PyTypeError::new_err(message).into());
        }
        let (mut definitions, mut given) = (Vec::new(), Vec::new());
        // Ctrl-C ends the reading of long ones.
        Work::asking(Limits::NONE).run(|| {
            for (number, tool) in tools.try_iter()?.enumerate() {
                let tool = tool?;
                definitions.push(one(number, &tool)?);
                given.push(tool.unbind());
            }
            Ok::<(), Error>(())
        })?;
        let definitions = Value::Array(definitions);
        Ok(Self { core: known_tools(&definitions)?, definitions: Arc::new(definitions), given })
    }

    /// list[str]: their names, in order.
    #[getter(names)]
    fn py_names(&self) -> Vec<&str> {
        self.names()
    }

    /// list[dict[str, Any]]: their definitions; templates get a custom tool as a function of `input`.
    #[getter(definitions)]
    fn py_definitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        objects_of_json(py, &self.definitions)
    }

    /// dict[str, Callable]: those that were given as functions or classes, by name.
    #[getter]
    fn functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let functions = PyDict::new(py);
        for (tool, given) in self.core.iter().zip(&self.given) {
            let given = given.bind(py);
            if !given.is_instance_of::<PyDict>() {
                functions.set_item(&tool.name, given)?;
            }
        }
        Ok(functions)
    }

    /// Returns `tool_choice` of chat APIs in the form that `Model.chat` takes.
    fn _choice<'py>(&self, given: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let choice = tool_choice(Some(given), Some(&self.names()))?;
        Ok(choice_object(given.py(), &choice)?)
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.core.position(name).is_some()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.definitions == other.get().definitions)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hash = DefaultHasher::new();
        self.names().hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        const SHOWN: usize = 4;
        let names = self.names();
        let more = if names.len() > SHOWN { ", …" } else { "" };
        let count = if names.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", names.len()) };
        let shown = names[..names.len().min(SHOWN)].join(", ");
        let colon = if names.is_empty() { "" } else { ": " };
        format!("<tokentrie.Tools of {count}{colon}{shown}{more}>")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyList>,))> {
        let given = PyList::new(slf.py(), slf.get().given.iter().map(|tool| tool.bind(slf.py())))?;
        Ok((slf.get_type().into_any(), (given,)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.given.iter().try_for_each(|tool| visit.call(tool))
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        Class::Option.error(error.to_string())
    }
}
