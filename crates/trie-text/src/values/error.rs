//! Why values make no set.

use crate::healing::HealingError;
use crate::texts::TextError;
use crate::vocab::VocabError;
use trie_core::ErrorKind;

/// Why values cannot be chosen from.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// The texts make no set.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Values that are told apart by their index, and one is empty.
    #[error("value {row} is empty: leave it out, or give a suffix")]
    Empty {
        /// Index of the value.
        row: usize,
    },
    /// Values that are told apart by their index, and one is there twice.
    #[error("value {row}, {value:?}, repeats value {first}")]
    Repeated {
        /// Index of the value.
        row: usize,
        /// Text of the value.
        value: String,
        /// The index of the first.
        first: usize,
    },
    /// The prompt does not end with what stands before the values.
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
    /// Different texts with the same tokens: a tokenizer that normalises.
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
