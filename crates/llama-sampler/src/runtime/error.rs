//! What can go wrong in the runtime: what, where and with which value.

use super::form::FormError;
use super::tokenizer::TokenizerError;
use std::path::PathBuf;
use trie_core::{DrawError, SamplerError, TokenId};

/// Why the runtime refused or failed. After any of these the model and the session can be used again.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// llama.cpp did not start.
    #[error("llama.cpp did not start: {reason}")]
    Backend {
        /// What it said.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read the model file {path:?}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The path is no file, or no text that llama.cpp can open.
    #[error("{path:?} is not a model file: {what}")]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file is not in GGUF format, or in a version that llama.cpp does not read.
    #[error("{path:?} is not a GGUF file that llama.cpp reads: {what}")]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        what: String,
    },
    /// A vocabulary without weights was to be used as a model.
    #[error("{path:?} holds a vocabulary only, no weights: it can tokenize, but not generate")]
    VocabularyOnly {
        /// The file.
        path: PathBuf,
    },
    /// Weights without a vocabulary.
    #[error("{path:?} holds no vocabulary (tokenizer {tokenizer:?}, {n_vocab} tokens)")]
    NoVocabulary {
        /// The file.
        path: PathBuf,
        /// Its tokenizer.
        tokenizer: String,
        /// Its number of tokens.
        n_vocab: i64,
    },
    /// The model does not generate text token by token.
    #[error("{path:?} is a {architecture:?} model: only models that predict the next token can be used")]
    NotADecoder {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        architecture: String,
    },
    /// llama.cpp refused the file: truncated, damaged, of an unknown architecture, or too large for the memory.
    #[error("llama.cpp cannot load {path:?}: {reason}")]
    Load {
        /// The file.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
    /// llama.cpp refused to make a context.
    #[error("llama.cpp cannot make a context of {n_ctx} tokens: {reason}")]
    Context {
        /// The size that was asked for.
        n_ctx: u32,
        /// What it said.
        reason: String,
    },
    /// A number out of range.
    #[error("{what} is {value}: it must be in {least}..={most}")]
    OutOfRange {
        /// The number's name.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// No token to start from.
    #[error("the prompt has no tokens: the first forward pass needs at least one")]
    EmptyPrompt,
    /// A token that the vocabulary does not have.
    #[error("token id {token} at position {position} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// Where it stands in what was given.
        position: usize,
        /// The id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// Rules made for a larger vocabulary than the model's.
    #[error("the rules were made for {rules} token ids, the model has {n_vocab}")]
    VocabularyMismatch {
        /// Ids in the rules.
        rules: usize,
        /// Ids in the model.
        n_vocab: usize,
    },
    /// The vocabulary was made from a token list and has no tokenizer.
    #[error("this vocabulary was made from a list of tokens: it cannot tokenize text")]
    NoTokenizer,
    /// The tokenizer wants a special token that the file does not define.
    #[error("the tokenizer adds a {token} token, but the model file defines none")]
    MissingSpecial {
        /// Which one.
        token: &'static str,
    },
    /// A tokenizer that is not llama.cpp's failed, or what it gave cannot be used.
    #[error("the tokenizer: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// A `tokenizer.json` that says too little of its tokens, or is none.
    #[error("not a tokenizer.json that can be used: {reason}")]
    TokenizerFile {
        /// What is wrong with it.
        reason: String,
    },
    /// What is wrong with one of several values.
    #[error("value {row}: {error}")]
    Value {
        /// Its place, from 0.
        row: usize,
        /// What is wrong with it.
        error: Box<RuntimeError>,
    },
    /// A set that was saved for another vocabulary: the same ids mean other tokens.
    #[error("the set was saved for another vocabulary: its fingerprint is {found}, this one's is {expected}")]
    OtherVocabulary {
        /// In the file.
        found: String,
        /// Of the vocabulary that it is used with.
        expected: String,
    },
    /// A set was walked to where nothing follows and no leaf ends.
    #[error("a value ended where the set has none: it is damaged; open it with verify=True to see where")]
    DamagedSet,
    /// More tokens than the context holds.
    #[error("{held} tokens are held and {asked} more were given: the context has room for {n_ctx}")]
    ContextFull {
        /// Tokens in the context.
        held: usize,
        /// Tokens given.
        asked: usize,
        /// Room in the context.
        n_ctx: usize,
    },
    /// A value that does not fit after the prompt.
    #[error(
        "{} has {tokens} tokens: after a prompt of {prompt} they do not fit into the context of {n_ctx}",
        super::texts::short(.value)
    )]
    ValueTooLong {
        /// The longest value's name; empty without names.
        value: String,
        /// Its tokens.
        tokens: usize,
        /// Tokens of the prompt.
        prompt: usize,
        /// Room in the context.
        n_ctx: usize,
    },
    /// What is wrong with one of several prompts.
    #[error("prompt {number}: {error}")]
    Prompt {
        /// Its number among those that were given.
        number: usize,
        /// What is wrong with it.
        error: Box<RuntimeError>,
    },
    /// What is wrong with a named argument.
    #[error("{what}: {error}")]
    Argument {
        /// Its name.
        what: &'static str,
        /// What is wrong with it.
        error: Box<RuntimeError>,
    },
    /// A set that begins inside another prompt than this one.
    #[error(
        "the set begins inside its prompt and spells {spelled:?} again (heal_bytes), but this prompt ends with the tokens {found:?}"
    )]
    NotHealed {
        /// What every value begins with.
        spelled: String,
        /// The last tokens of the prompt, at most four.
        found: Vec<String>,
    },
    /// A set that spells a whole prompt again.
    #[error(
        "the set begins with {spelled:?}, which is all of the prompt: the first forward pass needs at least one token"
    )]
    AllTakenBack {
        /// What every value begins with.
        spelled: String,
    },
    /// Logits were asked for before the first forward pass.
    #[error("there are no logits yet: feed at least one token first")]
    NoLogits,
    /// The forward pass failed; the context is as before.
    #[error("the forward pass over {tokens} tokens at position {position} failed: {reason}")]
    Decode {
        /// Position of the first.
        position: usize,
        /// Tokens in the batch.
        tokens: usize,
        /// What llama.cpp said.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("stopped on request after {done} of {of} {what}")]
    Stopped {
        /// What was being done.
        what: &'static str,
        /// How much of it was done.
        done: usize,
        /// How much there was to do.
        of: usize,
    },
    /// The file has no chat template.
    #[error("{path:?} has no chat template")]
    NoTemplate {
        /// The file.
        path: PathBuf,
    },
    /// The chat template is faulty, or refuses the messages.
    #[error("the model's chat template: {reason}")]
    Template {
        /// What went wrong, and where in the template.
        reason: String,
    },
    /// The chain's last sampler does not select.
    #[error(
        "the chain selected no token, or one that it had ruled out: it must end with a sampler that selects, such as greedy or dist"
    )]
    NothingSelected,
    /// A grammar that cannot be read, or that this build cannot use.
    #[error("the grammar: {reason}")]
    Grammar {
        /// What was said of it.
        reason: String,
    },
    /// A sampling setting out of range.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// A choice that the span refuses.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// A form that this vocabulary cannot spell.
    #[error(transparent)]
    Form(#[from] FormError),
}

impl RuntimeError {
    /// The same, said of a named argument.
    pub(super) fn of(self, what: &'static str) -> Self {
        Self::Argument { what, error: Box::new(self) }
    }

    /// The same without the number of a prompt, where there is just one.
    #[must_use]
    pub fn of_the_only_prompt(self) -> Self {
        match self {
            Self::Prompt { error, .. } => *error,
            other => other,
        }
    }
}
