//! Chats with a model: the prompt of a conversation, a reply inside its format, read while it comes.

use crate::call::{Call, CancelToken};
use crate::chat::format::{ChatFormat, continued, prompt_options, tool_choice};
use crate::chat::message::{ChatEvent, ChatStats, Message};
use crate::chat::messages::{map_texts, messages, texts};
use crate::chat::shares::Shares;
use crate::chat::tools::Tools;
use crate::convert::gil::released;
use crate::errors::{Error, Result, with_partial};
use crate::exit::{attached, called};
use crate::model::loaded::{Model, streaming};
use crate::model::options::{After, Options, unsigned};
use crate::model::watch::Watch;
use crate::rows::sampling::{Given, Keywords, Sampling};
use chat_format::analysis::{Continued, PromptOptions};
use chat_format::{ConstraintOptions, Event, ParserOptions};
use llama_sampler::{Finish, GenerateOptions, RuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{SpanRules, TokenId};
use trie_text::ControlTextGuard;

/// The prompt of a chat.
struct Prompt {
    tokens: Vec<TokenId>,
    /// What of its text begins the reply's turn.
    turn: String,
}

/// The prompt, in which only the template's own text names control tokens.
fn prompt(
    format: &chat_format::ChatFormat,
    vocab: &trie_text::Vocab,
    messages: &[Value],
    tools: Option<&Value>,
    options: &PromptOptions,
) -> Result<Prompt, Error> {
    let mut found = Vec::new();
    messages.iter().chain(tools).for_each(|value| texts(value, &mut found));
    options.render.variables.iter().for_each(|(_, value)| value.for_each_text(&mut |text| found.push(text.to_owned())));
    let guard = ControlTextGuard::new(vocab, found);
    let protected = |value: &Value| map_texts(value, &|text| guard.protect(text));
    let (shown, offered) = (messages.iter().map(protected).collect::<Vec<_>>(), tools.map(protected));
    let mut guarded = options.clone();
    for (_, value) in &mut guarded.render.variables {
        *value = value.map_texts(&mut |text| guard.protect(text));
    }
    let (text, begins) = format.prompt(&shown, offered.as_ref(), &guarded)?;
    let bos = format.template().bos();
    let begun = !bos.is_empty() && text.starts_with(bos);
    let tokens = guard.tokenize(&text, !begun)?;
    let turn = if options.continued == Continued::Nothing {
        text[begins..].to_owned()
    } else {
        // What is continued has marks of the guard in it.
        let (text, begins) = format.prompt(messages, tools, options)?;
        text[begins..].to_owned()
    };
    Ok(Prompt { tokens, turn })
}

/// Watches a generation: reads the reply, and tells of it.
struct Reading<'w> {
    watch: &'w mut Watch,
    parser: Option<chat_format::Parser>,
    vocab: Arc<trie_text::Vocab>,
    stream: Option<Py<PyAny>>,
    shares: Option<Shares>,
    reasoning_tokens: usize,
    /// Tokens that may become the end marker of the reasoning.
    held_tokens: usize,
    /// Whether the reply said its own end.
    over: bool,
}

impl Reading<'_> {
    /// Tells of what became certain.
    fn tell(&mut self, events: Vec<Event>) {
        if let Some(shares) = &mut self.shares {
            for event in &events {
                shares.see(event);
            }
        }
        let Some(stream) = self.stream.as_ref().filter(|_| !events.is_empty()) else { return };
        let told = attached(|py| -> PyResult<()> {
            for event in ChatEvent::merged(events) {
                let argument = (event,).into_pyobject(py)?;
                called(stream.bind(py), &argument, None)?;
            }
            Ok(())
        });
        if let Some(Err(raised)) = told {
            self.watch.fail(raised);
        }
    }

    /// The message, once the reply is over.
    fn finish(mut self, partial: bool, schemas: &chat_format::Tools) -> (Message, usize) {
        let Some(parser) = self.parser.take() else { return (Message::default(), 0) };
        let (events, message) = parser.finish(partial);
        self.tell(events);
        let mut message = Message::from(message);
        if let Some(shares) = &self.shares {
            shares.put_into(&mut message, schemas);
        }
        (message, self.reasoning_tokens)
    }
}

impl llama_sampler::Watch for Reading<'_> {
    fn stop(&mut self) -> bool {
        self.over || self.watch.wants_stop()
    }

    fn wants_steps(&self) -> bool {
        !self.over && !self.watch.has_failed()
    }

    fn wants_shares(&self) -> bool {
        self.shares.is_some()
    }

    fn step(&mut self, step: &llama_sampler::Step<'_>) {
        if self.vocab.is_end_of_generation(step.token) {
            return;
        }
        let vocab = Arc::clone(&self.vocab);
        let bytes = vocab.piece(step.token).unwrap_or_default();
        let Some(parser) = &mut self.parser else { return };
        let thinking = parser.is_reasoning();
        if let Some(shares) = &mut self.shares {
            shares.token(bytes, step);
        }
        let events = parser.push(bytes);
        // What becomes its end marker is none of it.
        match (thinking && parser.is_reasoning(), parser.may_be_in_marker()) {
            (true, true) => self.held_tokens += 1,
            (true, false) => self.reasoning_tokens += 1 + std::mem::take(&mut self.held_tokens),
            (false, _) => self.held_tokens = 0,
        }
        self.over = parser.is_over();
        self.tell(events);
    }
}

impl Model {
    fn format<'py>(&self, py: Python<'py>) -> Result<Bound<'py, ChatFormat>> {
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
    ///     enable_thinking: whether the model may think, where its template knows this.
    ///     thinking_budget: the most tokens of reasoning; then its end marker is forced.
    ///     stream: called with each ChatEvent as soon as it is certain; what it raises ends the chat. It must not use
    ///         this model, except for `cancel`.
    ///     sampling: a Sampling; None is greedy.
    ///     max_tokens: the most tokens of the reply. None takes what the context has room for.
    ///     probabilities: tell of each call how probable its name was, and its enum and boolean arguments.
    ///     cancel: a CancelToken that ends this call.
    ///     timeout: the seconds that it may take, waiting for its turn included.
    ///     continue_final_message: go on with the last message, which is the assistant's: as in `ChatFormat.prompt`.
    ///     variables: what the template finds under other names.
    ///
    /// Returns:
    ///     Message: with `finish` and `stats`. Append it to the messages to go on.
    ///
    /// Raises:
    ///     TemplateError: the template refuses the messages.
    ///     OptionError: a message has an unknown role or shape, a tool cannot be called, there is no such tool, or a
    ///         setting is out of range.
    ///     RuleError: nothing satisfies a tool's schema.
    ///     ContextError: the prompt does not fit.
    ///     CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did. `error.partial` is the
    ///         Message so far.
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
    #[pyo3(
        signature = (
            messages, tools=None, tool_choice=None, *, parallel_tool_calls=true, enable_thinking=true,
            thinking_budget=None, stream=None, sampling=None, max_tokens=None, probabilities=false, cancel=None,
            timeout=None, continue_final_message=None, **variables
        ),
        text_signature = "($self, messages, tools=None, tool_choice=\"auto\", *, parallel_tool_calls=True, \
            enable_thinking=True, thinking_budget=None, stream=None, sampling=None, max_tokens=None, \
            probabilities=False, cancel=None, timeout=None, continue_final_message=None, **variables)",
    )]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn chat(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        tool_choice: Option<&Bound<'_, PyAny>>,
        parallel_tool_calls: bool,
        enable_thinking: bool,
        thinking_budget: Option<i64>,
        stream: Option<Py<PyAny>>,
        sampling: Option<&Bound<'_, Sampling>>,
        max_tokens: Option<i64>,
        probabilities: bool,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        continue_final_message: Option<&str>,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> Result<Message> {
        let (started, call) = (Instant::now(), Call::new(cancel, timeout)?);
        let (loaded, format) = (self.loaded(py)?, self.format(py)?);
        let (core, vocab) = (format.get().core().clone(), Arc::clone(loaded.model.vocab()));
        let messages = self::messages(messages, core.template().text())?;
        let tools = Tools::of_optional(py, tools)?;
        let offered = tools.get();
        let budget = thinking_budget.map(|budget| unsigned("thinking_budget", budget)).transpose()?;
        let max_tokens = max_tokens.map(|most| unsigned("max_tokens", most)).transpose()?;

        let mut constraint = ConstraintOptions::default();
        constraint.tools = offered.core().clone();
        constraint.choice = self::tool_choice(tool_choice, Some(&offered.names()))?;
        constraint.parallel = parallel_tool_calls;
        format.get().warn_of(py, &constraint)?;

        let options = prompt_options(enable_thinking, continued(continue_final_message)?, variables)?;
        let definitions = Some(offered.definitions()).filter(|_| !offered.core().is_empty());
        let prompt = released(py, || self::prompt(&core, &vocab, &messages, definitions, &options))?;
        constraint.prompt = Some(prompt.turn.clone());
        let rules = SpanRules::of(format.get().over(py, &constraint, budget, &vocab)?, vocab.len())?;
        let (nothing, none) = (Given(None), Given(None));
        let keywords = Keywords {
            mode: Given(None),
            temperature: nothing,
            top_k: none,
            top_p: nothing,
            min_p: nothing,
            seed: None,
            sampling,
        };
        let sampling = keywords.options(py)?;
        let options = Options { keywords, end_tokens: None, after: After(trie_core::After::Free) };
        let rules = Arc::new(options.rules(rules, vocab.end_of_generation())?);

        let mut reading = ParserOptions::default();
        reading.tools = Some(constraint.tools.clone());
        reading.tool_choice = constraint.choice.clone();
        reading.prompt = Some(prompt.turn);
        let parser = released(py, || core.parser(&reading))?;
        let room = self.n_ctx.saturating_sub(prompt.tokens.len()).max(1);
        let most = max_tokens.map_or(room, |most| most as usize);
        let generate = GenerateOptions::default().with_sampling(sampling).with_max_tokens(most).with_skip_ahead(true);
        let shares = probabilities.then(Shares::default);
        let (message, generated) = self.using(py, None, &call, |context, watch| {
            let mut reading = Reading {
                watch,
                parser: Some(parser),
                vocab,
                stream,
                shares,
                reasoning_tokens: 0,
                held_tokens: 0,
                over: false,
            };
            let generated = context.generate(&prompt.tokens, Some(&rules), &generate, &mut reading)?;
            let stopped = generated.finish == Finish::Stopped && !reading.over;
            let cut = stopped || matches!(generated.finish, Finish::MaxTokens | Finish::ContextFull);
            let (mut message, thought) =
                reading.finish(cut && !matches!(generated.finish, Finish::Span), &constraint.tools);
            let calls = !message.tool_calls.is_empty();
            let finish = match (stopped, cut, calls) {
                (true, ..) => "cancelled",
                (_, true, _) => "length",
                (.., true) => "tool_calls",
                _ => "stop",
            };
            message.finish = Some(finish.to_owned());
            let (stats, tokens) = (&generated.stats, generated.tokens.len());
            let spent = stats.decode_seconds + stats.sample_seconds;
            message.stats = Some(ChatStats {
                prompt_tokens: prompt.tokens.len(),
                prompt_tokens_reused: stats.prompt_tokens_reused,
                tokens,
                reasoning_tokens: thought,
                forced_tokens: stats.forced_tokens,
                forward_passes: stats.forward_passes,
                forward_passes_saved: stats.forward_passes_saved,
                seconds: started.elapsed().as_secs_f64(),
                prompt_seconds: stats.prompt_seconds,
                tokens_per_second: if spent > 0.0 { tokens as f64 / spent } else { 0.0 },
            });
            Ok((message, stopped))
        })?;
        if generated {
            let tokens = message.stats.map_or(0, |stats| stats.tokens);
            return Err(with_partial(py, call.error(&format!("after {tokens} generated tokens")), message));
        }
        Ok(message)
    }

    /// `chat` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the chat.
    ///
    /// Args:
    ///     messages, tools, tool_choice: as for `chat`.
    ///     options: the keywords of `chat`. `stream` is called on another thread.
    ///
    /// Returns:
    ///     An awaitable of Message.
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
        let chat = slf.getattr("chat")?;
        streaming(slf.py(), "in_background")?.call((chat, messages, tools, tool_choice), options)
    }
}
