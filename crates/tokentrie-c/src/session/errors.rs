//! Conversion of the runtime's errors to statuses.

use crate::error::{Error, by_kind};
use crate::status::*;
use ::llama_sampler::{Finish, RuntimeError};
use tokentrie::call::{GenerateError, TimeoutError};
use tokentrie::chat::ChatError;
use tokentrie::decide::DecideError;
use trie_text::ValuesError;

/// Nothing begins any more.
pub(super) fn ending() -> Error {
    Error::busy("the process is ending")
}

/// One result was asked for, and none came.
pub(super) fn no_result() -> Error {
    Error::new(TOKENTRIE_ERROR_MODEL, "the call gave no result")
}

pub(super) fn finish(finish: Finish) -> i32 {
    match finish {
        Finish::Span => TOKENTRIE_FINISH_SPAN,
        Finish::EndOfGeneration => TOKENTRIE_FINISH_END_OF_GENERATION,
        Finish::StopText => TOKENTRIE_FINISH_STOP_TEXT,
        Finish::ToolCalls => TOKENTRIE_FINISH_TOOL_CALLS,
        Finish::MaxTokens => TOKENTRIE_FINISH_MAX_TOKENS,
        Finish::ContextFull => TOKENTRIE_FINISH_CONTEXT_FULL,
        Finish::Cancelled => TOKENTRIE_FINISH_CANCELLED,
        Finish::TimedOut => TOKENTRIE_FINISH_TIMED_OUT,
    }
}

by_kind! { RuntimeError, ValuesError, TimeoutError, ChatError, DecideError }

impl From<GenerateError> for Error {
    #[cold]
    fn from(error: GenerateError) -> Self {
        match &error {
            GenerateError::Constraint(problem) => Self::of_spec(problem, &error),
            _ => Self::of_kind(error.kind(), &error),
        }
    }
}
