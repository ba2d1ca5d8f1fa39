//! Who chooses among the allowed tokens where the runtime owns the row of logits.

use super::error::RuntimeError;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use std::sync::Arc;
use trie_core::{Allowed, Sampler, SamplerError, Span, SpanRules, TokenId};

/// Chooses one of the tokens that a span allows.
pub(super) trait Chooser {
    /// The position.
    fn span(&self) -> &Span;

    /// The choice for this row; it is not accepted yet.
    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError>;

    /// Moves on by the token that was chosen.
    fn accept(&mut self, token: TokenId) -> Result<(), RuntimeError>;

    /// Moves on by a token that had no rival, so that no row was computed for it.
    fn accept_forced(&mut self, token: TokenId) -> Result<(), RuntimeError>;
}

impl Chooser for Sampler {
    fn span(&self) -> &Span {
        self.span()
    }

    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        Ok(self.sample(row).map_err(SamplerError::from)?)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), RuntimeError> {
        Ok(self.span_mut().accept(token).map_err(SamplerError::from)?)
    }

    fn accept_forced(&mut self, token: TokenId) -> Result<(), RuntimeError> {
        Ok(self.accept_forced(token).map_err(SamplerError::from)?)
    }
}

/// A chain of llama.cpp's that sees the allowed candidates alone.
pub(super) struct ChainOverSpan {
    span: Span,
    chain: LlamaSampler,
}

impl ChainOverSpan {
    pub(super) fn new(rules: Arc<SpanRules>, chain: LlamaSampler) -> Self {
        Self { span: Span::new(rules), chain }
    }
}

impl Chooser for ChainOverSpan {
    fn span(&self) -> &Span {
        &self.span
    }

    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        let candidate = |id: usize| {
            let logit = if row[id].is_nan() { f32::NEG_INFINITY } else { row[id] };
            LlamaTokenData::new(LlamaToken(id as i32), logit, 0.0)
        };
        let candidates: Vec<LlamaTokenData> = match self.span.allowed() {
            Allowed::All | Allowed::Open { .. } => (0..row.len()).map(candidate).collect(),
            allowed @ Allowed::Only { .. } => allowed.iter().map(|token| candidate(token.index())).collect(),
        };
        let mut candidates = LlamaTokenDataArray::new(candidates, false);
        self.chain.apply(&mut candidates);
        let selected = candidates.selected_token().and_then(|token| TokenId::try_from(token.0).ok());
        selected.ok_or(RuntimeError::NothingSelected)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), RuntimeError> {
        self.span.accept(token).map_err(SamplerError::from)?;
        self.chain.accept(LlamaToken(token.as_i32()));
        Ok(())
    }

    fn accept_forced(&mut self, token: TokenId) -> Result<(), RuntimeError> {
        // Samplers that draw do so for a single candidate too: the seed gives the same tokens with and without skipping.
        let only = LlamaTokenData::new(LlamaToken(token.as_i32()), 0.0, 0.0);
        self.chain.apply(&mut LlamaTokenDataArray::new(vec![only], false));
        self.accept(token)
    }
}
