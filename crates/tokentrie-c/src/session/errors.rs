//! What the runtime says, as statuses.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::error::{Error, spec_status};
use crate::status::*;
use ::llama_sampler::{Finish, RuntimeError};
use tokentrie::chat::ChatError;
use tokentrie::decide::DecideError;
use tokentrie::run::{GenerateError, TimeoutError};
use trie_text::ValuesError;

/// Nothing begins any more.
pub(super) fn ending() -> Error {
    Error::busy("the process is ending")
}

pub(super) fn finish(finish: Finish) -> i32 {
    match finish {
        Finish::Span | Finish::Form => TOKENTRIE_FINISH_SPAN,
        Finish::EndOfGeneration => TOKENTRIE_FINISH_END_OF_GENERATION,
        Finish::MaxTokens => TOKENTRIE_FINISH_MAX_TOKENS,
        Finish::ContextFull => TOKENTRIE_FINISH_CONTEXT_FULL,
        Finish::Stopped => TOKENTRIE_FINISH_CANCELLED,
        Finish::StopText => TOKENTRIE_FINISH_STOP_TEXT,
    }
}

fn of_runtime(error: &RuntimeError) -> tokentrie_status {
    match error {
        RuntimeError::Vocab(_) | RuntimeError::VocabularyMismatch { .. } => TOKENTRIE_ERROR_VOCAB,
        RuntimeError::Stopped { .. } => TOKENTRIE_ERROR_CANCELLED,
        RuntimeError::OutOfRange { .. } | RuntimeError::Cache { .. } | RuntimeError::Draw(_) => {
            TOKENTRIE_ERROR_ARGUMENT
        }
        RuntimeError::DamagedSet | RuntimeError::DamagedFile(_) | RuntimeError::Problem(_) => TOKENTRIE_ERROR_DAMAGED,
        RuntimeError::NotListed(_) | RuntimeError::Healing(_) => TOKENTRIE_ERROR_SET,
        RuntimeError::Prefix { .. } => TOKENTRIE_ERROR_FILE,
        RuntimeError::Form(_) => TOKENTRIE_ERROR_SPEC,
        RuntimeError::Prompt { error, .. } | RuntimeError::Argument { error, .. } => of_runtime(error),
        RuntimeError::QueueFull { .. } | RuntimeError::Forked => TOKENTRIE_ERROR_BUSY,
        RuntimeError::Closed
        | RuntimeError::Failed { .. }
        | RuntimeError::Backend { .. }
        | RuntimeError::File { .. }
        | RuntimeError::Path { .. }
        | RuntimeError::NotGguf { .. }
        | RuntimeError::Metadata { .. }
        | RuntimeError::VocabularyOnly { .. }
        | RuntimeError::NoVocabulary { .. }
        | RuntimeError::NotADecoder { .. }
        | RuntimeError::Load { .. }
        | RuntimeError::Context { .. }
        | RuntimeError::EmptyPrompt
        | RuntimeError::ContextFull { .. }
        | RuntimeError::FieldTooLong { .. }
        | RuntimeError::Restore { .. }
        | RuntimeError::FixedPrefix
        | RuntimeError::ValueTooLong { .. }
        | RuntimeError::NoLogits
        | RuntimeError::NoVectors { .. }
        | RuntimeError::Decode { .. }
        | RuntimeError::NoTemplate { .. }
        | RuntimeError::Template(_)
        | RuntimeError::NothingSelected
        | RuntimeError::Sampler(_)
        | RuntimeError::Rules(_)
        | RuntimeError::SaysNothing(_)
        | RuntimeError::Unscored { .. } => TOKENTRIE_ERROR_MODEL,
    }
}

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        Self::new(of_runtime(&error), error.to_string())
    }
}

impl From<ValuesError> for Error {
    fn from(error: ValuesError) -> Self {
        Self::new(TOKENTRIE_ERROR_SET, error.to_string())
    }
}

impl From<GenerateError> for Error {
    fn from(error: GenerateError) -> Self {
        let status = match &error {
            GenerateError::Constraint(problem) => spec_status(problem),
            GenerateError::Prompt(_) => TOKENTRIE_ERROR_VOCAB,
            GenerateError::Rules(rules) => Self::from(rules.clone()).status,
            GenerateError::NotForForms
            | GenerateError::StopOfForm
            | GenerateError::StopOfValue
            | GenerateError::LogprobsOfExact
            | GenerateError::BiasOfWholes
            | GenerateError::ReceiptOfForm
            | GenerateError::NothingToEnd
            | GenerateError::NothingFree
            | GenerateError::FreeNeedsSkipAhead
            | GenerateError::ForFormsAlone(_) => TOKENTRIE_ERROR_ARGUMENT,
        };
        Self::new(status, error.to_string())
    }
}

impl From<TimeoutError> for Error {
    fn from(error: TimeoutError) -> Self {
        Self::argument(error.to_string())
    }
}

impl From<ChatError> for Error {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::Vocab(error) => error.into(),
            ChatError::Rules(error) => error.into(),
            ChatError::Runtime(error) => error.into(),
            error @ (ChatError::ContentBesideTools
            | ChatError::ContentBegun
            | ChatError::ContentWithoutEnd
            | ChatError::ContentHealed
            | ChatError::ContentThinks
            | ChatError::StopOfContent
            | ChatError::Untold) => Self::new(TOKENTRIE_ERROR_SPEC, error.to_string()),
            error @ (ChatError::Template(_) | ChatError::Format(_) | ChatError::Constraint(_)) => {
                Self::new(TOKENTRIE_ERROR_ARGUMENT, error.to_string())
            }
        }
    }
}

impl From<DecideError> for Error {
    fn from(error: DecideError) -> Self {
        let status = match &error {
            DecideError::Vocab(_) => TOKENTRIE_ERROR_VOCAB,
            DecideError::Options { .. } => TOKENTRIE_ERROR_SET,
            DecideError::Over(_) => TOKENTRIE_ERROR_LIMIT,
            DecideError::Message { .. } | DecideError::Prior { .. } | DecideError::Calibration(_) => {
                TOKENTRIE_ERROR_SPEC
            }
            DecideError::Asked { error, .. } => of_runtime(error),
            DecideError::Runtime(error) => of_runtime(error),
            DecideError::Template(_) | DecideError::Format(_) | DecideError::NoEnd => TOKENTRIE_ERROR_ARGUMENT,
        };
        Self::new(status, error.to_string())
    }
}
