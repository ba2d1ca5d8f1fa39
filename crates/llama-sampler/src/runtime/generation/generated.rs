//! Options and results of a generation.

use crate::runtime::watch::TokenLogprob;
use trie_core::{Correction, Leaf, LogitBias, SamplerOptions, TokenId};

/// Extent to which a value is completed when no more tokens fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Completion {
    /// Not at all: it is cut off.
    #[default]
    Off,
    /// Up to the whole value. The tokens that close it may have no room.
    Whole,
    /// Together with the tokens that close the value.
    Closed,
}

/// Options of a generation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct GenerateOptions {
    /// Sampling among the allowed tokens. Each slot and text of a form draws from its own seed: this one plus its
    /// number.
    pub sampling: SamplerOptions,
    /// Sampling of the free text after the span; `None`: the same as before it. Only together with
    /// [`GenerateOptions::skip_ahead`].
    pub free: Option<SamplerOptions>,
    /// The most tokens to generate.
    pub max_tokens: usize,
    /// The most of them that may be free text, after a value or without a constraint; `None` sets no limit of its own.
    pub max_free_tokens: Option<usize>,
    /// True if forced tokens are decoded together with what follows them, instead of one by one.
    pub skip_ahead: bool,
    /// Number of bytes that come first and already stand at the end of the text before the prompt: the text goes on
    /// behind them. A set with [`Trie::heal_bytes`](trie_core::Trie::heal_bytes) states them itself.
    pub healed_bytes: usize,
    /// True if, in a form, the most probable value of each slot is taken as a whole, instead of walking token by token.
    pub exact: bool,
    /// True if, in a form, the probability of every value of every slot is returned, given the text before it.
    pub probabilities: bool,
    /// Number of most probable tokens to report beside each token, whose own log-probability is then reported too.
    /// Costs `O(allowed)` a token. Values that `exact` takes as a whole have none.
    pub logprobs: Option<u32>,
    /// True to keep the alternatives of each token, for a receipt. Costs `O(vocabulary)` a row. It does not apply to
    /// values of a form that are weighed as a whole.
    pub trail: bool,
    /// Extent to which a begun value is completed with few tokens when `max_tokens` or the room of the context runs
    /// out, instead of being cut off. A form is always completed.
    /// [`Context::generate_with_chain`](crate::Context::generate_with_chain) does not support this.
    pub complete: Completion,
    /// Tokens that end a thought before a value that must come, for `complete`. They are forced when the room is just
    /// enough for them and the shortest value. If empty, a thought may take all the room.
    pub thought_end: Vec<TokenId>,
    /// Tokens that are written first, in place of those that the model would choose; the rules allow them. Only the
    /// probabilities that a watcher asks for need rows of logits. Not for forms.
    pub given: Vec<TokenId>,
    /// Bias added to the logits before anything else. It does not apply to values that are weighed as a whole.
    pub logit_bias: LogitBias,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            sampling: SamplerOptions::default(),
            free: None,
            max_tokens: 64,
            max_free_tokens: None,
            skip_ahead: true,
            healed_bytes: 0,
            exact: false,
            probabilities: false,
            logprobs: None,
            trail: false,
            complete: Completion::Off,
            thought_end: Vec::new(),
            given: Vec::new(),
            logit_bias: LogitBias::default(),
        }
    }
}

impl GenerateOptions {
    /// Sets [`GenerateOptions::sampling`] of the options.
    #[must_use]
    pub fn with_sampling(self, sampling: SamplerOptions) -> Self {
        Self { sampling, ..self }
    }

    /// Sets [`GenerateOptions::free`] of the options.
    #[must_use]
    pub fn with_free(self, free: impl Into<Option<SamplerOptions>>) -> Self {
        Self { free: free.into(), ..self }
    }

    /// Sets [`GenerateOptions::max_tokens`] of the options.
    #[must_use]
    pub fn with_max_tokens(self, max_tokens: usize) -> Self {
        Self { max_tokens, ..self }
    }

    /// Sets [`GenerateOptions::max_free_tokens`] of the options.
    #[must_use]
    pub fn with_max_free_tokens(self, most: impl Into<Option<usize>>) -> Self {
        Self { max_free_tokens: most.into(), ..self }
    }

    /// Sets [`GenerateOptions::skip_ahead`] of the options.
    #[must_use]
    pub fn with_skip_ahead(self, skip_ahead: bool) -> Self {
        Self { skip_ahead, ..self }
    }

    /// Sets [`GenerateOptions::healed_bytes`] of the options.
    #[must_use]
    pub fn with_healed_bytes(self, healed_bytes: usize) -> Self {
        Self { healed_bytes, ..self }
    }

    /// Sets [`GenerateOptions::exact`] of the options.
    #[must_use]
    pub fn with_exact(self, exact: bool) -> Self {
        Self { exact, ..self }
    }

    /// Sets [`GenerateOptions::probabilities`] of the options.
    #[must_use]
    pub fn with_probabilities(self, probabilities: bool) -> Self {
        Self { probabilities, ..self }
    }

    /// Sets [`GenerateOptions::logprobs`] of the options.
    #[must_use]
    pub fn with_logprobs(self, logprobs: impl Into<Option<u32>>) -> Self {
        Self { logprobs: logprobs.into(), ..self }
    }

    /// Sets [`GenerateOptions::trail`] of the options.
    #[must_use]
    pub fn with_trail(self, trail: bool) -> Self {
        Self { trail, ..self }
    }

    /// Sets [`GenerateOptions::complete`] of the options.
    #[must_use]
    pub fn with_complete(self, complete: Completion) -> Self {
        Self { complete, ..self }
    }

    /// Sets [`GenerateOptions::thought_end`] of the options.
    #[must_use]
    pub fn with_thought_end(self, thought_end: Vec<TokenId>) -> Self {
        Self { thought_end, ..self }
    }

    /// Sets [`GenerateOptions::given`] of the options.
    #[must_use]
    pub fn with_given(self, given: Vec<TokenId>) -> Self {
        Self { given, ..self }
    }

    /// Sets [`GenerateOptions::logit_bias`] of the options.
    #[must_use]
    pub fn with_logit_bias(self, logit_bias: LogitBias) -> Self {
        Self { logit_bias, ..self }
    }
}

/// Reason why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The span ended and nothing follows it, or the form was filled.
    Span,
    /// The model ended its output.
    EndOfGeneration,
    /// A stop text was written; reported by callers that look for stop texts.
    StopText,
    /// The model calls tools; reported by callers that parse chats.
    ToolCalls,
    /// The limit was reached.
    MaxTokens,
    /// The context was full.
    ContextFull,
    /// The watcher stopped it.
    Cancelled,
    /// The watcher stopped it because its time was over; reported by callers that know this.
    TimedOut,
}

impl Finish {
    /// Returns its name in reports to hosts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Span => "span",
            Self::EndOfGeneration => "end_of_generation",
            Self::StopText => "stop_text",
            Self::ToolCalls => "tool_calls",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "context_full",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    /// All reasons why a generation ends.
    pub const ALL: [Self; 8] = [
        Self::Span,
        Self::EndOfGeneration,
        Self::StopText,
        Self::ToolCalls,
        Self::MaxTokens,
        Self::ContextFull,
        Self::Cancelled,
        Self::TimedOut,
    ];

    /// Returns whether the output is complete: neither cut off by a limit nor stopped from outside.
    #[must_use]
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Span | Self::EndOfGeneration | Self::StopText | Self::ToolCalls)
    }

    /// Returns whether somebody ended it from outside.
    #[must_use]
    pub fn is_stopped(self) -> bool {
        matches!(self, Self::Cancelled | Self::TimedOut)
    }
}

/// A slot or text that was filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the form.
    pub name: String,
    /// The value that was chosen, or the text that was written.
    pub value: String,
    /// The value's number. `None` for free text, whose values form no set, and for a form inside another constraint.
    pub index: Option<usize>,
    /// Probability of each value of a slot among all its values, by its name, if requested. If the values form no set,
    /// they are in the order of [`SlotSet::values`](trie_text::SlotSet::values).
    pub probabilities: Option<Vec<(String, f64)>>,
    /// The tokens that were written for it, together with the text around it in the same tokens.
    pub tokens: Vec<TokenId>,
    /// `true` if it was completed with few tokens that the model did not choose, because the room of the context ran
    /// out.
    pub completed: bool,
}

impl Generated {
    /// Returns the names of the slots and texts that were completed with few tokens that the model did not choose.
    pub fn completed_fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(|field| field.completed).map(|field| field.name.as_str())
    }
}

impl Field {
    /// Returns the field that a walk filled, if the leaf is part of a form; without probabilities.
    pub(super) fn from_leaf(leaf: &Leaf) -> Option<Self> {
        let (name, value) = (leaf.field.clone()?, leaf.name.clone()?);
        Some(Self { name, value, index: None, probabilities: None, tokens: leaf.tokens.clone(), completed: false })
    }
}

/// A token, and the alternatives among which it was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrailStep {
    /// The token that was written at this step.
    pub token: TokenId,
    /// The choice; `None` if the token's text was forced.
    pub branch: Option<Branch>,
    /// True if the token spells more than a part of a form holds, and is not part of the output.
    pub dropped: bool,
}

/// A choice between several tokens, given a row of logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Branch {
    /// Probability mass that the model gave to all of these tokens together, 0 to 1.
    pub mass: f64,
    /// Share of that mass that the chosen token has.
    pub probability: f64,
    /// Share of that mass that the best other token has.
    pub runner_up: f64,
    /// [`Vocab::mask_digest`](trie_text::Vocab::mask_digest) of the allowed tokens.
    pub mask: [u8; 32],
}

/// Result of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The tokens, end tokens of the span included, end of generation excluded. They follow the prompt, without its
    /// healed bytes.
    pub tokens: Vec<TokenId>,
    /// Their text after the prompt, without the healed bytes, which the prompt already contains. Bytes that are no
    /// UTF-8 became U+FFFD.
    pub text: String,
    /// The value, if the span was completed; of several, the last.
    pub leaf: Option<Leaf>,
    /// Values of constraints that follow each other, in order; for a form, the values that were filled in.
    pub leaves: Vec<Leaf>,
    /// Fields of a form, in order; if it was stopped, the first of them. Empty for other constraints.
    pub fields: Vec<Field>,
    /// Text of the value, if the span was completed: the text of the tokens that belong to a value, without healed
    /// bytes. For a form, the whole text.
    pub value: Option<String>,
    /// Number of tokens up to the last one that is part of a value; 0 if there is none, and for a form.
    pub value_tokens: usize,
    /// Bytes that the last token of the value spells beyond it: the beginning of the free text. Empty unless the set
    /// lets a token go on after a value ([`Tokenization::OpenEnd`](trie_text::Tokenization::OpenEnd)).
    pub partial_token: Vec<u8>,
    /// True if these are the tokens that the tokenizer writes for the text of a form. Sets of tokens, and free text
    /// that ends inside a token, can have others. Always true for other constraints, where it is not checked.
    pub canonical: bool,
    /// `true` if a value was completed with few tokens that the model did not choose, because the room of the context
    /// or, with [`GenerateOptions::complete`], `max_tokens` ran out. For a form, [`Field::completed`] says which value.
    pub completed: bool,
    /// Log-probability of each token; empty unless requested.
    pub logprobs: Vec<TokenLogprob>,
    /// Alternatives of each token, including a token that only ended the output; empty unless requested.
    pub trail: Vec<TrailStep>,
    /// Reason why the generation ended.
    pub finish: Finish,
    /// Cost of the generation.
    pub stats: GenerateStats,
    /// Account of the draw of the text as a whole; `None` if it was written token by token.
    pub correction: Option<Correction>,
}

/// Cost of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct GenerateStats {
    /// Number of calls of `llama_decode`.
    pub forward_passes: u64,
    /// Tokens in them, prompt included.
    pub tokens_decoded: usize,
    /// Tokens that came where exactly one was allowed.
    pub forced_tokens: usize,
    /// Tokens that were chosen among several.
    pub sampled_tokens: usize,
    /// Tokens that needed no row of logits of their own: forward passes that were not made.
    pub forward_passes_saved: usize,
    /// Tokens that were guessed ahead and decoded together with the tokens before them; see [`Draft`](crate::Draft).
    pub drafted_tokens: usize,
    /// Drafted tokens that the sampler then chose, too: forward passes that were not made.
    pub accepted_tokens: usize,
    /// Rows of which only the logits of the allowed tokens left the device; see
    /// [`ContextOptions::device_sampling`](crate::ContextOptions::device_sampling).
    pub gathered_rows: u64,
    /// Times that no legal token had a usable logit.
    pub starved: u64,
    /// Tokens of free text before a [`ThinkGate`](trie_core::ThinkGate) closed, without its markers.
    pub thinking_tokens: usize,
    /// Tokens of the prompt, without those at its end that the set spells again.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that the context held already: they were not decoded again.
    pub prompt_tokens_reused: usize,
    /// Bytes at the end of the prompt that the set spells again, so that it was decoded without them.
    pub healed_bytes: usize,
    /// Seconds for the prompt.
    pub prompt_seconds: f64,
    /// Seconds in the forward passes after it.
    pub decode_seconds: f64,
    /// Seconds in the sampler chain.
    pub sample_seconds: f64,
    /// Threads of the last forward pass.
    pub n_threads: u32,
    /// Seed of the draw.
    pub seed: u32,
    /// Seconds in all, if the caller measures them.
    pub seconds: f64,
}
