//! The errors of the runtime on llama.cpp as Python's exceptions.

use crate::errors::Error;
use crate::errors::maps::{caused, raised};
use crate::rule::problem::of_problem;
use crate::spec::of_spec;
use llama_sampler::RuntimeError;
use pyo3::PyErr;
use tokentrie::call::GenerateError;
use tokentrie::chat::ChatError;
use tokentrie::decide::DecideError;
use trie_core::ErrorKind;
use trie_text::HealingError;

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Sampler(error) => error.into(),
            RuntimeError::Form(error) => error.into(),
            RuntimeError::Problem(problem) => of_problem(&problem, String::new()),
            // A prefix is the model's; sets have files, too.
            RuntimeError::Prefix { .. } => Self::of_kind(ErrorKind::Model, &error),
            other => caused(other.kind(), &other, raised_in(&other)),
        }
    }
}

impl From<GenerateError> for Error {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Constraint(problem) => of_spec(problem),
            GenerateError::Prompt(error) => error.into(),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

impl From<ChatError> for Error {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::Format(error) => error.into(),
            ChatError::Constraint(error) => error.into(),
            ChatError::Vocab(error) => error.into(),
            ChatError::Runtime(error) => error.into(),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

impl From<DecideError> for Error {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Format(error) => error.into(),
            DecideError::Vocab(error) => error.into(),
            DecideError::Runtime(error) => error.into(),
            DecideError::Options { question, error } => Self::from(error).at(&format!("the question {question:?}: ")),
            DecideError::Asked { question, state, error } => {
                Self::from(*error).at(&format!("the question {question:?} about state {state}: "))
            }
            // Whatever ended it, it is said of the request.
            DecideError::Over(_) => Self::of_kind(ErrorKind::Limit, &error),
            other => Self::of_kind(other.kind(), &other),
        }
    }
}

/// Returns the exception that a tokenizer in Python raised.
fn raised_in(error: &RuntimeError) -> Option<&PyErr> {
    match error {
        RuntimeError::Prompt { error, .. } | RuntimeError::Argument { error, .. } => raised_in(error),
        RuntimeError::Vocab(error) | RuntimeError::Healing(HealingError::Vocab(error)) => raised(error),
        _ => None,
    }
}
