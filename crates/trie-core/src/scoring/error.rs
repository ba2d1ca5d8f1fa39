//! Why there is no choice.

use crate::machine::constraint::{NotListed, Problem};
use crate::machine::span::RulesError;
use crate::rows::logits::NoLogits;
use crate::set::damage::Damage;
use crate::set::ids::TokenId;
use crate::work::ErrorKind;

/// A choice that cannot be made. `E` is the host's own error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError<E> {
    /// Error of the host, including cancellation.
    #[error(transparent)]
    Host(E),
    /// The constraint has no list of its values, or one that is too long.
    #[error(transparent)]
    NotListed(NotListed),
    /// Several sequences stand for one value, and a list of the values would leave out most of them.
    #[error(
        "in a part of this constraint several token sequences stand for one value: such a set can only be scored alone"
    )]
    ManySequences,
    /// The file of a set was damaged after it was written.
    #[error(transparent)]
    Damaged(Damage),
    /// A set that changed while it was walked.
    #[error("the set is damaged: nothing may follow {depth} tokens of a value, and none ends there")]
    DeadEnd {
        /// Tokens of the value up to there.
        depth: usize,
    },
    /// The vocabulary does not have all tokens of the set.
    #[error("the set has the token id {max_token}, which is outside the vocabulary of {n_vocab} tokens")]
    SetOutsideVocabulary {
        /// Largest valid token id.
        max_token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// The vocabulary does not have all end tokens.
    #[error("end tokens: token id {token} at position {position} is outside the vocabulary of {n_vocab} tokens")]
    EndTokenOutsideVocabulary {
        /// Its position in their list.
        position: usize,
        /// The invalid token id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// Rules that the machine does not take, such as a vocabulary of no size.
    #[error(transparent)]
    Rules(RulesError),
    /// A limit that leaves nothing to be done.
    #[error("{what} is 0: it must be at least 1")]
    Zero {
        /// Name of the prompt.
        what: &'static str,
    },
    /// One of the prompts.
    #[error("prompt {number}: {problem}")]
    Prompt {
        /// Its number, from 0.
        number: usize,
        /// Defect of the prompt.
        problem: PromptProblem,
    },
    /// A row of logits in which no token can be chosen.
    #[error(transparent)]
    NoLogits(NoLogits),
    /// An error inside a constraint.
    #[error(transparent)]
    Problem(Problem),
    /// The host did not give the rows that it was asked for.
    #[error(transparent)]
    Rows(RowProblem),
}

impl<E> ChooseError<E> {
    /// Returns what kind of error it is; an error of the host counts as a failure of the model.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Host(_) | Self::NoLogits(_) => ErrorKind::Model,
            Self::NotListed(error) => error.kind(),
            Self::Rules(error) => error.kind(),
            Self::Damaged(_) | Self::DeadEnd { .. } | Self::Problem(_) => ErrorKind::Damaged,
            Self::ManySequences => ErrorKind::Set,
            Self::SetOutsideVocabulary { .. } | Self::EndTokenOutsideVocabulary { .. } => ErrorKind::Vocabulary,
            Self::Zero { .. } => ErrorKind::Argument,
            Self::Prompt { problem, .. } => problem.kind(),
            Self::Rows(problem) => problem.kind(),
        }
    }
}

/// A set that changed while it was walked: at a position no value ends and no token continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadEnd {
    /// Tokens of the value up to there.
    pub depth: usize,
}

/// Reasons why scoring cannot continue on any host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoringError {
    /// A set that changed while it was walked.
    DeadEnd(DeadEnd),
    /// A row of logits in which no token can be chosen.
    NoLogits(NoLogits),
    /// An error inside a constraint.
    Problem(Problem),
}

impl From<DeadEnd> for ScoringError {
    fn from(dead_end: DeadEnd) -> Self {
        Self::DeadEnd(dead_end)
    }
}

impl From<NoLogits> for ScoringError {
    fn from(row: NoLogits) -> Self {
        Self::NoLogits(row)
    }
}

impl<E> From<ScoringError> for ChooseError<E> {
    fn from(error: ScoringError) -> Self {
        match error {
            ScoringError::DeadEnd(DeadEnd { depth }) => Self::DeadEnd { depth },
            ScoringError::NoLogits(row) => Self::NoLogits(row),
            ScoringError::Problem(problem) => Self::Problem(problem),
        }
    }
}

/// A prompt after which no value can be scored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptProblem {
    /// There is no row before the first token.
    #[error("the prompt is empty")]
    Empty,
    /// An id that the vocabulary does not have.
    #[error("token id {token} at position {position} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// Position in the prompt.
        position: usize,
        /// The invalid token id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// More tokens than the host has room for.
    #[error("{tokens} tokens, and there is room for {room}")]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens for which there is room.
        room: usize,
    },
    /// The longest value does not fit after the prompt.
    #[error(
        "no room for a value of {tokens} tokens{} after the {prompt} of the prompt: there is room for {room}",
        describe_value(.value.as_ref())
    )]
    ValueTooLong {
        /// Its name, where it has one.
        value: Option<String>,
        /// Number of tokens in the prompt.
        tokens: usize,
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens for which there is room.
        room: usize,
    },
    /// Branches that are not such.
    #[error(
        "the branches of the prompt are not neighbouring ranges with tokens in each, before them and after them, of \
         its {tokens} tokens"
    )]
    Branches {
        /// Tokens of the prompt.
        tokens: usize,
    },
    /// Branches before a set that is searched.
    #[error("the prompt has branches, and the set after it is too large to score each of its values")]
    SearchedBranches,
}

impl PromptProblem {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Empty | Self::Branches { .. } | Self::SearchedBranches => ErrorKind::Prompt,
            Self::OutsideVocabulary { .. } => ErrorKind::Vocabulary,
            Self::TooLong { .. } | Self::ValueTooLong { .. } => ErrorKind::Context,
        }
    }
}

/// Rows other than those that were asked for: an error of the host's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowProblem {
    /// A row must have one number for each token of the vocabulary.
    #[error("a row of {found} logits: the vocabulary has {n_vocab} tokens")]
    Length {
        /// Number of entries given.
        found: usize,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// A row that was not wanted, or was given before.
    #[error("a row that was not wanted, or given before: that of node {node:?} of the tree")]
    Unwanted {
        /// The node, or `None` for the row after the prompt.
        node: Option<usize>,
    },
    /// A node precedes its parent.
    #[error("the row of node {node} of the tree came before that of its parent")]
    BeforeParent {
        /// Number of the node.
        node: usize,
    },
    /// Branches of a prompt, which this host cannot decode.
    #[error("the prompt has branches, and this host decodes one sequence of tokens")]
    Branches,
    /// Rows that are missing although the host returned.
    #[error("{missing} rows were wanted and not given")]
    Missing {
        /// Number of missing rows.
        missing: usize,
    },
}

crate::error_kind!(RowProblem, Row);

fn describe_value(value: Option<&String>) -> String {
    value.map_or_else(String::new, |name| format!(" ({name:?})"))
}
