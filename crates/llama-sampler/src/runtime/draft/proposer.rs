//! Guessing tokens one after the other, along a constraint.

use crate::runtime::error::RuntimeError;
use trie_core::TokenId;

/// Guesses the tokens of one generation.
pub(in crate::runtime) trait Proposer: Send {
    /// Takes in the text so far, which only grows but for a few last tokens.
    fn learn(&mut self, _text: &[TokenId]) {}

    /// Guesses the token after these: the text and what is drafted already. `ahead` is the constraint there.
    ///
    /// # Errors
    /// A forward pass that failed.
    fn next(
        &mut self,
        tokens: &[TokenId],
        ahead: &mut dyn Ahead,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<TokenId>, RuntimeError>;
}

/// Walk of a constraint ahead of the text.
pub(in crate::runtime) trait Ahead {
    /// Returns the only token that may come, if there is just one.
    fn forced(&mut self) -> Option<TokenId>;

    /// Returns the most probable allowed token.
    fn best(&mut self, row: &[f32]) -> Option<TokenId>;

    /// Takes a token. Returns `false` if it is not allowed, or if it ends the text.
    fn accept(&mut self, token: TokenId) -> bool;
}
