//! Chat templates, free of any model.

use crate::convert::data::{data, list_of_dicts};
use crate::convert::gil::released;
use crate::errors::{Class, Error, Result};
use crate::exit::module;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::hash::{Hash, Hasher};
use tokentrie::chat::{Clock, RenderOptions, TemplateError};

/// A chat template: the Jinja that comes with a model and turns messages into a prompt.
///
/// Rendered as Jinja2 renders it under the settings of transformers, byte for byte, and safe against templates of
/// strangers: rendering ends soon, with a text or an error. It cannot change, compares and hashes by content, and can
/// be pickled.
///
/// Args:
///     text: the template.
///     bos: what the template finds as `bos_token`.
///     eos: what the template finds as `eos_token`.
///
/// Raises:
///     TemplateError: it is not Jinja; the message says the line.
///
/// Example:
///     >>> template = tokentrie.ChatTemplate("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}")
///     >>> template.render([{"role": "user", "content": "Hello"}])
///     '[user] Hello'
#[pyclass(frozen, eq, hash, module = "tokentrie")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatTemplate(pub(crate) tokentrie::chat::ChatTemplate);

impl Hash for ChatTemplate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.text(), self.0.bos(), self.0.eos()).hash(state);
    }
}

#[pymethods]
impl ChatTemplate {
    #[new]
    #[pyo3(signature = (text, bos="", eos=""))]
    fn new(py: Python<'_>, text: &str, bos: &str, eos: &str) -> Result<Self> {
        Ok(Self(released(py, || tokentrie::chat::ChatTemplate::new(text, bos, eos))?))
    }

    /// The text of a conversation.
    ///
    /// Where the template refuses the messages as they are, other shapes of the same conversation are tried, fewest
    /// changes first: arguments of tool calls as dict instead of JSON text, and the other way round; "" for content
    /// that is None or missing; content parts as one str, and the other way round; "developer" as "system"; the system
    /// message at the head of the first user message.
    ///
    /// Args:
    ///     messages: a list of dict with "role" and "content".
    ///     tools: a list of tool definitions (dict), as the template expects them.
    ///     add_generation_prompt: end where the assistant's answer begins.
    ///     now: the datetime that `strftime_now` tells; with None that of the clock.
    ///     adapt: try other shapes; with False the template gets exactly these messages.
    ///     variables: what the template finds under other names, such as `enable_thinking=False`.
    ///
    /// Returns:
    ///     str: the prompt.
    ///
    /// Raises:
    ///     TemplateError: the template refuses the messages, fails, or does more than it may: six million steps, 32 MB
    ///         of values and output. The message says the line.
    ///     TypeError: something is not a list of dict, or no JSON.
    ///     OptionError: something is not JSON.
    ///
    /// Example:
    ///     >>> template = tokentrie.ChatTemplate("{{ messages[0].content }}{{ ' /think' if deep }}")
    ///     >>> template.render([{"role": "user", "content": "Why?"}], deep=True)
    ///     'Why? /think'
    #[pyo3(signature = (messages, tools=None, *, add_generation_prompt=true, now=None, adapt=true, **variables))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn render(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        add_generation_prompt: bool,
        now: Option<&Bound<'_, PyAny>>,
        adapt: bool,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> Result<String> {
        let messages = list_of_dicts("messages", messages)?;
        let tools = tools.map(|tools| list_of_dicts("tools", tools)).transpose()?;
        let options = options(add_generation_prompt, now, variables)?.with_adapt(adapt);
        Ok(released(py, || self.0.render(&messages, tools.as_ref(), &options))?)
    }

    /// str: the template as it was given.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// str: what the template finds as `bos_token`.
    #[getter]
    fn bos(&self) -> &str {
        self.0.bos()
    }

    /// str: what the template finds as `eos_token`.
    #[getter]
    fn eos(&self) -> &str {
        self.0.eos()
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        const SHOWN: usize = 40;
        let text: String = self.text().chars().take(SHOWN).collect();
        let dots = if text.len() < self.text().len() { "..." } else { "" };
        let repr = |text: &str| PyString::new(py, text).repr().map(|text| text.to_string());
        let [text, bos, eos] = [repr(&text)?, repr(self.bos())?, repr(self.eos())?];
        Ok(format!("ChatTemplate({text}{dots}, bos={bos}, eos={eos})"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let template = slf.get();
        let arguments = PyTuple::new(slf.py(), [template.text(), template.bos(), template.eos()])?;
        Ok((slf.get_type().into_any(), arguments))
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }
}

fn field(now: &Bound<'_, PyAny>, name: &str) -> PyResult<i16> {
    now.getattr(name)?.extract()
}

/// Reads the options of a rendering.
pub(crate) fn options(
    add_generation_prompt: bool,
    now: Option<&Bound<'_, PyAny>>,
    variables: Option<&Bound<'_, PyDict>>,
) -> Result<RenderOptions> {
    let mut options = RenderOptions::default().with_generation_prompt(add_generation_prompt);
    if let Some(now) = now {
        if !now.is_instance(&module(now.py(), "datetime")?.getattr("datetime")?)? {
            let message = format!("now must be a datetime, not {}", crate::convert::ids::type_name(now));
            return Err(PyTypeError::new_err(message).into());
        }
        let (year, month, day) = (field(now, "year")?, field(now, "month")?, field(now, "day")?);
        let (hour, minute, second) = (field(now, "hour")?, field(now, "minute")?, field(now, "second")?);
        // Python's datetime holds no date or time outside of what these types hold.
        let clock = Clock::from_local_time(year, month as i8, day as i8, hour as i8, minute as i8, second as i8)
            .unwrap_or_default();
        let microsecond: i32 = now.getattr("microsecond")?.extract()?;
        options = options.with_clock(clock.with_microsecond(microsecond));
    }
    for (name, value) in variables.into_iter().flatten() {
        let name: String = name.extract()?;
        let value = data(&name, &value)?;
        options = options.with_variable(name, value);
    }
    Ok(options)
}

impl From<TemplateError> for Error {
    fn from(error: TemplateError) -> Self {
        Class::Template.error(error.to_string())
    }
}
