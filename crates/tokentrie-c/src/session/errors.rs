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
