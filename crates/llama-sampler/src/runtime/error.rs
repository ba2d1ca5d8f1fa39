//! Errors of the runtime: the cause, the place and the value.

use chat_template::TemplateError;
use std::path::PathBuf;
use trie_core::ErrorKind;
use trie_core::logits::NoLogits;
use trie_core::{Damage, DrawError, NotListed, Problem, RulesError, SamplerError};
use trie_text::{FormError, HealingError, VocabError, quote};

/// Error of the runtime. After any of these the model and the context can be used again.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// llama.cpp did not start.
    #[error("llama.cpp did not start: {reason}")]
    Backend {
        /// Message of the backend that failed.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read the model file {path:?}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The path is not a file, or no text that llama.cpp can open.
    #[error("{path:?} is not a model file: {what}")]
    Path {
        /// Path that was given.
        path: PathBuf,
        /// Description of the defect.
        what: &'static str,
    },
    /// The file is not in GGUF format, or in a version that llama.cpp does not read.
    #[error("{path:?} is not a GGUF file that llama.cpp reads: {what}")]
    NotGguf {
        /// Path of the file.
        path: PathBuf,
        /// Contents that were found instead.
        what: String,
    },
    /// A value that llama.cpp takes for granted is invalid, so that llama.cpp would abort the process.
    #[error("{path:?} cannot be used: {key} is {value}: {what}")]
    Metadata {
        /// Path of the file.
        path: PathBuf,
        /// Name of the value, or of the tensor.
        key: String,
        /// Value of the key.
        value: String,
        /// Description of the defect.
        what: String,
    },
    /// A vocabulary without weights was to be used as a model.
    #[error("{path:?} holds a vocabulary only, no weights: it can tokenize, but not generate")]
    VocabularyOnly {
        /// Path of the file.
        path: PathBuf,
    },
    /// Weights without a vocabulary.
    #[error("{path:?} holds no vocabulary (tokenizer {tokenizer:?}, {n_vocab} tokens)")]
    NoVocabulary {
        /// Path of the file.
        path: PathBuf,
        /// Name of the tokenizer.
        tokenizer: String,
        /// Its number of tokens.
        n_vocab: i64,
    },
    /// The model does not generate text token by token.
    #[error("{path:?} is a {architecture:?} model: only models that predict the next token can be used")]
    NotADecoder {
        /// Path of the file.
        path: PathBuf,
        /// Name of the architecture.
        architecture: String,
    },
    /// llama.cpp refused the file: truncated, damaged, of an unknown architecture, or too large for the memory.
    #[error("llama.cpp cannot load {path:?}: {reason}")]
    Load {
        /// Path of the file.
        path: PathBuf,
        /// Last message that llama.cpp logged.
        reason: String,
    },
    /// llama.cpp refused to make a context.
    #[error("llama.cpp cannot make a context of {n_ctx} tokens: {reason}")]
    Context {
        /// The size that was asked for.
        n_ctx: u32,
        /// Last message that llama.cpp logged.
        reason: String,
    },
    /// A number out of range.
    #[error("{what} is {value}: it must be from {least} to {most}")]
    OutOfRange {
        /// Name of the number.
        what: &'static str,
        /// Value of the number.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// No drafts can come from this source, or for this model.
    #[error("{reason}")]
    Draft {
        /// The whole message, with its reason.
        reason: String,
    },
    /// No token to start from.
    #[error("the prompt has no tokens: the first forward pass needs at least one")]
    EmptyPrompt,
    /// Rules made for a larger vocabulary than the model's.
    #[error("the rules were made for {rules} token ids, the model has {n_vocab}")]
    VocabularyMismatch {
        /// Ids in the rules.
        rules: usize,
        /// Ids in the model.
        n_vocab: usize,
    },
    /// A walk of a set reached a dead end: nothing follows, and no leaf ends there.
    #[error("a value ended where the set has none: it is damaged; verifying its file says where")]
    DamagedSet,
    /// No token is allowed, because something went wrong in the constraint.
    #[error(transparent)]
    Problem(Problem),
    /// More tokens than the context holds.
    #[error("{asked} tokens after {held} do not fit: the context has room for {n_ctx}")]
    ContextFull {
        /// Tokens in the context.
        held: usize,
        /// Number of tokens given.
        asked: usize,
        /// Room in the context.
        n_ctx: usize,
    },
    /// A value of a form that fills the context.
    #[error(
        "part {name:?} of the form is not over after {tokens} tokens, and the context has room for {n_ctx}: no short \
         end of it is known. Bound its repetition, or raise n_ctx"
    )]
    FieldTooLong {
        /// The name of the slot or text.
        name: String,
        /// Number of its tokens that were written.
        tokens: usize,
        /// Room in the context.
        n_ctx: usize,
    },
    /// A file cannot be a prefix, or cannot be read or written as one.
    #[error("{path:?} is not a prefix that can be used: {what}")]
    Prefix {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        what: String,
    },
    /// Options of a cache that do not go together.
    #[error("{reason}")]
    Cache {
        /// Unsupported combination, and a remedy.
        reason: String,
    },
    /// Rows that the device gathers, in an engine.
    #[error(
        "device_sampling is not supported with slots or fixed batching: a pass has rows of several calls; leave one of \
         them out"
    )]
    SharedDevice,
    /// A prefix for slots that are fixed.
    #[error("a prefix is decoded otherwise than slots with fixed batching decode: use free batching")]
    FixedPrefix,
    /// A prefix does not go into this context.
    #[error("the prefix of {tokens} tokens does not go into this context: {reason}")]
    Restore {
        /// Number of its tokens.
        tokens: usize,
        /// Reason for the refusal.
        reason: String,
    },
    /// A value that does not fit after the prompt.
    #[error(
        "{} has {tokens} tokens: after a prompt of {prompt} they do not fit into the context of {n_ctx}",
        quote(.value)
    )]
    ValueTooLong {
        /// The longest value's name; empty without names.
        value: String,
        /// Number of its tokens.
        tokens: usize,
        /// Tokens of the prompt.
        prompt: usize,
        /// Room in the context.
        n_ctx: usize,
    },
    /// Error in one of several prompts.
    #[error("prompt {number}: {error}")]
    Prompt {
        /// Its number among those that were given.
        number: usize,
        /// Error of the prompt.
        error: Box<RuntimeError>,
    },
    /// Error in a named argument.
    #[error("{what}: {error}")]
    Argument {
        /// Name of the argument.
        what: &'static str,
        /// Error of the argument.
        error: Box<RuntimeError>,
    },
    /// Logits were asked for before the first forward pass.
    #[error("there are no logits yet: feed at least one token first")]
    NoLogits,
    /// A model that gives no vectors of texts.
    #[error("embeddings are not supported by this model: {reason}")]
    NoVectors {
        /// Reason for the refusal.
        reason: String,
    },
    /// The forward pass failed; the context is as before.
    #[error("the forward pass over {tokens} tokens at position {position} failed: {reason}")]
    Decode {
        /// Position of the first.
        position: usize,
        /// Tokens in the batch.
        tokens: usize,
        /// Last message that llama.cpp logged.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("stopped on request after {done} of {of} {what}")]
    Stopped {
        /// Name of the operation.
        what: &'static str,
        /// Amount of work done.
        done: usize,
        /// Amount of work in all.
        of: usize,
    },
    /// The queue holds as many waiting jobs as it may.
    #[error("{queued} calls wait already, the most that may: try again later, or raise max_queue")]
    QueueFull {
        /// Number of waiting calls.
        queued: usize,
    },
    /// The engine was closed, and takes no more calls.
    #[error("the engine is closed")]
    Closed,
    /// The engine's thread is in another process.
    #[error(
        "this process was forked from the one that made the engine, whose thread is not here: make a model in this \
         process"
    )]
    Forked,
    /// A job failed with an internal error; others go on.
    #[error("a job failed inside: {reason}")]
    Failed {
        /// Message of the host.
        reason: String,
    },
    /// The file has no chat template.
    #[error("{path:?} has no chat template")]
    NoTemplate {
        /// Path of the file.
        path: PathBuf,
    },
    /// The chat template is faulty, or refuses the messages.
    #[error("the model's chat template: {0}")]
    Template(#[from] TemplateError),
    /// The chain's last sampler does not select.
    #[error(
        "the chain selected no token, or one that it had ruled out: \
         it must end with a sampler that selects, such as greedy or dist"
    )]
    NothingSelected,
    /// A token that the vocabulary does not have, a set for another one, or a text that cannot be tokenized.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// A set that cannot come after this prompt.
    #[error(transparent)]
    Healing(#[from] HealingError),
    /// A sampling setting out of range.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// A choice that the span refuses.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// A constraint without a list of its values, which scoring needs.
    #[error(transparent)]
    NotListed(#[from] NotListed),
    /// A set from a file that was damaged after it was written.
    #[error("the set cannot be trusted: {0}")]
    DamagedFile(#[from] Damage),
    /// Rules that do not fit this vocabulary.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Values that cannot be scored.
    #[error("{reason}")]
    Unscored {
        /// Reason for the refusal.
        reason: String,
    },
    /// A row of logits in which no token can be chosen, because the model computes no numbers.
    #[error("the model fails: {0}")]
    SaysNothing(#[from] NoLogits),
    /// A form that this vocabulary cannot spell.
    #[error(transparent)]
    Form(#[from] FormError),
}

impl RuntimeError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Prompt { error, .. } | Self::Argument { error, .. } => error.kind(),
            Self::Vocab(error) => error.kind(),
            Self::Healing(error) => error.kind(),
            Self::Draw(error) => error.kind(),
            Self::Sampler(error) => error.kind(),
            Self::NotListed(error) => error.kind(),
            Self::Rules(error) => error.kind(),
            Self::Form(error) => error.kind(),
            Self::Problem(_) | Self::DamagedSet | Self::DamagedFile(_) => ErrorKind::Damaged,
            Self::VocabularyMismatch { .. } | Self::NoVocabulary { .. } => ErrorKind::Vocabulary,
            Self::Stopped { .. } => ErrorKind::Cancelled,
            Self::QueueFull { .. } => ErrorKind::QueueFull,
            Self::Forked => ErrorKind::Busy,
            Self::Template(_) => ErrorKind::Template,
            Self::OutOfRange { .. } | Self::Cache { .. } | Self::SharedDevice | Self::Draft { .. } => {
                ErrorKind::Argument
            }
            Self::EmptyPrompt | Self::NothingSelected => ErrorKind::Prompt,
            Self::Prefix { .. } => ErrorKind::File,
            Self::ContextFull { .. } | Self::ValueTooLong { .. } | Self::FieldTooLong { .. } => ErrorKind::Context,
            Self::Closed
            | Self::Failed { .. }
            | Self::Backend { .. }
            | Self::File { .. }
            | Self::Path { .. }
            | Self::NotGguf { .. }
            | Self::Metadata { .. }
            | Self::VocabularyOnly { .. }
            | Self::NotADecoder { .. }
            | Self::Load { .. }
            | Self::Context { .. }
            | Self::Restore { .. }
            | Self::FixedPrefix
            | Self::NoTemplate { .. }
            | Self::NoLogits
            | Self::NoVectors { .. }
            | Self::Unscored { .. }
            | Self::SaysNothing(_)
            | Self::Decode { .. } => ErrorKind::Model,
        }
    }
}

impl RuntimeError {
    /// The same error, for a named argument.
    pub(super) fn with_argument(self, what: &'static str) -> Self {
        Self::Argument { what, error: Box::new(self) }
    }

    /// The same error, for one of several prompts with its number.
    pub(super) fn of_prompt(self, number: usize) -> Self {
        Self::Prompt { number, error: Box::new(self) }
    }

    /// The same error without the number of the prompt, if there is only one.
    #[must_use]
    pub fn of_the_only_prompt(self) -> Self {
        match self {
            Self::Prompt { error, .. } => *error,
            other => other,
        }
    }
}
