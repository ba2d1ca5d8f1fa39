//! Errors of a vocabulary, of its tokenizer, or of tokens given to it.

use crate::tokenizer::TokenizerError;
use trie_core::ErrorKind;
use trie_core::TokenId;
use trie_core::work::LimitExceeded;

/// Reasons why a vocabulary cannot be made or used, or a text cannot be tokenized.
#[derive(Debug, thiserror::Error)]
pub enum VocabError {
    /// A number out of range.
    #[error("{what} is {value}: it must be from {least} to {most}")]
    OutOfRange {
        /// Name of the number.
        what: &'static str,
        /// Value of the number.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// A token that the vocabulary does not have.
    #[error("token id {token} at position {position} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// Position in the input.
        position: usize,
        /// The invalid token id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// The vocabulary was made from a token list and has no tokenizer.
    #[error("this vocabulary was made from a list of tokens: it cannot tokenize text")]
    NoTokenizer,
    /// The tokenizer failed, or its result cannot be used.
    #[error("the tokenizer: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// The work was given up.
    #[error("tokenizing: {0}")]
    Over(#[from] LimitExceeded),
    /// A `tokenizer.json` that says too little about its tokens, or is not one.
    #[error("not a tokenizer.json that can be used: {reason}")]
    TokenizerFile {
        /// Description of the defect.
        reason: String,
    },
    /// Error in one of several values.
    #[error("value {row}: {error}")]
    Value {
        /// Its index, from 0.
        row: usize,
        /// Error of the value.
        error: Box<VocabError>,
    },
    /// A set that was saved for another vocabulary: the same ids mean other tokens.
    #[error(
        "the set was made for another vocabulary, {}, than it is used with, {}: make it again with the vocabulary of \
         the model",
        describe_vocabulary(*.size, .found),
        describe_vocabulary(*.own, .expected)
    )]
    OtherVocabulary {
        /// The fingerprint that is recorded in the set.
        found: String,
        /// Number of tokens of that vocabulary; 0 if unknown.
        size: usize,
        /// The fingerprint of the vocabulary that it is used with.
        expected: String,
        /// Tokens of this vocabulary.
        own: usize,
    },
}

impl VocabError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Value { error, .. } => error.kind(),
            Self::OutOfRange { .. } => ErrorKind::Argument,
            Self::Over(_) => ErrorKind::Cancelled,
            Self::OutsideVocabulary { .. }
            | Self::OtherVocabulary { .. }
            | Self::NoTokenizer
            | Self::Tokenizer(_)
            | Self::TokenizerFile { .. } => ErrorKind::Vocabulary,
        }
    }
}

/// The longest text to tokenize, in bytes, and the largest total length of all tokens: llama.cpp counts in signed
/// 32-bit numbers.
pub(super) const MAX_TEXT: u64 = 1 << 30;

/// Checks that a number lies in a range.
pub(super) fn in_range(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), VocabError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(VocabError::OutOfRange { what, value, least, most }) }
}

/// Checks that a text is short enough to be tokenized.
pub(super) fn text_in_range(length: usize) -> Result<(), VocabError> {
    in_range("length of the text in bytes", length as u64, 0, MAX_TEXT)
}

/// Checks that every id is below `n_vocab`.
pub(super) fn inside_vocabulary(tokens: &[TokenId], n_vocab: usize) -> Result<(), VocabError> {
    match tokens.iter().position(|token| token.index() >= n_vocab) {
        Some(position) => Err(VocabError::OutsideVocabulary { position, token: tokens[position], n_vocab }),
        None => Ok(()),
    }
}

/// Returns the size of a vocabulary, and the beginning of its fingerprint.
fn describe_vocabulary(size: usize, fingerprint: &str) -> String {
    let known: String = fingerprint.chars().take(8).collect();
    if size == 0 { format!("{known}…") } else { format!("{known}… of {size} tokens") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_say_what_was_given() {
        assert!(in_range("number of tokens", 8, 1, 8).is_ok());
        let message = in_range("number of tokens", 9, 1, 8).unwrap_err().to_string();
        assert_eq!(message, "number of tokens is 9: it must be from 1 to 8");
        assert!(in_range("number of tokens", 0, 1, 8).is_err());
        assert!(text_in_range(1 << 30).is_ok());
        assert!(text_in_range((1 << 30) + 1).is_err());
    }

    #[test]
    fn tokens_are_looked_up_by_position() {
        let ids = |ids: [u32; 2]| ids.map(|id| TokenId::new(id).unwrap());
        assert!(inside_vocabulary(&ids([0, 4]), 5).is_ok());
        let message = inside_vocabulary(&ids([0, 5]), 5).unwrap_err().to_string();
        assert_eq!(message, "token id 5 at position 1 is outside the vocabulary of 5 tokens");
    }
}
