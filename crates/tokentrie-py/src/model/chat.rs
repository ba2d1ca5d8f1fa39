//! Chats with a model, as Python asks for them.

use crate::call::{CancelToken, begun};
use crate::chat::asked::{Asked, Taken};
use crate::chat::format::ChatFormat;
use crate::chat::message::message_fields;
use crate::convert::gil::{asked, made_in};
use crate::convert::options::Options;
use crate::convert::results::{fields, plain, result};
use crate::convert::value::Value;
use crate::convert::words::{OnInvalid, unsigned};
use crate::errors::{Refused, Result};
use crate::exit::called;
use crate::model::loaded::Model;
use crate::model::meaning::{value_or_refused, value_reader};
use crate::model::several::{Several, several, warn_of_same};
use crate::model::watch::{Watch, check_callable};
use crate::spec::receipt::Wanted;
use llama_sampler::RuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use tokentrie::call::{CallOptions, read_options};
use tokentrie::chat::{ChatOptions, ChatReply, ReplyStep};
use trie_core::work::Limits;

/// A token of a reply as Python explains it: its id, its part, whether it was forced, how many could come, and the
/// fields of how probable it was.
type Told<'py> = (u32, &'static str, bool, Option<usize>, Option<Bound<'py, PyAny>>);

fn told_of(py: Python<'_>, step: ReplyStep) -> PyResult<Told<'_>> {
    let known = step.logprob.map(|known| result("TokenLogprob", fields(py, &known)?)).transpose()?;
    Ok((step.token.get(), step.part.name(), step.forced, step.legal, known))
}

impl Model {
    /// Implements `chat_format` of Python.
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
        let vocab = Arc::clone(loaded.model.vocab());
        let made = ChatFormat::of_file(py, template, vocab, self.response_template.as_ref())?;
        let made = Py::new(py, made)?;
        Ok(self.chat_format.get_or_init(py, || made).bind(py).clone())
    }
}

/// Describes the part of a reply in which the limit ended it, with a remedy.
fn cut_off(reply: &ChatReply, max_tokens: Option<u32>) -> String {
    let (tokens, thought) = (reply.stats.tokens, reply.stats.reasoning_tokens);
    let is_empty = reply.message.content.is_empty();
    let what = match (is_empty, thought) {
        (true, 1..) => "the model was still reasoning, and no content was begun,",
        _ => "the content was cut off",
    };
    let then = match max_tokens {
        Some(most) if tokens >= most as usize && is_empty && thought > 0 => {
            format!("raise max_tokens, which is {most}, or give a thinking_budget below it")
        }
        Some(most) if tokens >= most as usize => format!("raise max_tokens, which is {most}"),
        _ => "the context is full: shorten the messages, bound the constraint, or give the Model a larger n_ctx"
            .to_owned(),
    };
    format!("{what} after {tokens} tokens: {then}")
}

/// The value that the content of a reply stands for, and why there is none.
fn value_of(
    py: Python<'_>,
    reply: &ChatReply,
    held: &Bound<'_, PyAny>,
    max_tokens: Option<u32>,
) -> Result<(Option<Value>, Option<Refused>)> {
    let content = &reply.message.content;
    if !reply.content_is_whole {
        return Ok((None, Some(Refused::truncated(py, content, cut_off(reply, max_tokens)))));
    }
    let mut refused = None;
    let parsed = match value_reader(held) {
        Some(rule) => value_or_refused(py, content, Value::parsed(&rule, content.clone()), &mut refused)?,
        None => Some(Value::Text(content.clone())),
    };
    Ok((parsed, refused))
}

/// A reply as a `Message`.
fn reply_result(
    py: Python<'_>,
    reply: ChatReply,
    parsed: Option<Value>,
    invalid: Option<String>,
) -> PyResult<Bound<'_, PyAny>> {
    let ChatReply { message, shares, logprobs, completed, finish, stop_text, stats, receipt, .. } = reply;
    let shares = shares.into_iter().map(|share| (share.name, share.values)).collect();
    let all = message_fields(py, message, shares)?;
    all.set_item("completed", completed)?;
    all.set_item("finish", finish.name())?;
    all.set_item("stop_text", stop_text)?;
    all.set_item("stats", plain(py, &stats)?)?;
    all.set_item("logprobs", plain(py, &logprobs)?)?;
    all.set_item("parsed", parsed)?;
    all.set_item("invalid", invalid)?;
    all.set_item("receipt", receipt.map(|receipt| plain(py, &receipt)).transpose()?)?;
    result("Message", all)
}

#[pymethods]
impl Model {
    /// ChatFormat: the format of its chats, from the template in the file; of a file without one ChatML, with a
    /// warning.
    #[getter]
    fn chat_format<'py>(&self, py: Python<'py>) -> Result<Bound<'py, ChatFormat>> {
        self.format(py)
    }

    /// One reply of `chat`.
    #[pyo3(signature = (
        messages, tools=None, tool_choice=None, *, stream=None, n=None, constraint=None, on_invalid=OnInvalid::Raise,
        receipt=Wanted::default(), cancel=None, timeout=None, priority=0, template_variables=None, explain=None,
        explained=None, **options
    ), text_signature = "($self, messages, tools=None, tool_choice=None, **options)")]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments that are not data in Python")]
    fn _chat(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        tool_choice: Option<&Bound<'_, PyAny>>,
        stream: Option<Py<PyAny>>,
        n: Option<i64>,
        constraint: Option<&Bound<'_, PyAny>>,
        on_invalid: OnInvalid,
        receipt: Wanted,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
        template_variables: Option<&Bound<'_, PyDict>>,
        explain: Option<i64>,
        explained: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Several<Py<PyAny>>> {
        let call = begun(cancel, CallOptions { timeout, priority })?;
        check_callable("stream, unless True,", stream.as_ref().map(|stream| stream.bind(py)))?;
        let count = several(n, stream.is_some())?;
        let (loaded, format) = (self.loaded(py)?, self.format(py)?);
        let format = format.get();
        let Options { data, sampling, stop, logit_bias, .. } =
            Options::read(py, "chat", options, &["sampling", "stop", "logit_bias"], read_options::<ChatOptions>)?;
        let options = ChatOptions { sampling, stop, logit_bias, receipt: receipt.receipt, ..data };
        let max_tokens = options.max_tokens;
        let asks = Asked { messages, tools, tool_choice, constraint, template_variables };
        let Taken { mut request, tools, held } = asks.taken(py, &call, options, format, &loaded.around())?;
        let offered = tools.get();
        request.reply.explain = explain.map(|top| unsigned("top", top)).transpose()?;
        let (mode, must_call) = (request.reply.sampling.mode, request.reply.choice.is_required());
        let ready = made_in(py, &call, || {
            let over = format.over_vocab(py, loaded.model.vocab())?;
            Ok(asked(py, Limits::NONE, || request.ready(&over))??)
        })?;
        format.tell(py, offered.core(), ready.warnings())?;
        warn_of_same(py, count, mode)?;
        let ready = ready.with_n(count).with_key(receipt.key);
        let replies = self.run(py, ready, Watch::new(&call).with_stream(stream))?;
        let (mut all, mut refused, mut cancelled) = (Vec::with_capacity(replies.len()), None, None);
        for mut reply in replies {
            if let Some(explained) = explained {
                let steps = std::mem::take(&mut reply.steps).into_iter().map(|step| told_of(py, step));
                let steps = steps.collect::<PyResult<Vec<_>>>()?;
                called(explained, &(steps,).into_pyobject(py)?, None)?;
            }
            if reply.finish.is_stopped() {
                cancelled = cancelled.or(Some(reply.stats.tokens));
            }
            // A reply that calls, or must, has no content.
            let has_content = reply.message.tool_calls.is_empty() && !must_call && !reply.finish.is_stopped();
            let held = held.as_ref().filter(|_| has_content);
            let read = held.map(|held| value_of(py, &reply, held, max_tokens)).transpose()?;
            let (parsed, found) = read.unwrap_or_default();
            let (reason, error) = found.map(|Refused { reason, error }| (reason, error)).unzip();
            refused = refused.or(error);
            all.push(reply_result(py, reply, parsed, reason)?.unbind());
        }
        let refused = refused.filter(|_| on_invalid == OnInvalid::Raise);
        Several::of(all, n.is_some()).unless(py, &call, cancelled, refused)
    }
}
