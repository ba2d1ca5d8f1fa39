//! What the caller sees of a call while it runs, and how it ends one.

use trie_core::TokenId;

/// One step, as an observer sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<'a> {
    /// Its number, from 0.
    pub index: usize,
    /// Position in the trie before the step.
    pub depth: usize,
    /// The allowed tokens with their probabilities among each other, ascending by id; empty where all tokens are.
    /// At an open leaf these are the tokens that go on, with their probabilities among all tokens.
    pub allowed: &'a [(TokenId, f32)],
    /// The token that was taken.
    pub token: TokenId,
    /// Whether no other could come.
    pub forced: bool,
}

/// Watches a generation. `()` watches nothing.
pub trait Watch {
    /// Asked before every forward pass; `true` ends the generation with
    /// [`RuntimeError::Stopped`](crate::RuntimeError::Stopped).
    fn stop(&mut self) -> bool {
        false
    }

    /// Whether [`Watch::step`] wants to be called: the probabilities cost `O(allowed)` a step.
    fn wants_steps(&self) -> bool {
        false
    }

    /// Sees each step.
    fn step(&mut self, _step: &Step<'_>) {}
}

impl Watch for () {}
