//! Selection of a token among the allowed ones, given a row of logits.

use super::chain::Chain;
use crate::runtime::error::RuntimeError;
use llama_callbacks::SamplerHandle;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use std::sync::Arc;
use trie_core::{
    Allowed, Observation, Role, RowChooser, Sampler, SamplerError, Scratch, Span, SpanRules, Status, TokenId, logits,
};

/// Chooses one of the tokens that a span allows; without a span, any.
pub(super) trait Chooser {
    /// Returns the span that the chooser walks, if any.
    fn span(&self) -> Option<&Span>;

    /// Chooses a token for this row of logits, without accepting it.
    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError>;

    /// Accepts the token that was chosen, and returns its role.
    fn accept(&mut self, token: TokenId) -> Result<Role, RuntimeError>;

    /// Accepts a forced token, for which no row of logits was computed.
    fn accept_forced(&mut self, token: TokenId) -> Result<Role, RuntimeError>;

    /// Returns whether the next choice reads the logits of allowed tokens only.
    fn reads_allowed(&self) -> bool;

    /// Number of times that no legal token had a usable logit.
    fn starved_count(&self) -> u64;
}

impl Chooser for Sampler {
    fn span(&self) -> Option<&Span> {
        Some(self.span())
    }

    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        Ok(self.sample_or_end(row)?)
    }

    fn accept(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        Ok(Sampler::accept(self, token).map_err(SamplerError::from)?)
    }

    fn accept_forced(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        Ok(self.accept_forced(token).map_err(SamplerError::from)?)
    }

    fn reads_allowed(&self) -> bool {
        self.chooses_among_allowed()
    }

    fn starved_count(&self) -> u64 {
        self.starved_count()
    }
}

/// Chooser of unconstrained text.
pub(super) struct Free(pub(super) RowChooser);

impl Chooser for Free {
    fn span(&self) -> Option<&Span> {
        None
    }

    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        self.0.choose(row, Allowed::All).ok_or(RuntimeError::NothingSelected)
    }

    fn accept(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        self.0.wrote(token);
        Ok(Role::Free)
    }

    fn accept_forced(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        self.accept(token)
    }

    fn reads_allowed(&self) -> bool {
        false
    }

    fn starved_count(&self) -> u64 {
        self.0.starved_count()
    }
}

/// A sampler up to the end of the span, and another choice in the free text after it.
pub(super) struct SpanThenFree {
    span: Sampler,
    free: RowChooser,
}

impl SpanThenFree {
    pub(super) fn new(span: Sampler, free: RowChooser) -> Self {
        Self { span, free }
    }
}

impl Chooser for SpanThenFree {
    fn span(&self) -> Option<&Span> {
        Some(self.span.span())
    }

    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        let n_vocab = self.span.span().rules().n_vocab();
        let free = self.span.status() != Status::Active && self.span.allowed() == Allowed::All;
        match row.get(..n_vocab) {
            Some(row) if free => self.free.choose(row, Allowed::All).ok_or(RuntimeError::NothingSelected),
            _ => Ok(self.span.sample(row)?),
        }
    }

    fn accept(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        self.free.wrote(token);
        Chooser::accept(&mut self.span, token)
    }

    fn accept_forced(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        self.free.wrote(token);
        Chooser::accept_forced(&mut self.span, token)
    }

    fn reads_allowed(&self) -> bool {
        true
    }

    fn starved_count(&self) -> u64 {
        self.span.starved_count()
    }
}

/// A chain of llama.cpp's with a span in it, or without one, as in any host of llama.cpp.
pub(super) struct WholeChain {
    chain: LlamaSampler,
    handle: Option<SamplerHandle>,
    span: Option<Span>,
    scratch: Scratch,
}

impl WholeChain {
    pub(super) fn new(Chain { sampler, handle, .. }: Chain) -> Self {
        let span = handle.as_ref().map(SamplerHandle::span);
        Self { chain: sampler, handle, span, scratch: Scratch::default() }
    }
}

impl Chooser for WholeChain {
    fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }

    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        if let Some(span) = &self.span
            && span.allowed(&mut self.scratch) == Allowed::Nothing
        {
            return Err(span.problem().map_or(RuntimeError::DamagedSet, RuntimeError::Problem));
        }
        Ok(select(&mut self.chain, row, TokenId::all(row.len()))?.0)
    }

    fn accept(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        self.chain.accept(LlamaToken(token.as_i32()));
        self.span = self.handle.as_ref().map(SamplerHandle::span);
        Ok(match self.handle.as_ref().and_then(SamplerHandle::last_token) {
            Some(Observation::Accepted(role)) => role,
            _ => Role::Free,
        })
    }

    fn accept_forced(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        self.accept(token)
    }

    fn reads_allowed(&self) -> bool {
        false
    }

    fn starved_count(&self) -> u64 {
        self.handle.as_ref().map_or(0, |handle| handle.counts().starved)
    }
}

/// A chain of llama.cpp's that receives only the allowed candidates.
pub(super) struct ChainOverSpan {
    span: Span,
    chain: LlamaSampler,
    scratch: Scratch,
}

impl ChainOverSpan {
    pub(super) fn new(rules: Arc<SpanRules>, chain: LlamaSampler) -> Self {
        Self { span: Span::new(rules), chain, scratch: Scratch::default() }
    }
}

impl Chooser for ChainOverSpan {
    fn span(&self) -> Option<&Span> {
        Some(&self.span)
    }

    fn reads_allowed(&self) -> bool {
        true
    }

    fn starved_count(&self) -> u64 {
        0
    }

    fn choose(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        let allowed = self.span.allowed(&mut self.scratch);
        let all = matches!(allowed, Allowed::All | Allowed::Open { .. });
        let (token, logit) = if allowed.weights().is_some() {
            select_of(&mut self.chain, allowed.logits(row))?
        } else if all {
            select(&mut self.chain, row, TokenId::all(row.len()))?
        } else {
            // Of nothing a chain selects nothing, which is an error.
            select(&mut self.chain, row, allowed.iter())?
        };
        // Grammars of llama.cpp's throw where they hear of what they forbade, and nothing may be thrown through Rust.
        let forbidden = !logits::is_usable(logit) && (all || logits::is_usable(row[token.index()]));
        if forbidden { Err(RuntimeError::NothingSelected) } else { Ok(token) }
    }

    fn accept(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        let role = self.span.accept(token).map_err(SamplerError::from)?;
        self.chain.accept(LlamaToken(token.as_i32()));
        Ok(role)
    }

    fn accept_forced(&mut self, token: TokenId) -> Result<Role, RuntimeError> {
        // Samplers that draw do so for a single candidate too: the seed gives the same tokens with and without
        // skipping.
        let only = LlamaTokenData::new(LlamaToken(token.as_i32()), 0.0, 0.0);
        let mut candidates = LlamaTokenDataArray::new(vec![only], false);
        self.chain.apply(&mut candidates);
        // As in `choose`.
        let forbidden = candidates.data.iter().any(|only| !logits::is_usable(only.logit()));
        if forbidden { Err(RuntimeError::NothingSelected) } else { self.accept(token) }
    }
}

/// Returns the token that a chain selects among these, and the logit that the chain left it.
fn select(
    chain: &mut LlamaSampler,
    row: &[f32],
    tokens: impl Iterator<Item = TokenId>,
) -> Result<(TokenId, f32), RuntimeError> {
    select_of(chain, tokens.map(|token| (token, row[token.index()])))
}

/// [`select`] among tokens with their logits.
fn select_of(
    chain: &mut LlamaSampler,
    tokens: impl Iterator<Item = (TokenId, f32)>,
) -> Result<(TokenId, f32), RuntimeError> {
    let candidate =
        |(token, logit): (TokenId, f32)| LlamaTokenData::new(LlamaToken(token.as_i32()), logits::clean(logit), 0.0);
    let mut candidates = LlamaTokenDataArray::new(tokens.map(candidate).collect(), false);
    chain.apply(&mut candidates);
    let selected = candidates.selected.and_then(|index| candidates.data.get(index));
    let chosen = selected.and_then(|chosen| Some((TokenId::try_from(chosen.id().0).ok()?, chosen.logit())));
    chosen.ok_or(RuntimeError::NothingSelected)
}
