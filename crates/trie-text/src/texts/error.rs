//! Reasons why texts cannot form a set.

use crate::vocab::VocabError;
use trie_core::BuildError;
use trie_core::ErrorKind;
use trie_formats::ExternalError;

/// Reasons why texts cannot form a trie.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The vocabulary cannot tokenize, or a text is too long.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// No value, or more than 32 bits count.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A temporary file, or the one to write.
    #[error(transparent)]
    Run(#[from] ExternalError),
    /// A value without any bytes.
    #[error("value {row} is empty: leave it out, or give a suffix")]
    Empty {
        /// Index of the value.
        row: usize,
    },
    /// The tokenizer changes the text, or the vocabulary lacks some of its bytes.
    #[error("{what}: the tokens of {} spell {}", quote(.text), quote(.spelled))]
    NoRoundTrip {
        /// Name of the prefix, or the row.
        what: String,
        /// The text as a whole.
        text: String,
        /// Text that its tokens spell.
        spelled: String,
    },
    /// No tokens spell the value.
    #[error("value {row}: no tokens of this vocabulary spell {}", quote(.value))]
    Unspellable {
        /// Index of the value.
        row: usize,
        /// Text of the value.
        value: String,
    },
    /// A token begins in the prefix and ends in the value.
    #[error(
        "value {row}: {} has a token that crosses the boundary to the prefix {}; {count} of {values} values do: \
         with token healing the set begins before that token",
        quote(.value),
        quote(.prefix)
    )]
    CrossesBoundary {
        /// The first such value's index.
        row: usize,
        /// Text of that value.
        value: String,
        /// Prefix that was given.
        prefix: String,
        /// Number of values like it.
        count: usize,
        /// Number of all values.
        values: usize,
    },
}

impl TextError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Vocab(error) => error.kind(),
            Self::Build(error) => error.kind(),
            Self::Run(error) => error.kind(),
            Self::Empty { .. } => ErrorKind::Set,
            Self::CrossesBoundary { .. } | Self::NoRoundTrip { .. } | Self::Unspellable { .. } => ErrorKind::Vocabulary,
        }
    }
}

/// A text in quotes for a message, not all of it if it is long.
pub fn quote(text: &str) -> String {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}
