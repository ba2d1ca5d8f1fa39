//! Reasons why values cannot form a set.

use crate::healing::HealingError;
use crate::texts::TextError;
use crate::vocab::VocabError;
use trie_core::ErrorKind;

/// Reasons why there can be no choice among values.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// The texts make no set.
    #[error(transparent)]
    Text(#[from] TextError),
    /// An empty value among values that are identified by their index.
    #[error("value {row} is empty: leave it out, or give a suffix")]
    Empty {
        /// Index of the value.
        row: usize,
    },
    /// A repeated value among values that are identified by their index.
    #[error("value {row}, {value:?}, repeats value {first}")]
    Repeated {
        /// Index of the value.
        row: usize,
        /// Text of the value.
        value: String,
        /// The index of the first.
        first: usize,
    },
    /// The prompt does not end with the text before the values.
    #[error("the prefix is {}, but the prompt ends with {}", crate::quote(.prefix), crate::quote(.end))]
    NotBefore {
        /// Text expected before the values.
        prefix: String,
        /// The end of the prompt.
        end: String,
    },
    /// The values spell all of the prompt again.
    #[error(transparent)]
    Healing(#[from] HealingError),
    /// Different texts that get the same tokens from a tokenizer that normalises.
    #[error("two values have the same tokens")]
    SameTokens,
}

impl ValuesError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Text(error) => error.kind(),
            Self::Healing(error) => error.kind(),
            Self::NotBefore { .. } => ErrorKind::Argument,
            Self::Empty { .. } | Self::Repeated { .. } => ErrorKind::Set,
            Self::SameTokens => ErrorKind::Vocabulary,
        }
    }
}

impl From<VocabError> for ValuesError {
    fn from(error: VocabError) -> Self {
        Self::Text(error.into())
    }
}
