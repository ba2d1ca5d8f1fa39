//! A reply: generated under the constraint of its format, and parsed while it is generated.

use crate::call::{Hooks, ReadyCall, Receipt, ReceiptSubject, Stops, finish_of, nth_seed};
use crate::chat::call_ids::CallIds;
use crate::chat::content::HeldContent;
use crate::chat::format::ModelFormat;
use crate::chat::prompt::ChatPrompt;
use crate::chat::reading::{ChatRelay, Reading, ReplyStep};
use crate::chat::shares::{CallShares, of_content};
use crate::constraint::ReplyWhitespace;
use crate::engine::{Generating, GenerationStart, Job, JobEvent, Runtime};
use chat_format::{ConstraintOptions, Event, FormatError, Message, Parser, ParserOptions, ToolChoice, Tools};
use llama_sampler::{Completion, Finish, GenerateOptions, Generated, GenerationConstraint, RuntimeError, TokenLogprob};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;
use trie_core::{AnyConstraint, LogitBias, SamplerOptions, SpanRules, TokenId};
use trie_text::Vocab;

/// Options for generating and reading a reply.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct ReplyOptions {
    /// The tools that may be called.
    pub tools: Tools,
    /// Permission or requirement to call tools.
    pub choice: ToolChoice,
    /// Allows more than one call.
    pub parallel: bool,
    /// White space in calls.
    pub whitespace: ReplyWhitespace,
    /// The most tokens; `None` is what the context has room for.
    pub max_tokens: Option<u32>,
    /// Texts that end the content; reasoning and calls may have them.
    pub stop: Stops,
    /// Constraint on the content. A reply that calls tools has none.
    pub content: Option<AnyConstraint>,
    /// Fingerprint of the constraint on the content, if that is data.
    pub content_fingerprint: Option<String>,
    /// Options of the sampler.
    pub sampling: SamplerOptions,
    /// Reports the probabilities of calls.
    pub probabilities: bool,
    /// Number of alternatives to report beside the log probability of each token of the content.
    pub logprobs: Option<u32>,
    /// Records the alternatives to each token for a receipt.
    pub receipt: bool,
    /// Biases on the logits of tokens.
    pub logit_bias: LogitBias,
    /// Completes a required call and constrained content if no more tokens fit, with a few tokens that the model did
    /// not choose. A thought before them is ended. Without this option the reply is cut off.
    pub complete: bool,
    /// Number of alternatives to report for each token; `None` reports no tokens.
    pub explain: Option<u32>,
}

impl ReplyOptions {
    /// Returns the constraint on the reply after this prompt.
    #[must_use]
    pub fn constraint(&self, prompt: &ChatPrompt) -> ConstraintOptions {
        let mut options = ConstraintOptions::default();
        options.tools = self.tools.clone();
        options.choice = self.choice.clone();
        options.parallel = self.parallel;
        options.whitespace = self.whitespace.into();
        options.prompt = Some(prompt.turn.clone());
        options
    }

    /// Returns the constraint on a reply that has calls and no content; `None` if no tool may be called.
    pub(super) fn calls_alone(&self, constraint: &ConstraintOptions) -> Option<ConstraintOptions> {
        let choice = match &self.choice {
            ToolChoice::None => return None,
            ToolChoice::Allowed { names, .. } => ToolChoice::Allowed { names: names.clone(), required: true },
            ToolChoice::Tool(name) => ToolChoice::Tool(name.clone()),
            _ => ToolChoice::Required,
        };
        let mut calls = constraint.clone();
        calls.choice = choice;
        (!self.tools.is_empty()).then_some(calls)
    }

    /// Returns the parser of the reply.
    ///
    /// # Errors
    /// As [`ModelFormat::parser`].
    pub fn parser(&self, format: &ModelFormat, prompt: &ChatPrompt) -> Result<Parser, FormatError> {
        let mut options = ParserOptions::default();
        options.tools = Some(self.tools.clone());
        options.tool_choice = self.choice.clone();
        options.prompt = Some(prompt.turn.clone());
        format.parser(&options)
    }
}

/// Cost of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct ChatStats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Number of these that were still in the KV cache.
    pub prompt_tokens_reused: usize,
    /// Tokens of the reply.
    pub tokens: usize,
    /// Number of these that are reasoning.
    pub reasoning_tokens: usize,
    /// Number of forced tokens.
    pub forced_tokens: usize,
    /// Forward passes after the prompt.
    pub forward_passes: u64,
    /// Number of passes that forced tokens saved.
    pub forward_passes_saved: usize,
    /// Number of tokens that were guessed ahead.
    pub drafted_tokens: usize,
    /// Number of these that were then chosen, too.
    pub accepted_tokens: usize,
    /// Number of rows of which only the logits of the allowed tokens left the device.
    pub gathered_rows: u64,
    /// Total duration in seconds.
    pub seconds: f64,
    /// Seconds until the prompt was decoded.
    pub prompt_seconds: f64,
    /// Tokens of the reply per second, without the time for the prompt.
    pub tokens_per_second: f64,
}

/// Reply to a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    /// Message of the reply; part of it after a cancellation.
    pub message: Message,
    /// Probabilities of each call, if requested.
    pub shares: Vec<CallShares>,
    /// Log probabilities of each token of the content, if requested.
    pub logprobs: Vec<TokenLogprob>,
    /// Each token with its alternatives, if [`ReplyOptions::explain`] is set.
    pub steps: Vec<ReplyStep>,
    /// Receipt of the allowed tokens, if requested.
    pub receipt: Option<Receipt>,
    /// True if constrained content is complete; always true of other content, and of a reply with calls.
    pub content_is_whole: bool,
    /// True if a call or constrained content was completed with a few tokens that the model did not choose, because no
    /// more tokens fitted.
    pub completed: bool,
    /// Reason why the generation ended.
    pub finish: Finish,
    /// The stop text that ended the content, if one did.
    pub stop_text: Option<String>,
    /// Cost of the reply.
    pub stats: ChatStats,
}

/// A chat request that is ready to run: it only needs a context.
#[derive(Debug)]
pub struct ReadyChat {
    pub(super) prompt: ChatPrompt,
    pub(super) rules: Arc<SpanRules>,
    pub(super) parser: Parser,
    /// Ids of its calls.
    pub(super) ids: CallIds,
    /// Constraint on the content.
    pub(super) content: Option<HeldContent>,
    /// The tokens that end a thought; none where a thought has no end, or nothing must come after it.
    pub(super) thought_end: Vec<TokenId>,
    pub(super) options: ReplyOptions,
    pub(super) vocab: Arc<Vocab>,
    pub(super) warnings: Arc<[String]>,
    /// Subject of its receipt, if one is requested, and the key of its seal.
    pub(super) subject: Option<ReceiptSubject>,
    pub(super) key: Option<Vec<u8>>,
    /// Number of replies to the same prompt.
    pub(super) n: u32,
    /// When it was made ready.
    pub(super) started: Instant,
}

impl ReadyChat {
    /// Returns the parts of the tools' schemas that are not enforced.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Sets the number of replies, with seeds and order as in
    /// [`ReadyGeneration::with_n`](crate::call::ReadyGeneration::with_n). Hooks are not told to which of several
    /// replies an event belongs.
    #[must_use]
    pub fn with_n(self, n: u32) -> Self {
        Self { n, ..self }
    }

    /// Sets the key that seals the receipts of the replies.
    #[must_use]
    pub fn with_key(self, key: Option<Vec<u8>>) -> Self {
        Self { key, ..self }
    }
}

impl ReadyCall for ReadyChat {
    type Outcome = Vec<ChatReply>;
    type Error = RuntimeError;

    fn run_on(self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<Vec<ChatReply>, RuntimeError> {
        let n = self.n;
        let room = runtime.n_ctx().saturating_sub(self.prompt.tokens.len()).max(1);
        let most = self.options.max_tokens.map_or(room, |most| most as usize);
        let (thought_end, (end, read)) = (self.thought_end.clone(), self.split());
        let (first, logprobs) = (end.options.sampling, end.options.logprobs.max(end.options.explain));
        let generate = GenerateOptions::default().with_max_tokens(most).with_logprobs(logprobs);
        let generate = generate.with_trail(end.options.receipt).with_logit_bias(end.options.logit_bias.clone());
        // Where the token that ends the turn has no room, a call is whole all the same.
        let generate =
            generate.with_thought_end(thought_end).with_complete(match (end.options.complete, end.is_held) {
                (false, _) => Completion::Off,
                (true, true) => Completion::Closed,
                (true, false) => Completion::Whole,
            });
        let each = (0..n).map(|nth| {
            let sampling = nth_seed(first, nth);
            (generate.clone().with_sampling(sampling), read.clone().with_sampling(&sampling))
        });
        let mut all = match runtime {
            Runtime::Alone(context) => {
                let mut all = Vec::new();
                for (generate, read) in each {
                    let mut reading = read.into_reading(&mut *hooks, &end);
                    let generated = context.generate(&end.prompt.tokens, Some(&end.rules), &generate, &mut reading)?;
                    let reply = end.build_reply(&generated, reading);
                    let is_stopped = reply.finish.is_stopped();
                    all.push(reply);
                    if is_stopped {
                        break;
                    }
                }
                all
            }
            Runtime::Shared(engine, draft) => {
                let (end, draft) = (Arc::new(end), *draft);
                let make =
                    |generate: &GenerateOptions, read: Read, tell: Sender<JobEvent<Vec<Event>, ChatReply>>, stop| {
                        let end = Arc::clone(&end);
                        let reading = read.into_reading(ChatRelay { stop, tell: tell.clone() }, &end);
                        let inside = GenerationConstraint::Rules(Arc::clone(&end.rules));
                        let start = GenerationStart { prompt: &end.prompt.tokens, inside: &inside, draft };
                        let task = engine.task(start, generate, reading)?;
                        let done = move |done: Result<(Generated, Reading<ChatRelay<ChatReply>>), RuntimeError>| {
                            let reply = done.map(|(generated, reading)| end.build_reply(&generated, reading));
                            // Who does not listen any more has stopped it.
                            let _ = tell.send(JobEvent::Done(reply));
                        };
                        Ok(Box::new(Generating { task, done }) as Box<dyn Job>)
                    };
                let make = &make;
                let jobs = each.map(|(generate, read)| move |tell, stop| make(&generate, read, tell, stop));
                engine.call_each(hooks.priority(), jobs, &mut |events| {
                    if let Some(events) = events {
                        hooks.events(events);
                    }
                    hooks.stop()
                })?
            }
        };
        for reply in &mut all {
            reply.finish = finish_of(reply.finish, hooks);
        }
        Ok(all)
    }
}

impl ReadyChat {
    fn split(self) -> (End, Read) {
        let Self { prompt, rules, parser, ids, content, options, vocab, subject, key, started, .. } = self;
        let is_held = content.is_some();
        (End { prompt, rules, is_held, options, vocab, subject, key, started }, Read { parser, ids, content })
    }
}

/// Reader of a reply.
#[derive(Clone)]
struct Read {
    parser: Parser,
    ids: CallIds,
    content: Option<HeldContent>,
}

impl Read {
    /// Returns the reader of a reply with this sampling.
    fn with_sampling(self, sampling: &SamplerOptions) -> Self {
        Self { ids: self.ids.with_sampling(sampling), ..self }
    }

    fn into_reading<W: Hooks>(self, watch: W, end: &End) -> Reading<W> {
        let (vocab, options) = (Arc::clone(&end.vocab), &end.options);
        let parts = (self.parser, self.ids, self.content);
        let read = Reading::new(watch, parts, vocab, options.probabilities, &options.stop);
        if options.explain.is_some() { read.with_steps() } else { read }
    }
}

/// Data for building a reply from a generation.
struct End {
    prompt: ChatPrompt,
    rules: Arc<SpanRules>,
    /// True if its content is constrained.
    is_held: bool,
    options: ReplyOptions,
    vocab: Arc<Vocab>,
    subject: Option<ReceiptSubject>,
    key: Option<Vec<u8>>,
    started: Instant,
}

impl End {
    fn build_reply<W: Hooks>(&self, generated: &Generated, mut reading: Reading<W>) -> ChatReply {
        let stopped = generated.finish.is_stopped() && !reading.is_over();
        let (by_text, stop_text) = (reading.is_stopped_by_text(), reading.stop_text());
        let cut = stopped || matches!(generated.finish, Finish::MaxTokens | Finish::ContextFull);
        // Only the token that ends the turn did not fit.
        let is_held = self.is_held && !reading.has_called();
        let is_whole = !stopped && (reading.content_is_over() || (!is_held && !reading.is_calling()));
        let content_is_whole = !is_held || generated.finish == Finish::Span || is_whole;
        let steps = reading.take_steps();
        let (message, shares, reasoning_tokens) = reading.finish(cut, &self.options.tools);
        let known = if self.options.logprobs.is_some() { &*generated.logprobs } else { &[] };
        let logprobs = of_content(known, &message.content, &self.vocab);
        let finish = match (stopped, cut, message.tool_calls.is_empty()) {
            (true, ..) => generated.finish,
            (_, true, no_calls) if !is_whole || (no_calls && !is_held) => generated.finish,
            (.., false) => Finish::ToolCalls,
            _ if by_text => Finish::StopText,
            _ if is_held && generated.finish != Finish::EndOfGeneration => Finish::Span,
            _ => Finish::EndOfGeneration,
        };
        let (stats, tokens) = (&generated.stats, generated.tokens.len());
        let spent = stats.decode_seconds + stats.sample_seconds;
        let stats = ChatStats {
            prompt_tokens: self.prompt.tokens.len(),
            prompt_tokens_reused: stats.prompt_tokens_reused,
            tokens,
            reasoning_tokens,
            forced_tokens: stats.forced_tokens,
            forward_passes: stats.forward_passes,
            forward_passes_saved: stats.forward_passes_saved,
            drafted_tokens: stats.drafted_tokens,
            accepted_tokens: stats.accepted_tokens,
            gathered_rows: stats.gathered_rows,
            seconds: self.started.elapsed().as_secs_f64(),
            prompt_seconds: stats.prompt_seconds,
            tokens_per_second: if spent > 0.0 { tokens as f64 / spent } else { 0.0 },
        };
        let receipt = |of| Receipt::from_trail(of, &self.vocab, &generated.trail, self.key.as_deref());
        let (receipt, completed) = (self.subject.as_ref().map(receipt), generated.completed);
        ChatReply { message, shares, logprobs, steps, receipt, content_is_whole, completed, finish, stop_text, stats }
    }
}
