//! Why a batch refused.

use super::rows::RowsError;
use crate::machine::constraint::AnyState;
use crate::machine::span::{RulesError, SpanError, SpanRules, SpanState};
use crate::rows::logits::NoLogits;
use crate::rows::settings::DrawError;
use crate::set::ids::TokenId;
use crate::work::ErrorKind;

/// A request that the batch refuses. No row has changed and nothing was written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BatchError {
    /// Not one entry for each row.
    #[error("{got} {what} for a batch of {rows} rows: there must be one a row")]
    Count {
        /// Name of the counted argument.
        what: &'static str,
        /// Number that was given.
        got: usize,
        /// Rows of the batch.
        rows: usize,
    },
    /// A row that the batch does not have.
    #[error("{what} {row} is out of range: the batch has {rows} rows, numbered from 0")]
    NoSuchRow {
        /// Name of the argument that named the row.
        what: &'static str,
        /// The unknown row number.
        row: usize,
        /// Rows of the batch.
        rows: usize,
    },
    /// Rows that are too narrow.
    #[error("{what} are {got} entries wide: a vocabulary of {n_vocab} tokens needs at least {need}")]
    Width {
        /// Name of the buffer that is too narrow.
        what: &'static str,
        /// Entries of a row.
        got: usize,
        /// Minimum width that is required.
        need: usize,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// Rows that do not fit into the given memory.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// A token or rollback that one of the rows refuses, or a row in which no token is allowed.
    #[error("row {row}: {source}")]
    Refused {
        /// Number of the row.
        row: usize,
        /// Cause in the span: a disallowed token, a rollback too far, or an error of the constraint.
        source: SpanError,
    },
    /// Rules over vocabularies of different sizes.
    #[error("row {row}: its rules are for a vocabulary of {got} tokens, those of the batch for {n_vocab}")]
    MixedVocabularies {
        /// The first row that differs.
        row: usize,
        /// Size of its vocabulary.
        got: usize,
        /// Size of the batch's.
        n_vocab: usize,
    },
    /// A score that is neither a number nor −inf.
    #[error("row {row}: its score is {score}: it must be a number or -inf")]
    Score {
        /// Number of the row.
        row: usize,
        /// The score that is invalid.
        score: f64,
    },
    /// Groups of rows that do not cover the rows exactly.
    #[error("group {group} ends at row {end}, after {before}: ends must ascend up to the {rows} rows of the batch")]
    Groups {
        /// Number of the group.
        group: usize,
        /// End of the group.
        end: usize,
        /// End of the group before it.
        before: usize,
        /// Rows of the batch.
        rows: usize,
    },
    /// Not one logit for each allowed token.
    #[error("{got} logits are listed for {tokens} legal tokens")]
    Listed {
        /// Number of logits given.
        got: usize,
        /// Legal tokens of all rows.
        tokens: usize,
    },
    /// A row in which every token is allowed, so that its continuations cannot be listed.
    #[error("row {row}: anything may come there: only the values of a set can be searched")]
    Endless {
        /// Number of the row.
        row: usize,
    },
    /// A row of logits in which no token can be chosen, whatever is allowed.
    #[error("row {row}: {source}")]
    NoLogits {
        /// Number of the row.
        row: usize,
        /// Cause, and the tokens before it.
        source: NoLogits,
    },
    /// A beam of width 0.
    #[error("width is 0: a beam must keep at least 1 hypothesis")]
    NoWidth,
    /// A penalty that is not a number.
    #[error("the length penalty is {penalty}: it must be a finite number")]
    LengthPenalty {
        /// The penalty that is invalid.
        penalty: f64,
    },
    /// A row that has written all items of its set already.
    #[error("row {row}: all items that it may write are written: none of the {leaves} is left")]
    NothingLeft {
        /// Number of the row.
        row: usize,
        /// Items of its set.
        leaves: usize,
    },
    /// A row whose values are not numbered.
    #[error("row {row}: {constraint} is not a set of items: only those of a trie are known again")]
    NoItems {
        /// Number of the row.
        row: usize,
        /// Kind of constraint in the row.
        constraint: String,
    },
    /// A setting of the draw out of range.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// A vocabulary size out of range.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

impl BatchError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { source, .. } => source.kind(),
            Self::Rules(error) => error.kind(),
            Self::Draw(error) => error.kind(),
            Self::Width { .. } | Self::Rows(_) | Self::Listed { .. } | Self::NoLogits { .. } => ErrorKind::Row,
            Self::MixedVocabularies { .. } => ErrorKind::Vocabulary,
            Self::Endless { .. } | Self::NothingLeft { .. } => ErrorKind::Set,
            Self::Count { .. }
            | Self::NoSuchRow { .. }
            | Self::Score { .. }
            | Self::Groups { .. }
            | Self::NoWidth
            | Self::LengthPenalty { .. }
            | Self::NoItems { .. } => ErrorKind::Argument,
        }
    }
}

impl BatchError {
    /// The error for a row in which no token is allowed.
    pub(super) fn dead_end_error(row: usize, rules: &SpanRules, state: &SpanState<AnyState>) -> Self {
        Self::Refused { row, source: rules.dead_end_error(state) }
    }

    /// The row it is about, if it is about one.
    pub fn row(&self) -> Option<usize> {
        match self {
            Self::NoSuchRow { row, .. }
            | Self::Refused { row, .. }
            | Self::MixedVocabularies { row, .. }
            | Self::Endless { row }
            | Self::NoLogits { row, .. }
            | Self::NothingLeft { row, .. }
            | Self::NoItems { row, .. }
            | Self::Score { row, .. } => Some(*row),
            _ => None,
        }
    }

    /// The token it is about, if it is about one.
    pub fn token(&self) -> Option<TokenId> {
        match self {
            Self::Refused { source: SpanError::NotAllowed(refused), .. } => Some(refused.token),
            Self::Refused { source: SpanError::OutsideVocabulary { token, .. }, .. } => Some(*token),
            _ => None,
        }
    }
}
