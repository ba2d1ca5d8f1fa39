//! What a caller may hand over as a prompt: text or token ids.

use crate::errors::Result;
use crate::ids::tokens;
use pyo3::prelude::*;
use pyo3::types::PyString;
use trie_core::{TokenId, Trie};
use trie_text::{Vocab, VocabError};

/// A prompt as it was given.
pub(crate) enum Prompt {
    /// Text that is trusted: names of control tokens in it are those tokens.
    Text(String),
    Tokens(Vec<TokenId>),
}

impl Prompt {
    /// # Errors
    /// `TypeError` for what is neither, `VocabularyError` for integers that are no token id.
    pub(crate) fn read(prompt: &Bound<'_, PyAny>) -> Result<Self> {
        match prompt.cast::<PyString>() {
            Ok(text) => Ok(Self::Text(text.to_str()?.to_owned())),
            Err(_) => Ok(Self::Tokens(tokens(prompt, "prompt, ")?)),
        }
    }

    /// Its tokens; a token of a text begins where `set` does.
    pub(crate) fn tokens(self, vocab: &Vocab, set: Option<&Trie>) -> Result<Vec<TokenId>, VocabError> {
        match (self, set) {
            (Self::Tokens(tokens), _) => Ok(tokens),
            (Self::Text(text), Some(set)) => vocab.tokenize_before(&text, set),
            (Self::Text(text), None) => vocab.tokenize(&text, true, true),
        }
    }
}
