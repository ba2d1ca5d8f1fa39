//! What a model replied: messages, and the events by which they come.

use crate::chat::tool_call::ToolCall;
use crate::convert::html::html;
use crate::convert::logprob::TokenLogprob;
use crate::convert::pickled::pickled;
use crate::convert::value::Value;
use crate::exit::module;
use chat_format::TracedText;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// What a model replied. Goes on into the next request: `messages.append(message)`.
///
/// Args:
///     content: what it says.
///     reasoning: what it thought.
///     tool_calls: what it calls.
///     warnings: what in the text was not as the format has it.
///     finish: why it ended.
///     stats: what it took.
///     parsed: what the content stands for.
///     invalid: why it was not parsed.
///
/// Example:
///     >>> message = tokentrie.Message("It rings.", tool_calls=[tokentrie.ToolCall("", "ring", "{}")])
///     >>> [call.name for call in message.tool_calls]
///     ['ring']
///     >>> message.to_dict()["role"]
///     'assistant'
#[pyclass(frozen, from_py_object, module = "tokentrie")]
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Message {
    /// str: what it says.
    #[pyo3(get)]
    pub(crate) content: String,
    /// str: what it thought.
    #[pyo3(get)]
    pub(crate) reasoning: String,
    /// list[ToolCall]: what it calls, in its order.
    #[pyo3(get)]
    pub(crate) tool_calls: Vec<ToolCall>,
    /// list[str]: what in the text was not as the format has it.
    #[pyo3(get)]
    pub(crate) warnings: Vec<String>,
    /// str | None: why it ended: "stop", "tool_calls" where it calls something, "length" where no more tokens
    /// fitted, "cancelled" in the `partial` of a CancelledError; None of a text that was parsed.
    #[pyo3(get)]
    pub(crate) finish: Option<String>,
    /// bool: whether a call, or content that is held to a constraint, was ended by few tokens that the model did not
    /// choose, because no more tokens fitted: `max_tokens`, or the context.
    #[pyo3(get)]
    pub(crate) completed: bool,
    /// ChatStats | None: what it took; None of a text that was parsed.
    #[pyo3(get)]
    pub(crate) stats: Option<ChatStats>,
    /// list[TokenLogprob]: how probable each token of the content was; empty unless `logprobs` was given.
    #[pyo3(get)]
    pub(crate) logprobs: Vec<TokenLogprob>,
    /// Any: what the content stands for, where it is held to a constraint and whole: a dict, a number, an object of
    /// the class that was given.
    #[pyo3(get)]
    pub(crate) parsed: Option<Value>,
    /// str | None: why content that is whole was not parsed: what the class said that refused it.
    #[pyo3(get)]
    pub(crate) invalid: Option<String>,
    /// The JSON of its receipt.
    pub(crate) receipt: Option<String>,
}

#[pymethods]
impl Message {
    #[new]
    #[pyo3(
        signature = (
            content=String::new(), reasoning=String::new(), tool_calls=None, warnings=None, finish=None, stats=None,
            parsed=None, invalid=None
        ),
        text_signature = "(content=\"\", reasoning=\"\", tool_calls=(), warnings=(), finish=None, stats=None, \
            parsed=None, invalid=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        content: String,
        reasoning: String,
        tool_calls: Option<Vec<ToolCall>>,
        warnings: Option<Vec<String>>,
        finish: Option<String>,
        stats: Option<ChatStats>,
        parsed: Option<Value>,
        invalid: Option<String>,
    ) -> Self {
        let (tool_calls, warnings) = (tool_calls.unwrap_or_default(), warnings.unwrap_or_default());
        Self { content, reasoning, tool_calls, warnings, finish, stats, parsed, invalid, ..Self::default() }
    }

    /// dict[str, Any] | None: what each token was chosen among, chained, for `verify_chat_receipt`. None unless
    /// `receipt` was given.
    #[getter]
    fn receipt<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.receipt.as_deref().map(|json| module(py, "json")?.call_method1("loads", (json,))).transpose()
    }

    /// The message as chat APIs write it, for a list of messages.
    ///
    /// Returns:
    ///     dict[str, Any] with "role" and "content", and "reasoning_content" and "tool_calls" where there are any.
    ///
    /// Example:
    ///     >>> tokentrie.Message("Ding.").to_dict()
    ///     {'role': 'assistant', 'content': 'Ding.'}
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let message = PyDict::new(py);
        message.set_item("role", "assistant")?;
        message.set_item("content", &self.content)?;
        if !self.reasoning.is_empty() {
            message.set_item("reasoning_content", &self.reasoning)?;
        }
        if !self.tool_calls.is_empty() {
            let calls = self.tool_calls.iter().map(|call| call.to_dict(py)).collect::<PyResult<Vec<_>>>()?;
            message.set_item("tool_calls", PyList::new(py, calls)?)?;
        }
        Ok(message)
    }

    /// A table, for notebooks.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        html("message", slf)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 60;
        let repr = |text: &str| -> PyResult<String> {
            let cut: String = text.chars().take(SHOWN).collect();
            let dots = if cut.len() < text.len() { "…" } else { "" };
            Ok(PyString::new(py, &(cut + dots)).repr()?.to_string())
        };
        let mut parts = vec![repr(&self.content)?];
        if !self.reasoning.is_empty() {
            parts.push(format!("reasoning={}", repr(&self.reasoning)?));
        }
        if !self.tool_calls.is_empty() {
            let names: Vec<&str> = self.tool_calls.iter().map(|call| &call.name[..]).collect();
            parts.push(format!("calls {}", names.join(", ")));
        }
        parts.extend(self.finish.clone());
        Ok(format!("<tokentrie.Message: {}>", parts.join(", ")))
    }
}

impl From<chat_format::Message> for Message {
    fn from(message: chat_format::Message) -> Self {
        let chat_format::Message { content, reasoning, tool_calls, warnings, .. } = message;
        let tool_calls = tool_calls.into_iter().map(ToolCall::from).collect();
        Self { content, reasoning, tool_calls, warnings, ..Self::default() }
    }
}

#[cfg(feature = "llama")]
impl From<tokentrie::chat::ChatReply> for Message {
    fn from(reply: tokentrie::chat::ChatReply) -> Self {
        let tokentrie::chat::ChatReply { message, shares, logprobs, completed, finish, stats, .. } = reply;
        let mut message = Self::from(message);
        for (call, share) in message.tool_calls.iter_mut().zip(shares) {
            (call.probability, call.probabilities) = (share.name, share.values);
        }
        message.logprobs = logprobs.into_iter().map(TokenLogprob::from).collect();
        Self { completed, finish: Some(finish.name().to_owned()), stats: Some(stats.into()), ..message }
    }
}

/// What a reply of `Model.chat` took.
///
/// Example:
///     >>> stats = tokentrie.Model().chat([{"role": "user", "content": "Hello"}], max_tokens=4).stats
///     >>> stats.tokens <= 4
///     True
#[pyclass(frozen, get_all, from_py_object, module = "tokentrie")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatStats {
    /// int: tokens of the prompt.
    pub(crate) prompt_tokens: usize,
    /// int: those of them that the model's context held already, from earlier turns: not decoded again.
    pub(crate) prompt_tokens_reused: usize,
    /// int: tokens of the reply.
    pub(crate) tokens: usize,
    /// int: those of them in the reasoning.
    pub(crate) reasoning_tokens: usize,
    /// int: those of them that the constraint left no choice about.
    pub(crate) forced_tokens: usize,
    /// int: calls of llama.cpp's decode.
    pub(crate) forward_passes: u64,
    /// int: tokens that needed no forward pass of their own, because they were forced.
    pub(crate) forward_passes_saved: usize,
    /// float: seconds in all.
    pub(crate) seconds: f64,
    /// float: seconds for the prompt.
    pub(crate) prompt_seconds: f64,
    /// float: tokens of the reply a second, without the time for the prompt.
    pub(crate) tokens_per_second: f64,
}

#[cfg(feature = "llama")]
impl From<tokentrie::chat::ChatStats> for ChatStats {
    fn from(stats: tokentrie::chat::ChatStats) -> Self {
        Self {
            prompt_tokens: stats.prompt_tokens,
            prompt_tokens_reused: stats.prompt_tokens_reused,
            tokens: stats.tokens,
            reasoning_tokens: stats.reasoning_tokens,
            forced_tokens: stats.forced_tokens,
            forward_passes: stats.forward_passes,
            forward_passes_saved: stats.forward_passes_saved,
            seconds: stats.seconds,
            prompt_seconds: stats.prompt_seconds,
            tokens_per_second: stats.tokens_per_second,
        }
    }
}

#[pymethods]
impl ChatStats {
    /// The same as a dict, for JSON.
    ///
    /// Returns:
    ///     dict[str, int | float].
    ///
    /// Example:
    ///     >>> message = tokentrie.Model().chat([{"role": "user", "content": "Hello"}], max_tokens=4)
    ///     >>> "tokens_per_second" in message.stats.to_dict()
    ///     True
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.fields(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ChatStats({})", self.to_dict(py)?))
    }
}

/// A part of a reply, as soon as it is certain. All events together are the message; none is ever taken back.
///
/// Example:
///     >>> def told(event):
///     ...     match event:
///     ...         case tokentrie.ChatEvent("content", text):
///     ...             return f"says {text}"
///     ...         case tokentrie.ChatEvent("call_begins", name=name):
///     ...             return f"calls {name}"
///     >>> format = tokentrie.Model().chat_format
///     >>> [told(event) for event in format.parser().push("Hi there ")]
///     ['says Hi there']
#[pyclass(frozen, get_all, module = "tokentrie")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatEvent {
    /// str: "reasoning", "content", "call_begins", "arguments", "call_ends", "warning" or "message_ends".
    kind: String,
    /// str: more of the reasoning, of the content, or of a call's arguments as JSON text; the warning.
    text: String,
    /// int | None: which call of the message it is about, from 0.
    index: Option<usize>,
    /// str: the id of a call that begins or ends, where the format has one and it is known.
    id: String,
    /// str: the tool of a call that begins.
    name: String,
}

#[pymethods]
impl ChatEvent {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str) = ("kind", "text");

    fn __repr__(&self) -> String {
        let Self { kind, text, index, id, name } = self;
        let mut parts = vec![format!("{kind:?}")];
        parts.extend((!text.is_empty()).then(|| format!("{text:?}")));
        parts.extend(index.map(|index| format!("index={index}")));
        parts.extend((!id.is_empty()).then(|| format!("id={id:?}")));
        parts.extend((!name.is_empty()).then(|| format!("name={name:?}")));
        format!("ChatEvent({})", parts.join(", "))
    }
}

impl ChatEvent {
    /// Events of one portion, those that go on with the one before put together.
    pub(crate) fn merged(events: Vec<chat_format::Event>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::with_capacity(events.len());
        for event in events.into_iter().map(Self::from) {
            let goes_on = matches!(&event.kind[..], "reasoning" | "content" | "arguments");
            match merged.last_mut() {
                Some(last) if goes_on && last.kind == event.kind && last.index == event.index => {
                    last.text.push_str(&event.text);
                }
                _ => merged.push(event),
            }
        }
        merged
    }
}

impl From<chat_format::Event> for ChatEvent {
    fn from(event: chat_format::Event) -> Self {
        use chat_format::Event;
        let none = String::new;
        let (kind, text, index, id, name) = match event {
            Event::Reasoning(text) => ("reasoning", text, None, none(), none()),
            Event::Content(text) => ("content", text, None, none(), none()),
            Event::CallBegins { index, id, name } => ("call_begins", none(), Some(index), id, name),
            Event::Arguments { index, text } => ("arguments", text, Some(index), none(), none()),
            Event::CallEnds { index, id } => ("call_ends", none(), Some(index), id, none()),
            Event::Warning(text) => ("warning", text, None, none(), none()),
            _ => ("message_ends", none(), None, none(), none()),
        };
        Self { kind: kind.to_owned(), text, index, id, name }
    }
}

/// The prompt of a conversation.
///
/// Example:
///     >>> format = tokentrie.Model().chat_format
///     >>> prompt = format.prompt([{"role": "user", "content": "Hello"}])
///     >>> prompt.generation_prompt
///     '<|im_start|>assistant\n'
///     >>> prompt.parts[1:3]
///     [('Hello', False), ('<|im_end|>\n<|im_start|>assistant\n', True)]
#[pyclass(frozen, get_all, module = "tokentrie")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChatPrompt {
    /// str: all of it.
    pub(crate) text: String,
    /// str: the end of it with which the reply's turn begins, for `ChatFormat.parse` and `constraint`.
    pub(crate) generation_prompt: String,
    /// list[tuple[str, bool]]: the text in parts, each with whether the template wrote it. Names of control tokens
    /// are those tokens in parts that it wrote, and text elsewhere. `Vocab.tokenize_parts` takes them as they are.
    pub(crate) parts: Vec<(String, bool)>,
}

impl ChatPrompt {
    /// A prompt whose last bytes, from `begins` on, begin the reply's turn.
    pub(crate) fn new(traced: TracedText, begins: usize) -> Self {
        let parts = traced.parts().into_iter().map(|(part, is_own)| (part.to_owned(), is_own)).collect();
        Self { generation_prompt: traced.text()[begins..].to_owned(), parts, text: traced.into_text() }
    }
}

#[pymethods]
impl ChatPrompt {
    fn __repr__(&self) -> String {
        format!("<tokentrie.ChatPrompt: {} characters, then {:?}>", self.text.chars().count(), self.generation_prompt)
    }
}

pickled!(Message {
    content,
    reasoning,
    tool_calls,
    warnings,
    finish,
    completed,
    stats,
    logprobs,
    parsed,
    invalid,
    receipt
});
pickled!(ChatStats {
    prompt_tokens,
    prompt_tokens_reused,
    tokens,
    reasoning_tokens,
    forced_tokens,
    forward_passes,
    forward_passes_saved,
    seconds,
    prompt_seconds,
    tokens_per_second
});
pickled!(ChatEvent { kind, text, index, id, name });
pickled!(ChatPrompt { text, generation_prompt, parts });
