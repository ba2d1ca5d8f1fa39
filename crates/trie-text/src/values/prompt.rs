//! A prompt as a host gives it.

use crate::vocab::{Vocab, VocabError};
use trie_core::{TokenId, Trie};

/// Text or token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// Text that is trusted: names of control tokens in it are those tokens.
    Text(String),
    /// Token ids, taken as they are.
    Tokens(Vec<TokenId>),
}

impl Prompt {
    /// Its tokens; of a text one begins where the set after it does ([`Vocab::tokenize_before`]).
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokens(self, vocab: &Vocab, set: Option<&Trie>) -> Result<Vec<TokenId>, VocabError> {
        match (self, set) {
            (Self::Tokens(tokens), _) => Ok(tokens),
            (Self::Text(text), Some(set)) => vocab.tokenize_before(&text, set),
            (Self::Text(text), None) => vocab.tokenize(&text, true, true),
        }
    }
}
