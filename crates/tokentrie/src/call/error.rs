//! Why a generation cannot begin.

use crate::constraint::SpecProblem;
use trie_core::{ErrorKind, RulesError};
use trie_text::VocabError;

/// Why a generation cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// Feature that the constraint does not support after this prompt.
    #[error(transparent)]
    Constraint(#[from] SpecProblem),
    /// The prompt cannot be tokenised.
    #[error(transparent)]
    Prompt(#[from] VocabError),
    /// A constraint that does not fit the vocabulary.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Options that do not apply to forms: the text after a slot ends it.
    #[error("end_tokens and after=\"free\" are not for forms: what follows a slot ends it")]
    NotForForms,
    /// A form is filled to its end.
    #[error("stop is not for forms, which are filled to their end: give a Text of the form its own stop")]
    StopOfForm,
    /// A value ends where its constraint says so.
    #[error(
        "stop is not supported inside a constraint: it would cut a value in the middle, and the constraint says where \
         its value ends. Leave stop out; put the text into the constraint; or give after=\"free\", where stop ends the \
         text behind the value"
    )]
    StopOfValue,
    /// End tokens for free text, which has no end.
    #[error("end_tokens close a value, and free text has none: give a constraint, or leave them out")]
    NothingToEnd,
    /// No text comes after the value.
    #[error("free_sampling is for the text after a value, and there is none: give after=\"free\"")]
    NothingFree,
    /// Different sampling for free text, without `skip_ahead`: one chain of llama.cpp samples all tokens.
    #[error("free_sampling needs skip_ahead: without it one chain chooses all tokens")]
    FreeNeedsSkipAhead,
    /// A value that is taken as a whole has no choice of tokens.
    #[error("logprobs are of tokens that are chosen one by one, and \"exact\" takes whole values: use probabilities")]
    LogprobsOfExact,
    /// Biases on tokens, where whole values of a form are scored.
    #[error("logit_bias is for tokens that are chosen one by one: leave out mode \"exact\" and probabilities")]
    BiasOfWholes,
    /// A form whose values are weighed as wholes, or whose tokens are not taken back.
    #[error("the receipt of a form is of its tokens: leave out mode \"exact\", probabilities and skip_ahead")]
    ReceiptOfForm,
    /// A corrected draw of what has no distribution as a whole, or with settings that are no model of their own.
    #[error("correct is not supported {0}")]
    NotCorrected(&'static str),
    /// Option for forms, of a constraint without slots.
    #[error("{0} for forms: use `choose` for a set")]
    ForFormsAlone(&'static str),
}

impl GenerateError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Constraint(problem) => problem.kind(),
            Self::Prompt(error) => error.kind(),
            Self::Rules(error) => error.kind(),
            Self::NotForForms
            | Self::StopOfForm
            | Self::StopOfValue
            | Self::NothingToEnd
            | Self::NothingFree
            | Self::FreeNeedsSkipAhead
            | Self::LogprobsOfExact
            | Self::BiasOfWholes
            | Self::ReceiptOfForm
            | Self::NotCorrected(_)
            | Self::ForFormsAlone(_) => ErrorKind::Argument,
        }
    }
}
