//! Errors of a span.

use crate::machine::constraint::Problem;
use crate::set::ids::TokenId;
use crate::set::trie::NotAllowed;
use crate::work::ErrorKind;

/// A request that the span refuses; its state is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// The token is not among the allowed ones.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The vocabulary has no such token.
    #[error("token id {token} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// Id of the rejected token.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// More tokens than were accepted since the span was armed.
    #[error("cannot roll back {asked} tokens: {accepted} were accepted since the span was armed")]
    RollbackTooFar {
        /// Tokens to take back.
        asked: usize,
        /// Number of accepted tokens.
        accepted: usize,
    },
    /// No constraint of that path.
    #[error(transparent)]
    UnknownPath(#[from] UnknownPath),
    /// No token is allowed, because the file was damaged after it was written, and was never verified.
    #[error("the set is damaged: after {depth} tokens of {path:?} nothing follows and no value ends; verify its file")]
    Damaged {
        /// The path of the constraint.
        path: String,
        /// Tokens walked in it.
        depth: usize,
    },
    /// No token is allowed, because of an error in the constraint.
    #[error("after {depth} tokens of {path:?}: {problem}")]
    Problem {
        /// The path of the constraint.
        path: String,
        /// Tokens walked in it.
        depth: usize,
        /// Error reported by the constraint.
        problem: Problem,
    },
}

impl SpanError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAllowed(error) => error.kind(),
            Self::UnknownPath(error) => error.kind(),
            Self::OutsideVocabulary { .. } => ErrorKind::Vocabulary,
            Self::RollbackTooFar { .. } => ErrorKind::State,
            Self::Damaged { .. } | Self::Problem { .. } => ErrorKind::Damaged,
        }
    }
}

/// A path that no constraint has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no trie has the path {path:?}; there are {known:?}{}", and_more(.known.len(), *.count))]
pub struct UnknownPath {
    /// The path that was asked for.
    pub path: String,
    /// The first of the paths there are.
    pub known: Vec<String>,
    /// Number of allowed tokens.
    pub count: usize,
}

crate::error_kind!(UnknownPath, State);

impl UnknownPath {
    /// Paths that an error holds: a payload may have a hundred thousand.
    const SHOWN: usize = 32;

    #[doc(hidden)]
    pub fn new<'a>(path: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let shown = known.clone().take(Self::SHOWN).map(str::to_owned).collect();
        Self { path: path.to_owned(), known: shown, count: known.count() }
    }
}

fn and_more(shown: usize, count: usize) -> String {
    if count > shown { format!(" and {} more", count - shown) } else { String::new() }
}
