//! The errors of the runtime on llama.cpp as Python's exceptions.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::errors::maps::{caused, class_of_healing, class_of_vocab, raised};
use crate::errors::{Class, Error};
use crate::spec::of_spec;
use llama_sampler::RuntimeError;
use pyo3::PyErr;
use tokentrie::chat::ChatError;
use tokentrie::decide::DecideError;
use tokentrie::run::GenerateError;
use trie_text::HealingError;

impl From<RuntimeError> for Error {
    #[expect(clippy::wildcard_enum_match_arm, reason = "class_of names them all")]
    fn from(error: RuntimeError) -> Self {
        let class = class_of(&error);
        if let Some(cause) = raised_in(&error) {
            return caused(class, &error, cause);
        }
        match error {
            RuntimeError::Draw(error) => error.into(),
            RuntimeError::Sampler(error) => error.into(),
            RuntimeError::Form(error) => error.into(),
            RuntimeError::NotListed(error) => error.into(),
            RuntimeError::Rules(error) => error.into(),
            RuntimeError::Problem(problem) => crate::rule::problem::of_problem(&problem, String::new()),
            RuntimeError::DamagedSet | RuntimeError::DamagedFile(_) => {
                class.error(format!("{error} (Trie.open with verify=True)"))
            }
            error if class == Class::Context => class.error(format!("{error} (a Model with a larger n_ctx has more)")),
            error => class.error(error.to_string()),
        }
    }
}

impl From<GenerateError> for Error {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Constraint(problem) => of_spec(problem),
            GenerateError::Prompt(error) => error.into(),
            GenerateError::Rules(error) => error.into(),
            GenerateError::NotForForms
            | GenerateError::StopOfForm
            | GenerateError::StopOfValue
            | GenerateError::LogprobsOfExact
            | GenerateError::ReceiptOfForm
            | GenerateError::NothingToEnd
            | GenerateError::NothingFree
            | GenerateError::FreeNeedsSkipAhead
            | GenerateError::BiasOfWholes
            | GenerateError::ForFormsAlone(_) => Class::Option.error(error.to_string()),
        }
    }
}

impl From<ChatError> for Error {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::Template(error) => error.into(),
            ChatError::Format(error) => error.into(),
            ChatError::Constraint(error) => error.into(),
            ChatError::Vocab(error) => error.into(),
            ChatError::Rules(error) => error.into(),
            ChatError::Runtime(error) => error.into(),
            ChatError::ContentBesideTools
            | ChatError::ContentBegun
            | ChatError::ContentWithoutEnd
            | ChatError::ContentHealed
            | ChatError::ContentThinks
            | ChatError::StopOfContent
            | ChatError::Untold => Class::Option.error(error.to_string()),
        }
    }
}

impl From<DecideError> for Error {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Template(error) => error.into(),
            DecideError::Format(error) => error.into(),
            DecideError::Vocab(error) => error.into(),
            DecideError::Runtime(error) => error.into(),
            DecideError::Options { question, error } => Self::from(error).at(&format!("the question {question:?}: ")),
            DecideError::Asked { question, state, error } => {
                Self::from(*error).at(&format!("the question {question:?} about state {state}: "))
            }
            DecideError::Message { .. }
            | DecideError::NoEnd
            | DecideError::Prior { .. }
            | DecideError::Calibration(_)
            | DecideError::Over(_) => Class::Option.error(error.to_string()),
        }
    }
}

/// What a tokenizer in Python raised.
#[expect(clippy::wildcard_enum_match_arm, reason = "it looks for one cause and maps nothing")]
fn raised_in(error: &RuntimeError) -> Option<&PyErr> {
    match error {
        RuntimeError::Prompt { error, .. } | RuntimeError::Argument { error, .. } => raised_in(error),
        RuntimeError::Vocab(error) | RuntimeError::Healing(HealingError::Vocab(error)) => raised(error),
        _ => None,
    }
}

fn class_of(error: &RuntimeError) -> Class {
    match error {
        RuntimeError::Prompt { error, .. } | RuntimeError::Argument { error, .. } => class_of(error),
        RuntimeError::Vocab(error) => class_of_vocab(error),
        RuntimeError::Healing(error) => class_of_healing(error),
        RuntimeError::Stopped { .. } => Class::Cancelled,
        RuntimeError::QueueFull { .. } => Class::QueueFull,
        RuntimeError::Template(_) => Class::Template,
        RuntimeError::OutOfRange { .. }
        | RuntimeError::Cache { .. }
        | RuntimeError::EmptyPrompt
        | RuntimeError::NothingSelected => Class::Option,
        RuntimeError::VocabularyMismatch { .. } | RuntimeError::NoVocabulary { .. } => Class::Vocabulary,
        RuntimeError::DamagedSet | RuntimeError::DamagedFile(_) => Class::Trie,
        RuntimeError::ContextFull { .. } | RuntimeError::ValueTooLong { .. } | RuntimeError::FieldTooLong { .. } => {
            Class::Context
        }
        RuntimeError::Closed
        | RuntimeError::Forked
        | RuntimeError::Failed { .. }
        | RuntimeError::Backend { .. }
        | RuntimeError::File { .. }
        | RuntimeError::Path { .. }
        | RuntimeError::NotGguf { .. }
        | RuntimeError::Metadata { .. }
        | RuntimeError::VocabularyOnly { .. }
        | RuntimeError::NotADecoder { .. }
        | RuntimeError::Load { .. }
        | RuntimeError::Context { .. }
        | RuntimeError::Prefix { .. }
        | RuntimeError::Restore { .. }
        | RuntimeError::FixedPrefix
        | RuntimeError::NoTemplate { .. }
        | RuntimeError::NoLogits
        | RuntimeError::NoVectors { .. }
        | RuntimeError::Unscored { .. }
        | RuntimeError::SaysNothing(_)
        | RuntimeError::Decode { .. } => Class::Model,
        // These have maps of their own.
        RuntimeError::Problem(_)
        | RuntimeError::Draw(_)
        | RuntimeError::Sampler(_)
        | RuntimeError::NotListed(_)
        | RuntimeError::Rules(_)
        | RuntimeError::Form(_) => Class::Base,
    }
}
