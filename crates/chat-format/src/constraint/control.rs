//! Control tokens by their texts.

use crate::machine::CONTROL;
use trie_core::TokenId;

/// The control tokens of a vocabulary that may stand in replies, by their texts.
#[derive(Debug, Clone, Default)]
pub struct ControlTokens {
    /// The texts with their tokens, longer texts first.
    texts: Vec<(Box<[u8]>, TokenId)>,
    /// Tokens that close the turn, in ascending order.
    ends: Vec<TokenId>,
}

impl ControlTokens {
    /// The byte before the text of a control token, where tokens are given by their bytes. It occurs in no UTF-8 text.
    pub const BYTE: u8 = CONTROL;

    /// Builds the set of control tokens with these texts. Tokens that end generation belong to
    /// [`ControlTokens::with_ends`] instead.
    pub fn new<'t>(tokens: impl IntoIterator<Item = (&'t [u8], TokenId)>) -> Self {
        let mut texts: Vec<(Box<[u8]>, TokenId)> = tokens.into_iter().map(|(text, id)| (text.into(), id)).collect();
        texts.retain(|(text, _)| !text.is_empty());
        texts.sort_by(|one, other| other.0.len().cmp(&one.0.len()).then_with(|| one.cmp(other)));
        Self { texts, ends: Vec::new() }
    }

    /// The same with the tokens that end generation, which are forbidden where a reply may not end.
    #[must_use]
    pub fn with_ends(mut self, mut ends: Vec<TokenId>) -> Self {
        ends.sort_unstable();
        self.ends = ends;
        self
    }

    /// Returns whether a text begins with one of them, white space aside.
    pub(crate) fn begin(&self, text: &str) -> bool {
        let text = text.trim();
        self.texts.iter().any(|(name, _)| text.as_bytes().starts_with(name))
    }

    pub(crate) fn ends_output(&self, token: TokenId) -> bool {
        self.ends.binary_search(&token).is_ok()
    }

    /// The first control token in a text, with its byte offset.
    pub(crate) fn first_in(&self, text: &[u8]) -> Option<(usize, TokenId)> {
        (0..text.len()).find_map(|place| {
            let found = self.texts.iter().find(|(name, _)| text[place..].starts_with(name));
            found.map(|&(_, token)| (place, token))
        })
    }
}
