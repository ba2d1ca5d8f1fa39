//! What does not change during the life of a span: its tries and the tokens around them.

use crate::ids::TokenId;
use crate::trie::Trie;
use std::sync::Arc;

/// What follows a complete leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum After {
    /// Logits are left alone.
    #[default]
    Free,
    /// Only end of generation may follow.
    Stop,
}

/// Tries, end tokens and limits of a span, checked once and shared by `Arc`.
#[derive(Debug, Clone)]
pub struct SpanRules {
    spans: Arc<[(String, Trie)]>,
    n_vocab: usize,
    end_tokens: Vec<TokenId>,
    end_of_generation: Vec<TokenId>,
    after: After,
    patience: u32,
}

/// Rules that contradict the vocabulary or each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// No trie at all.
    #[error("a span needs at least one trie")]
    NoTrie,
    /// The vocabulary size is 0 or over 2^31.
    #[error("a vocabulary of {n_vocab} tokens: the size must be in 1..=2147483648")]
    VocabularySize {
        /// The size that was given.
        n_vocab: usize,
    },
    /// An id that the vocabulary does not have.
    #[error("{what}: token id {token} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// Where it stands.
        what: String,
        /// The id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// `After::Stop` with nothing to stop on.
    #[error(
        "after a complete leaf only end of generation shall follow, but neither end-of-generation nor end tokens are known"
    )]
    NothingToStopOn,
}

impl SpanRules {
    /// Accepted tokens without progress after which an armed span turns itself off.
    pub const PATIENCE: u32 = 500;

    /// Rules over these tries, by path; the first is active at the start. `n_vocab` is the number of token ids.
    ///
    /// # Errors
    /// No trie, a size out of range, or a trie with an id that the vocabulary does not have.
    pub fn new(spans: impl Into<Arc<[(String, Trie)]>>, n_vocab: usize) -> Result<Self, RulesError> {
        let spans = spans.into();
        if n_vocab == 0 || n_vocab > TokenId::MAX.index() + 1 {
            return Err(RulesError::VocabularySize { n_vocab });
        }
        if spans.is_empty() {
            return Err(RulesError::NoTrie);
        }
        for (path, trie) in spans.iter() {
            inside(n_vocab, &[trie.max_token()], || format!("trie {path:?}"))?;
        }
        Ok(Self {
            spans,
            n_vocab,
            end_tokens: Vec::new(),
            end_of_generation: Vec::new(),
            after: After::Free,
            patience: Self::PATIENCE,
        })
    }

    /// Tokens that may close the span at the end of a leaf.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn with_end_tokens(mut self, tokens: impl Into<Vec<TokenId>>) -> Result<Self, RulesError> {
        self.end_tokens = ascending(tokens.into());
        inside(self.n_vocab, &self.end_tokens, || "end tokens".to_owned())?;
        Ok(self)
    }

    /// The vocabulary's end-of-generation tokens.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn with_end_of_generation(mut self, tokens: impl Into<Vec<TokenId>>) -> Result<Self, RulesError> {
        self.end_of_generation = ascending(tokens.into());
        inside(self.n_vocab, &self.end_of_generation, || "end-of-generation tokens".to_owned())?;
        Ok(self)
    }

    /// What follows a complete leaf. Set it after the token sets.
    ///
    /// # Errors
    /// [`After::Stop`] where neither end-of-generation nor end tokens are known.
    pub fn with_after(mut self, after: After) -> Result<Self, RulesError> {
        self.after = after;
        if after == After::Stop && self.stop_tokens().is_empty() {
            return Err(RulesError::NothingToStopOn);
        }
        Ok(self)
    }

    /// Accepted tokens without progress after which an armed span turns itself off (default [`SpanRules::PATIENCE`]).
    #[must_use]
    pub fn with_patience(mut self, patience: u32) -> Self {
        self.patience = patience;
        self
    }

    /// Path and trie of every span; never empty.
    pub fn spans(&self) -> &[(String, Trie)] {
        &self.spans
    }

    /// Number of token ids.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Tokens that may close the span, ascending.
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// What may follow a complete leaf under [`After::Stop`], ascending: end of generation, or where the vocabulary
    /// names none, the end tokens.
    pub fn stop_tokens(&self) -> &[TokenId] {
        if self.end_of_generation.is_empty() { &self.end_tokens } else { &self.end_of_generation }
    }

    /// What follows a complete leaf.
    pub fn after(&self) -> After {
        self.after
    }

    /// See [`SpanRules::with_patience`].
    pub fn patience(&self) -> u32 {
        self.patience
    }
}

fn ascending(mut tokens: Vec<TokenId>) -> Vec<TokenId> {
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

fn inside(n_vocab: usize, ascending: &[TokenId], what: impl Fn() -> String) -> Result<(), RulesError> {
    match ascending.last() {
        Some(&token) if token.index() >= n_vocab => Err(RulesError::OutsideVocabulary { what: what(), token, n_vocab }),
        _ => Ok(()),
    }
}
