//! Response templates: how the author of a model says that its replies are read.

use crate::chat::messages::dict;
use crate::chat::tools::Tools;
use crate::convert::data::objects_of_json;
use crate::convert::gil::{locked, released};
use crate::convert::ids::type_name;
use crate::errors::{Class, Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Mutex;
use tokentrie::chat::{RegionEvent, ResponseError, ResponseParser as Core, ResponseTemplate as Template};

/// A response template: JSON by which the author of a model says how its replies are read.
///
/// transformers keeps it in `tokenizer_config.json`.
///
/// It reads replies as transformers' `ResponseParser` does, into the same dict. For `ChatFormat`, which also streams
/// parts of calls and constrains replies, see its argument `response_template`. Cannot change; may be used from several
/// threads; can be pickled.
///
/// Args:
///     source: a dict, or its JSON; a whole `tokenizer_config.json` that holds one, too.
///
/// Raises:
///     TemplateError: it has an unknown key, a pattern or a content parser that cannot be used, or lacks `fields` or
///         `start_anchor`.
///
/// Example:
///     >>> template = tokentrie.ResponseTemplate({
///     ...     "start_anchor": "<|bot|>",
///     ...     "fields": {
///     ...         "reasoning_content": {"open": "<think>", "close": "</think>"},
///     ...         "content": {"close": "<|end|>"},
///     ...     },
///     ... })
///     >>> template.parse("<think>A bell.</think>Ding.<|end|>")
///     {'reasoning_content': 'A bell.', 'content': 'Ding.'}
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct ResponseTemplate(pub(crate) Template);

fn definitions(tools: Option<&Bound<'_, PyAny>>) -> Result<Vec<Value>> {
    let tools = tools.map(Tools::of).transpose()?;
    Ok(tools.map_or_else(Vec::new, |tools| tools.get().definitions().as_array().cloned().unwrap_or_default()))
}

impl ResponseTemplate {
    /// Reads a response template from what Python gives for one.
    ///
    /// # Errors
    /// As [`ResponseTemplate`]; `TypeError` for anything that is neither a dict nor text nor a response template.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> Result<Template> {
        if let Ok(known) = given.cast::<Self>() {
            return Ok(known.get().0.clone());
        }
        if let Ok(text) = given.cast::<PyString>() {
            return Ok(Template::from_json(text.to_str()?)?);
        }
        if !given.is_instance_of::<PyDict>() {
            let message =
                format!("response_template must be a dict, a str or a ResponseTemplate, not {}", type_name(given));
            return Err(PyTypeError::new_err(message).into());
        }
        let value = dict("response_template", given)?;
        Ok(Template::new(value.get("response_template").unwrap_or(&value))?)
    }
}

#[pymethods]
impl ResponseTemplate {
    #[new]
    #[pyo3(signature = (source))]
    fn new(source: &Bound<'_, PyAny>) -> Result<Self> {
        Self::of(source).map(Self)
    }

    /// The response template in a file: its JSON, or a `tokenizer_config.json` that holds one.
    ///
    /// Args:
    ///     path: the file.
    ///
    /// Returns:
    ///     ResponseTemplate.
    ///
    /// Raises:
    ///     TemplateError: as for the constructor.
    ///     OSError: the file cannot be read.
    ///
    /// Example:
    ///     >>> import json, pathlib, tempfile
    ///     >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokenizer_config.json"
    ///     >>> said = {"start_anchor": "<|bot|>", "fields": {"content": {}}}
    ///     >>> _ = path.write_text(json.dumps({"eos_token": "</s>", "response_template": said}))
    ///     >>> tokentrie.ResponseTemplate.from_file(path).source == said
    ///     True
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> Result<Self> {
        let text = released(py, || std::fs::read_to_string(&path)).map_err(PyErr::from)?;
        Ok(Self(Template::from_json(&text)?))
    }

    /// dict[str, Any]: the JSON of it.
    #[getter]
    fn source<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        objects_of_json(py, self.0.source())
    }

    /// The message that a whole reply is, as transformers' `parse_response` gives it.
    ///
    /// Args:
    ///     reply: the text of the reply, its control tokens as text.
    ///     prompt: the prompt before it. From the last `start_anchor` on it belongs to the reply.
    ///     tools: a list of tools, or Tools: texts of arguments become values of the types that their schemas name.
    ///
    /// Returns:
    ///     dict[str, Any].
    ///
    /// Raises:
    ///     OptionError: the text of a field is not what the response template says, or a field is missing that is not
    ///         optional.
    ///
    /// Example:
    ///     >>> template = tokentrie.ResponseTemplate({
    ///     ...     "start_anchor": "<|bot|>",
    ///     ...     "fields": {"thinking": {"open": "<think>", "close": "</think>"}, "content": {}},
    ///     ... })
    ///     >>> template.parse("A bell.</think>Ding.", prompt="<|user|>Ring!<|bot|><think>")
    ///     {'thinking': 'A bell.', 'content': 'Ding.'}
    #[pyo3(signature = (reply, prompt="", tools=None))]
    fn parse<'py>(
        &self,
        py: Python<'py>,
        reply: &str,
        prompt: &str,
        tools: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let tools = definitions(tools)?;
        let message = released(py, || self.0.parse(prompt, reply, &tools))?;
        Ok(objects_of_json(py, &message)?)
    }

    /// A parser of a reply that comes in parts.
    ///
    /// Args:
    ///     prompt, tools: as for `parse`.
    ///
    /// Returns:
    ///     ResponseParser.
    ///
    /// Raises:
    ///     OptionError: the prompt holds a region that is not a value of its field.
    ///
    /// Example:
    ///     >>> said = {"start_anchor": "<|bot|>", "fields": {"content": {"close": "<|end|>"}}}
    ///     >>> parser = tokentrie.ResponseTemplate(said).parser()
    ///     >>> [event["type"] for event in parser.push("Ding")]
    ///     ['region_open', 'region_chunk']
    ///     >>> parser.push("<|end|>")
    ///     [{'type': 'region_close', 'field': 'content', 'value': 'Ding'}]
    ///     >>> parser.finish()
    ///     {'content': 'Ding'}
    #[pyo3(signature = (prompt="", tools=None))]
    fn parser(&self, py: Python<'_>, prompt: &str, tools: Option<&Bound<'_, PyAny>>) -> Result<ResponseParser> {
        let tools = definitions(tools)?;
        let parser = released(py, || self.0.parser(prompt, &tools))?;
        Ok(ResponseParser(Mutex::new(Reading { parser, last: Vec::new() })))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0.source() == other.get().0.source())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hash = DefaultHasher::new();
        self.0.source().to_string().hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        let fields = self.0.source()["fields"].as_object();
        let names: Vec<&str> = fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        format!("<tokentrie.ResponseTemplate: {}>", names.join(", "))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let text = slf.get().0.source().to_string();
        Ok((slf.get_type().into_any(), (text,).into_pyobject(slf.py())?))
    }
}

/// Reads a reply by its response template as it comes, in parts of any size; from `ResponseTemplate.parser`.
///
/// Its events are those of transformers' `ResponseParser`: a dict with the type `region_open`, `region_chunk` or
/// `region_close`, and the field. What may still become a border of a region is held.
///
/// Example:
///     >>> said = {"start_anchor": "<|bot|>", "fields": {"content": {"close": "<|end|>"}}}
///     >>> parser = tokentrie.ResponseTemplate(said).parser()
///     >>> [event.get("text") for event in parser.push("Ding<|en")]
///     [None, 'Ding']
///     >>> parser.finish()
///     {'content': 'Ding<|en'}
#[pyclass(frozen, module = "tokentrie.chat")]
pub(crate) struct ResponseParser(Mutex<Reading>);

struct Reading {
    parser: Core,
    last: Vec<Value>,
}

#[pymethods]
impl ResponseParser {
    /// list[dict[str, Any]]: the events of the regions that the prompt begins.
    #[getter]
    fn first_events<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let events = locked(py, &self.0)?.parser.first_events().iter().map(RegionEvent::to_json).collect();
        Ok(objects_of_json(py, Value::Array(events))?)
    }

    /// list[dict[str, Any]]: the events of the end of the reply; [] before.
    #[getter]
    fn last_events<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let events = locked(py, &self.0)?.last.clone();
        Ok(objects_of_json(py, Value::Array(events))?)
    }

    /// Reads more of the reply.
    ///
    /// Args:
    ///     text: the next part.
    ///
    /// Returns:
    ///     list[dict[str, Any]]: what became certain with it.
    ///
    /// Raises:
    ///     OptionError: a region that ended is not a value of its field, or the reply is over.
    ///
    /// Example:
    ///     >>> said = {"start_anchor": "<|bot|>", "fields": {"content": {}}}
    ///     >>> tokentrie.ResponseTemplate(said).parser().push("Ding")[1]["text"]
    ///     'Ding'
    #[pyo3(signature = (text))]
    fn push<'py>(&self, py: Python<'py>, text: &str) -> Result<Bound<'py, PyAny>> {
        let mut reading = locked(py, &self.0)?;
        let parser = &mut reading.parser;
        let events = released(py, || parser.push(text))?;
        drop(reading);
        Ok(objects_of_json(py, Value::Array(events.iter().map(RegionEvent::to_json).collect()))?)
    }

    /// Ends the reply.
    ///
    /// Returns:
    ///     dict[str, Any]: the message. The last events are in `last_events`.
    ///
    /// Raises:
    ///     OptionError: the last region is not a value of its field, a field is missing that is not optional, or the
    ///         reply is over.
    ///
    /// Example:
    ///     >>> said = {"start_anchor": "<|bot|>", "defaults": {"role": "assistant"}, "fields": {"content": {}}}
    ///     >>> tokentrie.ResponseTemplate(said).parser().finish()
    ///     {'role': 'assistant'}
    fn finish<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let mut reading = locked(py, &self.0)?;
        let parser = &mut reading.parser;
        let (message, events) = released(py, || parser.finish())?;
        reading.last = events.iter().map(RegionEvent::to_json).collect();
        drop(reading);
        Ok(objects_of_json(py, &message)?)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __repr__(&self) -> &'static str {
        "<tokentrie.chat.ResponseParser>"
    }
}

impl From<ResponseError> for Error {
    fn from(error: ResponseError) -> Self {
        let class = match error {
            ResponseError::Template { .. } | ResponseError::Unread { .. } | ResponseError::Unwritable { .. } => {
                Class::Template
            }
            _ => Class::Option,
        };
        class.error(error.to_string())
    }
}
