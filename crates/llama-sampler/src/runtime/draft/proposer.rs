//! Guessing tokens along a constraint.

use crate::runtime::error::RuntimeError;
use trie_core::TokenId;

/// Guesses the tokens of one generation.
pub(in crate::runtime) trait Proposer: Send {
    /// Takes in the text so far, which only grows but for a few last tokens.
    fn learn(&mut self, _text: &[TokenId]) {}

    /// Returns at most `most` different guesses for the token after these, the best first. `tokens` are the text and
    /// what is drafted already, and `ahead` is the constraint there.
    ///
    /// # Errors
    /// A forward pass that failed.
    fn guess(
        &mut self,
        tokens: &[TokenId],
        most: usize,
        ahead: &mut dyn Ahead,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<TokenId>, RuntimeError>;
}

/// Walk of a constraint ahead of the text.
pub(in crate::runtime) trait Ahead {
    /// Returns the only token that may come, if there is just one.
    fn forced(&mut self) -> Option<TokenId>;

    /// Returns all tokens that may come, if there are at most so many; else none.
    fn list_few(&mut self, most: usize) -> Vec<TokenId>;

    /// Returns the most probable allowed tokens with their logits, at most so many, the best first.
    fn best(&mut self, row: &[f32], most: usize) -> Vec<(TokenId, f32)>;

    /// Takes a token. Returns `false` if it is not allowed, or if it ends the text: then only [`Ahead::go_back`] may
    /// follow.
    fn accept(&mut self, token: TokenId) -> bool;

    /// Notes this place, for [`Ahead::go_back`].
    fn note(&mut self);

    /// Returns to the place that was noted last, which is forgotten.
    fn go_back(&mut self);
}
