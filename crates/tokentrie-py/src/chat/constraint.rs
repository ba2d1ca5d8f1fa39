//! Constraint on a reply, used like any other.

use crate::chat::format::ChatFormat;
use crate::chat::message::message_result;
use crate::chat::tools::Tools;
use crate::convert::data::objects_of_json;
use crate::convert::ids::type_name;
use crate::errors::{Class, Result};
use crate::vocab::Vocab;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use tokentrie::chat::{CallSpelling, ConstraintOptions, ParserOptions, ToolChoice, Whitespace};
use tokentrie::constraint::{MOST_TOKENS, Reply, Spec, ToolUse};
use trie_core::AnyConstraint;

/// Constraint on a reply: free text, in which a call that begins becomes a valid one; from `ChatFormat.constraint`.
///
/// Stands wherever a constraint does, and is made anew for each vocabulary that it is used with. Compares by what it
/// was made of; can be pickled where its vocabulary can.
///
/// Example:
///     >>> model = tokentrie.Model()
///     >>> free = model.chat_format.constraint([{"name": "ring"}])
///     >>> sampler = tokentrie.Sampler(model.vocab, free)
///     >>> sampler.accept(model.vocab.tokenize('Ding.<tool_call>\n{"name": "', parse_special=True))
///     >>> set(model.vocab.detokenize(sampler.allowed()[-1:])) <= set('ring"')
///     True
#[pyclass(frozen, module = "tokentrie.chat")]
pub(crate) struct ChatConstraint {
    /// ChatFormat: the format of the replies.
    #[pyo3(get)]
    format: Py<ChatFormat>,
    /// Tools: the tools that may be called.
    #[pyo3(get)]
    tools: Py<Tools>,
    /// Vocab | None: the vocabulary that it was made for.
    #[pyo3(get)]
    vocab: Option<Py<Vocab>>,
    /// list[str]: what of the tools' schemas is not held.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// int | None: the most tokens of reasoning.
    #[pyo3(get)]
    thinking_budget: Option<u32>,
    options: ConstraintOptions,
    /// Constraint built over its vocabulary.
    made: Option<(Arc<trie_text::Vocab>, AnyConstraint)>,
}

impl ChatConstraint {
    /// # Errors
    /// As `ChatFormat.constraint`.
    pub(crate) fn new(
        format: &Bound<'_, ChatFormat>,
        tools: Py<Tools>,
        vocab: Option<Bound<'_, Vocab>>,
        thinking_budget: Option<u32>,
        mut options: ConstraintOptions,
    ) -> Result<Self> {
        let py = format.py();
        options.tools = tools.get().core().clone();
        let warnings = format.get().warn_of(py, &options)?.to_vec();
        let over = |vocab: &Bound<'_, Vocab>| {
            let vocab = vocab.get().core();
            Ok::<_, crate::errors::Error>((Arc::clone(vocab), format.get().over(py, &options, thinking_budget, vocab)?))
        };
        let made = vocab.as_ref().map(over).transpose()?;
        let (format, vocab) = (format.clone().unbind(), vocab.map(Bound::unbind));
        Ok(Self { format, tools, vocab, warnings, thinking_budget, options, made })
    }

    /// Checks that it may stand in a form of tokens of this vocabulary, as the text of this name.
    ///
    /// # Errors
    /// `VocabularyError` where it was made for another one.
    pub(crate) fn check(slf: &Bound<'_, Self>, name: &str, vocab: &Arc<trie_text::Vocab>) -> Result<()> {
        match &slf.get().made {
            Some((of, _)) if !Arc::ptr_eq(of, vocab) && of.fingerprint() != vocab.fingerprint() => {
                Err(Class::Vocabulary.error(format!(
                    "text {name:?}: its ChatConstraint was made for another vocabulary: give ChatFormat.constraint the \
                     vocab of this model"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Over what may be only a vocabulary's size.
    ///
    /// # Errors
    /// `TypeError` where no vocabulary is known, and as `ChatFormat.constraint`.
    pub(crate) fn over(
        slf: &Bound<'_, Self>,
        vocab: Option<&Arc<trie_text::Vocab>>,
        n_vocab: usize,
    ) -> Result<AnyConstraint> {
        let this = slf.get();
        match (vocab, &this.made) {
            (Some(vocab), Some((of, made))) if Arc::ptr_eq(of, vocab) => Ok(made.clone()),
            (Some(vocab), _) => {
                let format = this.format.bind(slf.py()).get();
                format.over(slf.py(), &this.options, this.thinking_budget, vocab)
            }
            (None, Some((of, made))) if of.len() == n_vocab || n_vocab == MOST_TOKENS => Ok(made.clone()),
            (None, _) => {
                let name = type_name(slf.as_any());
                let message = format!(
                    "a {name} needs a Vocab, which knows the bytes of each token, not only the size {n_vocab} of one: \
                     give it here, or to ChatFormat.constraint"
                );
                Err(PyTypeError::new_err(message).into())
            }
        }
    }
}

impl ChatConstraint {
    /// With the texts of its templates, and without its vocabulary.
    pub(crate) fn spec(&self, py: Python<'_>) -> Spec {
        let (template, response_template) = Reply::texts_of(self.format.bind(py).get().core());
        let text = |text: &str| Arc::from(text);
        Spec::Reply(Box::new(Reply {
            tools: self.tools.bind(py).get().definitions().to_string().into(),
            tool_choice: (&self.options.choice).into(),
            parallel_tool_calls: self.options.parallel,
            generation_prompt: self.options.prompt.as_deref().map(text),
            thinking_budget: self.thinking_budget,
            any_spelling: self.options.spelling == CallSpelling::Any,
            whitespace: self.options.whitespace.into(),
            template,
            response_template,
        }))
    }
}

/// Returns a tool choice as chat APIs write it: a str, or a dict.
///
/// # Errors
/// What Python raises.
pub(crate) fn choice_object<'py>(py: Python<'py>, choice: &ToolChoice) -> PyResult<Bound<'py, PyAny>> {
    let choice = serde_json::to_string(&ToolUse::from(choice));
    let choice = choice.map_err(|error| PyTypeError::new_err(error.to_string()))?;
    objects_of_json(py, choice)
}

#[pymethods]
impl ChatConstraint {
    /// str | dict[str, Any]: "auto", "none", "required", the name of the tool that must be called, or the tools that
    /// are allowed as chat APIs write them.
    #[getter]
    fn tool_choice<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        choice_object(py, &self.options.choice)
    }

    /// bool: whether there may be several calls.
    #[getter]
    fn parallel_tool_calls(&self) -> bool {
        self.options.parallel
    }

    /// str | None: what of the prompt begins the reply's turn; None is what the template writes there.
    #[getter]
    fn generation_prompt(&self) -> Option<&str> {
        self.options.prompt.as_deref()
    }

    /// str: "canonical": names of tools, named keys and values of enums in the tokenizer's own tokens; or "any".
    #[getter]
    fn spelling(&self) -> &'static str {
        match self.options.spelling {
            CallSpelling::Canonical => "canonical",
            CallSpelling::Any => "any",
        }
    }

    /// str: "compact" or "flexible": the white space in calls.
    #[getter]
    fn whitespace(&self) -> &'static str {
        match self.options.whitespace {
            Whitespace::Compact => "compact",
            Whitespace::Flexible => "flexible",
        }
    }

    /// Reads a reply that was written under this constraint.
    ///
    /// Args:
    ///     text: str or bytes; where it was cut off, what there is of it counts.
    ///
    /// Returns:
    ///     Message.
    ///
    /// Raises:
    ///     TypeError: the text is neither str nor bytes.
    ///
    /// Example:
    ///     >>> reply = tokentrie.Model().chat_format.constraint([{"name": "ring"}])
    ///     >>> reply.parse('<tool_call>\n{"name": "ring", "arguments": {}}\n</tool_call>').tool_calls
    ///     [ToolCall('', 'ring', '{}')]
    fn parse<'py>(&self, text: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let mut options = ParserOptions::default();
        options.tools = Some(self.tools.get().core().clone());
        (options.tool_choice, options.prompt) = (self.options.choice.clone(), self.options.prompt.clone());
        Ok(message_result(text.py(), self.format.get().read(text, options, false)?)?)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (py, other) = (other.py(), other.get());
        let key = |one: &Self| {
            let options = &one.options;
            let spelled = (options.spelling, options.whitespace);
            (options.choice.clone(), options.parallel, options.prompt.clone(), spelled, one.thinking_budget)
        };
        let vocab = |one: &Self| one.vocab.as_ref().map(|vocab| vocab.bind(py).get().core().fingerprint().to_owned());
        Ok(key(self) == key(other)
            && vocab(self) == vocab(other)
            && self.format.bind(py).eq(&other.format)?
            && self.tools.bind(py).eq(&other.tools)?)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.tools.bind(py).hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (tools, choice) = (self.tools.bind(py).repr()?, self.tool_choice(py)?.repr()?);
        let several = if self.options.parallel { ", several calls" } else { "" };
        Ok(format!("<tokentrie.chat.ChatConstraint: {tools}, {choice}{several}>"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let (format, tools) = (this.format.clone_ref(py), this.tools.clone_ref(py));
        let vocab = this.vocab.as_ref().map(|vocab| vocab.clone_ref(py));
        let (choice, prompt) = (this.tool_choice(py)?, this.generation_prompt());
        let (parallel, spelling) = (this.options.parallel, this.spelling());
        let spelled = (spelling, this.whitespace());
        let fields = (format, tools, vocab, choice, parallel, prompt, this.thinking_budget, spelled);
        Ok((slf.get_type().getattr("_restore")?, fields.into_pyobject(py)?))
    }

    /// Restores the state from `__reduce__`.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "they are what there is")]
    fn _restore(
        py: Python<'_>,
        format: &Bound<'_, ChatFormat>,
        tools: Py<Tools>,
        vocab: Option<Bound<'_, Vocab>>,
        choice: Bound<'_, PyAny>,
        parallel: bool,
        prompt: Option<String>,
        thinking_budget: Option<u32>,
        spelled: (String, String),
    ) -> Result<Py<Self>> {
        let mut options = ConstraintOptions::default();
        options.spelling = crate::chat::format::spelling(&spelled.0)?;
        options.whitespace = crate::chat::format::whitespace(&spelled.1)?;
        let choice = crate::chat::format::tool_choice(Some(&choice), Some(&tools.get().names()))?;
        (options.choice, options.parallel, options.prompt) = (choice, parallel, prompt);
        Ok(Py::new(py, Self::new(format, tools, vocab, thinking_budget, options)?)?)
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(other, slf.as_any())
    }
}
