//! Chats with a model, as Python asks for them.

use crate::call::{CancelToken, begun};
use crate::chat::asked::{Asked, Taken};
use crate::chat::format::ChatFormat;
use crate::chat::message::{ChatEvent, Message};
use crate::chat::messages::nearest;
use crate::convert::gil::{asked, made_in};
use crate::convert::ids;
use crate::convert::value::Value;
use crate::convert::words::{Mode, OnInvalid, unsigned};
use crate::errors::{Error, Refused, Result};
use crate::exit::{attached, called, module};
use crate::model::loaded::{Model, stops};
use crate::model::meaning::{value_or_refused, value_reader};
use crate::model::several::{Several, several, warn_of_same};
use crate::model::watch::{Watch, check_callable, finished};
use crate::rows::sampling::{Given, Keywords, Sampling};
use crate::spec::object::Spec;
use crate::spec::receipt::Wanted;
use chat_format::Event;
use llama_sampler::RuntimeError;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::Arc;
use tokentrie::chat::{ChatFinish, ChatWatch, response_format};
use tokentrie::run::{CallOptions, Receipt};
use tokentrie::spec::DataOnly;
use trie_core::work::Limits;

/// Who listens: Python.
struct Listening<'w> {
    watch: &'w mut Watch,
    stream: Option<Py<PyAny>>,
}

impl ChatWatch for Listening<'_> {
    fn stop(&mut self) -> bool {
        self.watch.wants_stop()
    }

    fn priority(&self) -> i32 {
        llama_sampler::Watch::priority(self.watch)
    }

    fn listens(&self) -> bool {
        !self.watch.has_failed()
    }

    fn tell(&mut self, events: Vec<Event>) {
        let Some(stream) = &self.stream else { return };
        let told = attached(|py| -> PyResult<()> {
            for event in ChatEvent::merged(events) {
                let argument = (event,).into_pyobject(py)?;
                finished(called(stream.bind(py), &argument, None)?)?;
            }
            Ok(())
        });
        if let Some(Err(raised)) = told {
            self.watch.fail(raised);
        }
    }
}

/// # Errors
/// `TypeError` for a keyword that there is not: a template's own variables have a place of their own.
fn refuse_unknown(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> Result<()> {
    for (name, _) in settings.into_iter().flatten() {
        let name = name.cast::<PyString>().map_err(PyErr::from)?.to_str()?;
        if Keywords::names().any(|known| known == name) {
            continue;
        }
        let chat = py.get_type::<Model>().getattr("chat")?;
        let parameters = module(py, "inspect")?.call_method1("signature", (chat,))?.getattr("parameters")?;
        let named = parameters.try_iter()?.map(|name| name?.extract::<String>()).collect::<PyResult<Vec<_>>>()?;
        let settings = Keywords::names().map(String::from);
        let known: Vec<String> =
            named.into_iter().filter(|name| !["self", "settings"].contains(&&name[..])).chain(settings).collect();
        let near = nearest(py, name, &known)?;
        let end = if near.is_empty() { "." } else { "" };
        return Err(PyTypeError::new_err(format!(
            "chat() got an unexpected keyword argument '{name}'{near}{end} A variable of the template is given as \
             template_variables={{\"{name}\": ...}}"
        ))
        .into());
    }
    Ok(())
}

impl Model {
    /// What `chat_format` gives.
    pub(crate) fn format<'py>(&self, py: Python<'py>) -> Result<Bound<'py, ChatFormat>> {
        if let Some(format) = self.chat_format.get(py) {
            return Ok(format.bind(py).clone());
        }
        let loaded = self.loaded(py)?;
        let template = match loaded.model.chat_template() {
            Ok(template) => Some(template.clone()),
            Err(RuntimeError::NoTemplate { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let made = Py::new(py, ChatFormat::of_file(py, template, Arc::clone(loaded.model.vocab()))?)?;
        Ok(self.chat_format.get_or_init(py, || made).bind(py).clone())
    }
}

impl Message {
    /// Has no value, since its content was cut off.
    fn truncated(&mut self, py: Python<'_>, max_tokens: Option<i64>) -> Error {
        let Refused { reason, error } = Refused::truncated(py, &self.content, self.cut_off(max_tokens));
        self.invalid = Some(reason);
        error
    }

    /// Where the limit ended it, and what to do.
    fn cut_off(&self, max_tokens: Option<i64>) -> String {
        let (tokens, thought) = self.stats.as_ref().map_or((0, 0), |stats| (stats.tokens, stats.reasoning_tokens));
        let what = match (self.content.is_empty(), thought) {
            (true, 1..) => "the model was still reasoning, and no content was begun,",
            _ => "the content was cut off",
        };
        let then = match max_tokens {
            Some(most) if tokens as i64 >= most && self.content.is_empty() && thought > 0 => {
                format!("raise max_tokens, which is {most}, or give a thinking_budget below it")
            }
            Some(most) if tokens as i64 >= most => format!("raise max_tokens, which is {most}"),
            _ => "the context is full: shorten the messages, bound the constraint, or give the Model a larger n_ctx"
                .to_owned(),
        };
        format!("{what} after {tokens} tokens: {then}")
    }

    /// Reads what its content stands for; the error is its class's, which refuses it.
    fn read(&mut self, py: Python<'_>, held: &Bound<'_, PyAny>) -> Result<Option<Error>> {
        let mut refused = None;
        self.parsed = match value_reader(held) {
            Some(rule) => {
                let read = Value::parsed(&rule, self.content.clone());
                value_or_refused(py, &self.content, read, &mut refused)?
            }
            None => Some(Value::Text(self.content.clone())),
        };
        let (reason, error) = refused.map(|Refused { reason, error }| (reason, error)).unzip();
        self.invalid = reason;
        Ok(error)
    }
}

#[pymethods]
impl Model {
    /// ChatFormat: the format of its chats, from the template in the file; of a file without one ChatML, with a
    /// warning.
    #[getter]
    fn chat_format<'py>(&self, py: Python<'py>) -> Result<Bound<'py, ChatFormat>> {
        self.format(py)
    }

    /// Answers a conversation: renders it, generates a reply that calls tools rightly, and reads it.
    ///
    /// The name of a call is one of the tools' and its arguments follow their schema, whatever the model; text that
    /// must come costs no forward pass. What messages and tools contain is plain text: a control token's name in it
    /// stays text. Of a conversation that goes on only new tokens are decoded.
    ///
    /// Args:
    ///     messages: a list of dict with "role" and "content", and of Message, such as earlier replies.
    ///     tools: a list of definitions and Python functions, or Tools.
    ///     tool_choice: "auto"; "none"; "required"; or the name of the tool to call.
    ///     parallel_tool_calls: whether there may be several calls.
    ///     tools_in: where the model is told of tools: "template"; "system", for a template that shows none or writes
    ///         no calls: the system message describes them and how one is called; "messages": `messages` do.
    ///     enable_thinking: whether the model may think. Without, the template gives a prompt without thoughts where it
    ///         knows this, and a thought that begins all the same is ended at once.
    ///     thinking_budget: the most tokens of reasoning; then its end marker is forced.
    ///     stream: True gives a ChatStream, an iterator of events, in place of the Message. A function is called with
    ///         each ChatEvent as soon as it is certain, and awaited where it is `async def`; what it raises ends the
    ///         chat. It must not use this model, except for `cancel`.
    ///     n: how many replies, 1 to 1024, as a list, after one prompt that is decoded once: as for `generate`. Not
    ///         with stream or retries.
    ///     stop: a str or a list of str: the content ends before the first of them. Reasoning and calls may have them.
    ///         Not beside constraint and response_format.
    ///     constraint: what the content obeys, as for `generate`, or a class as for JsonSchema; `Message.parsed` is its
    ///         value. Reasoning stays free. Not where tools may be called.
    ///     response_format: the same as chat APIs say it: {"type": "json_schema", "json_schema": {"schema": ...}},
    ///         {"type": "json_object"} or {"type": "text"}; or a class.
    ///     show_schema: show the model the JSON Schema that the content obeys, with its descriptions, in the system
    ///         message: for a class, a JsonSchema or a schema as data. Longer than 8192 bytes it is not shown, with a
    ///         warning. Other constraints are never shown.
    ///     on_invalid: "raise" an InvalidValueError where a class refuses the content, and a TruncatedError where
    ///         content that obeys is cut off; or "none": `parsed` is None, and `invalid` says why.
    ///     retries: how often the model is asked again where that happens: it is told what was wrong.
    ///     mode: "greedy" or "sampled".
    ///     seed, temperature, top_k, top_p, min_p: settings of the draw, as for `Sampling`.
    ///     sampling: a Sampling in place of mode and all settings.
    ///     max_tokens: the most tokens of the reply. None takes what the context has room for.
    ///     probabilities: tell of each call how probable its name was, and its enum and boolean arguments.
    ///     logprobs: tell how probable each token of the content was, and so many of the most probable beside it, as
    ///         for `generate`.
    ///     receipt: tell what each token was chosen among, so that `verify_chat_receipt` can check it without the
    ///         model; the bytes of a key seal it, so that nobody else can make it.
    ///     logit_bias: a dict of token ids and numbers that are added to their logits, as for `generate`.
    ///     cancel: a CancelToken that ends this call.
    ///     timeout: the seconds that it may take, waiting for its turn included.
    ///     priority: an int; with slots, calls of higher priority go first.
    ///     continue_final_message: go on with the last message, which is the assistant's: as in `ChatFormat.prompt`.
    ///     template_variables: a dict: what the template finds under names of its own.
    ///     settings: all other settings of the draw, as for `Sampling`.
    ///
    /// Returns:
    ///     Message: with `finish` and `stats`. Append it to the messages to go on. With stream=True a ChatStream, with
    ///     `n` a list.
    ///
    /// Raises:
    ///     TemplateError: the template refuses the messages.
    ///     OptionError: a message has an unknown role or shape, a tool cannot be called, the template shows no tools
    ///         or writes no calls (see `tools_in`), there is no such tool, a constraint stands beside tools, or a
    ///         setting is out of range.
    ///     TypeError: there is no such keyword.
    ///     RuleError: nothing satisfies a tool's schema.
    ///     TruncatedError: content that obeys a constraint is cut off; `error.partial` is the Message.
    ///     InvalidValueError: the class of the constraint refuses the content; `error.partial` is the Message, with
    ///         `n` the list.
    ///     ContextError: the prompt does not fit.
    ///     CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did. `error.partial` is the
    ///         Message so far; with `n` the list, which the message that was ended ends.
    ///     ModelError: a forward pass fails, or the model is closed.
    ///
    /// Example:
    ///     >>> def erase(path: str) -> str:
    ///     ...     '''Delete a file.'''
    ///     ...     return f"{path} is gone"
    ///     >>> model = tokentrie.Model()
    ///     >>> messages = [{"role": "user", "content": "please delete the file a.txt"}]
    ///     >>> message = model.chat(messages, [erase], "required", max_tokens=60)
    ///     >>> (message.tool_calls[0].name, list(message.tool_calls[0].parsed))
    ///     ('erase', ['path'])
    ///     >>> model.chat(messages, constraint=tokentrie.Integer(1, 9)).parsed in range(1, 10)
    ///     True
    #[pyo3(
        signature = (messages, tools=None, tool_choice=None, **options),
        text_signature = "($self, messages, tools=None, tool_choice=\"auto\", *, parallel_tool_calls=True, \
            tools_in=\"template\", enable_thinking=True, thinking_budget=None, stream=None, n=None, stop=None, \
            constraint=None, response_format=None, show_schema=True, on_invalid=\"raise\", retries=0, mode=\"greedy\", \
            seed=None, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, sampling=None, max_tokens=None, \
            probabilities=False, logprobs=None, receipt=False, logit_bias=None, cancel=None, timeout=None, priority=0, \
            continue_final_message=None, template_variables=None, **settings)",
    )]
    fn chat<'py>(
        slf: &Bound<'py, Self>,
        messages: &Bound<'py, PyAny>,
        tools: Option<&Bound<'py, PyAny>>,
        tool_choice: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let chat = module(slf.py(), "tokentrie.chat")?.getattr("answered")?;
        called(&chat, &(slf, messages, tools, tool_choice).into_pyobject(slf.py())?, options)
    }

    /// One reply of `chat`.
    #[pyo3(signature = (
        messages, tools=None, tool_choice=None, *, parallel_tool_calls=true, tools_in="template", enable_thinking=true,
        thinking_budget=None, stream=None, n=None, stop=None, constraint=None, show_schema=true,
        on_invalid=OnInvalid::Raise, mode=Given(None), sampling=None, max_tokens=None, probabilities=false,
        logprobs=None, receipt=Wanted::default(), logit_bias=None, cancel=None, timeout=None, priority=0,
        continue_final_message=None, template_variables=None, **settings
    ), text_signature = "($self, messages, tools=None, tool_choice=None, **options)")]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "they are Python's keyword arguments"
    )]
    fn _chat(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        tool_choice: Option<&Bound<'_, PyAny>>,
        parallel_tool_calls: bool,
        tools_in: &str,
        enable_thinking: bool,
        thinking_budget: Option<i64>,
        stream: Option<Py<PyAny>>,
        n: Option<i64>,
        stop: Option<&Bound<'_, PyAny>>,
        constraint: Option<&Bound<'_, PyAny>>,
        show_schema: bool,
        on_invalid: OnInvalid,
        mode: Given<Mode>,
        sampling: Option<&Bound<'_, Sampling>>,
        max_tokens: Option<i64>,
        probabilities: bool,
        logprobs: Option<i64>,
        receipt: Wanted,
        logit_bias: Option<&Bound<'_, PyAny>>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
        continue_final_message: Option<&str>,
        template_variables: Option<&Bound<'_, PyDict>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> Result<Several<Message>> {
        let call = begun(cancel, CallOptions { timeout, priority })?;
        refuse_unknown(py, settings)?;
        check_callable("stream, unless True,", stream.as_ref().map(|stream| stream.bind(py)))?;
        let count = several(n, stream.is_some())?;
        let (loaded, format) = (self.loaded(py)?, self.format(py)?);
        let format = format.get();
        let asks = Asked {
            messages,
            tools,
            tool_choice,
            parallel_tool_calls,
            tools_in,
            enable_thinking,
            thinking_budget,
            constraint,
            show_schema,
            continue_final_message,
            template_variables,
            receipt: receipt.receipt,
        };
        let Taken { mut request, tools, held } = asks.taken(py, &call, format, &loaded.around())?;
        let offered = tools.get();
        let keywords = Keywords { call: "chat", mode, placed: None, settings, sampling };
        request.reply.max_tokens = max_tokens.map(|most| unsigned("max_tokens", most)).transpose()?;
        request.reply.stop = stops(stop)?;
        request.reply.sampling = keywords.options(py)?;
        request.reply.probabilities = probabilities;
        request.reply.logprobs = logprobs.map(|top| unsigned("logprobs", top)).transpose()?;
        request.reply.logit_bias = ids::logit_bias(logit_bias)?;
        let mode = request.reply.sampling.mode;
        let ready = made_in(py, &call, || {
            let over = format.over_vocab(py, loaded.model.vocab())?;
            Ok(asked(py, Limits::NONE, || request.ready(&over))??)
        })?;
        format.tell(py, offered.core(), ready.warnings())?;
        let subject = ready.receipt_subject();
        warn_of_same(py, count, mode)?;
        let replies = self.using(py, None, &call, |runtime, watch| {
            ready.reply_each(runtime, count, &mut Listening { watch, stream })
        })?;
        let (mut all, mut refused, mut cancelled) = (Vec::with_capacity(replies.len()), None, None);
        for reply in replies {
            if reply.finish == ChatFinish::Cancelled {
                cancelled = cancelled.or(Some(reply.stats.tokens));
            }
            let is_whole = reply.content_is_whole;
            let held = held.as_ref().filter(|_| reply.finish != ChatFinish::Cancelled);
            let receipt = subject.as_ref().map(|subject| {
                Receipt::of(subject, loaded.model.vocab(), &reply.trail, receipt.key.as_deref()).to_json()
            });
            let mut message = Message { receipt, ..Message::from(reply) };
            if let Some(held) = held {
                let error = if is_whole { message.read(py, held)? } else { Some(message.truncated(py, max_tokens)) };
                refused = refused.or(error);
            }
            all.push(message);
        }
        let refused = refused.filter(|_| on_invalid == OnInvalid::Raise);
        Several::of(all, n.is_some()).unless(py, &call, cancelled, refused)
    }

    /// What `response_format` of chat APIs asks for, as a constraint; None for text.
    #[staticmethod]
    fn _response_format<'py>(given: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, Spec>>> {
        let value = crate::chat::messages::dict("response_format", given)?;
        let spec = response_format(&value).map_err(Error::from)?;
        Ok(spec.map(|spec| Bound::new(given.py(), Spec::made(spec, &DataOnly)?)).transpose()?)
    }

    /// `chat` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the chat.
    ///
    /// Args:
    ///     messages, tools, tool_choice: as for `chat`.
    ///     options: the keywords of `chat`. A function for `stream` is called on another thread, or awaited in this
    ///         event loop where it is `async def`.
    ///
    /// Returns:
    ///     An awaitable of Message. With stream=True a ChatStream for `async for`.
    ///
    /// Raises:
    ///     TokenTrieError: as for `chat`, when it is awaited.
    ///
    /// Example:
    ///     >>> import asyncio
    ///     >>> model = tokentrie.Model()
    ///     >>> asyncio.run(model.achat([{"role": "user", "content": "Hello"}], max_tokens=4)).stats.tokens <= 4
    ///     True
    #[pyo3(
        signature = (messages, tools=None, tool_choice=None, **options),
        text_signature = "($self, messages, tools=None, tool_choice=\"auto\", **options)"
    )]
    fn achat<'py>(
        slf: &Bound<'py, Self>,
        messages: &Bound<'py, PyAny>,
        tools: Option<&Bound<'py, PyAny>>,
        tool_choice: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let chat = module(slf.py(), "tokentrie.chat")?.getattr("answering")?;
        chat.call((slf, messages, tools, tool_choice), options)
    }
}
