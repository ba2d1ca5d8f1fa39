//! Spelling of texts: the bytes of each token, and the tokenizer.

use crate::tokens::token_bytes::TokenBytes;
use std::fmt;
use std::sync::Arc;
use trie_core::TokenId;

/// Tokenizer of a text that stands in the middle of another; `None` if its tokens do not spell the text.
pub type Tokenize = dyn Fn(&str) -> Option<Vec<TokenId>> + Send + Sync;

/// Spelling of rules: the tokens of a vocabulary, and its tokenizer, if there is one. With a tokenizer, forced text is
/// written in the tokenizer's own tokens. A clone costs two reference counts.
#[derive(Clone)]
pub struct Spelling {
    tokens: Arc<TokenBytes>,
    tokenizer: Option<Arc<Tokenize>>,
}

impl Spelling {
    /// Adds a tokenizer to the tokens.
    pub fn with_tokenizer(
        tokens: Arc<TokenBytes>,
        tokenizer: impl Fn(&str) -> Option<Vec<TokenId>> + Send + Sync + 'static,
    ) -> Self {
        Self { tokens, tokenizer: Some(Arc::new(tokenizer)) }
    }

    /// Returns the tokens, sorted by their bytes.
    pub fn tokens(&self) -> &Arc<TokenBytes> {
        &self.tokens
    }

    pub(crate) fn tokenizer(&self) -> Option<&Tokenize> {
        self.tokenizer.as_deref()
    }
}

impl From<Arc<TokenBytes>> for Spelling {
    /// Uses the tokens without a tokenizer.
    fn from(tokens: Arc<TokenBytes>) -> Self {
        Self { tokens, tokenizer: None }
    }
}

impl fmt::Debug for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokenizer = if self.tokenizer.is_some() { "its tokenizer" } else { "no tokenizer" };
        write!(f, "Spelling({} tokens, {tokenizer})", self.tokens.len())
    }
}
