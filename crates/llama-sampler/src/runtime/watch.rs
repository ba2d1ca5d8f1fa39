//! Observers of a running call, which can also end it.

use serde::Serialize;
use trie_core::TokenId;

/// Log-probability of a token of the output among the allowed ones, with weights, before temperature and truncation. If
/// its text was forced, the probability is 1 and the logarithm 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenLogprob {
    /// Id of the token.
    pub token: TokenId,
    /// The natural logarithm of its probability.
    pub logprob: f32,
    /// The most probable tokens with their log-probabilities, best first; equal ones in ascending order of ids.
    pub top: Vec<(TokenId, f32)>,
}

/// One token of the output, as an observer sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its number, from 0.
    pub index: usize,
    /// Position in the trie before the step.
    pub depth: usize,
    /// The allowed tokens with their probabilities among each other, ascending by id; empty if all tokens are allowed.
    /// At an open leaf these are the tokens that continue the value, with their probabilities among all tokens.
    pub allowed: Vec<(TokenId, f32)>,
    /// The token that was taken.
    pub token: TokenId,
    /// True if no other token was allowed.
    pub forced: bool,
    /// True if the token is part of the output, and does not only end it.
    pub kept: bool,
    /// True if the token is free text after a value or without a constraint. Text of a value, of a form or of a thought
    /// before one is not free.
    pub free: bool,
    /// The text that the token completes: whole characters, which are never taken back. The texts of all steps together
    /// are the text of the output, except an incomplete character at its end.
    pub text: String,
    /// Log probability of it, if [`GenerateOptions::logprobs`](crate::GenerateOptions::logprobs) is set.
    pub logprob: Option<TokenLogprob>,
}

/// Watches a generation. `()` watches nothing.
pub trait Watch {
    /// Returns whether to stop; called before every forward pass. A generation then ends with the output so far
    /// ([`Finish::Cancelled`](crate::Finish::Cancelled)), and other calls end with
    /// [`RuntimeError::Stopped`](crate::RuntimeError::Stopped).
    fn stop(&mut self) -> bool {
        false
    }

    /// Returns the priority of the call in an engine: higher ones go first.
    fn priority(&self) -> i32 {
        0
    }

    /// Returns whether to call [`Watch::step`]: the probabilities cost `O(allowed)` a step.
    fn wants_steps(&self) -> bool {
        false
    }

    /// Returns whether steps include their allowed tokens; without it the list is empty.
    fn wants_shares(&self) -> bool {
        true
    }

    /// Receives each token, in order and once it is certain. If free text may end inside the written tokens, a token
    /// becomes certain later than it is chosen.
    fn step(&mut self, _step: &Step) {}
}

impl Watch for () {}

impl<W: Watch + ?Sized> Watch for &mut W {
    fn stop(&mut self) -> bool {
        (**self).stop()
    }

    fn priority(&self) -> i32 {
        (**self).priority()
    }

    fn wants_steps(&self) -> bool {
        (**self).wants_steps()
    }

    fn wants_shares(&self) -> bool {
        (**self).wants_shares()
    }

    fn step(&mut self, step: &Step) {
        (**self).step(step);
    }
}
