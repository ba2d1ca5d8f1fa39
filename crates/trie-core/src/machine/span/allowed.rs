//! Allowed tokens of a span.

use crate::machine::constraint::{Tokens, WeightedTokens};
use crate::set::ids::TokenId;

/// Set of allowed next tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed<'a> {
    /// Every token is allowed: logits are left unchanged.
    All,
    /// Every token is allowed, but only these continue the value. Any other token completes the value that ends here.
    Open {
        /// Tokens that continue to a longer value.
        tokens: Tokens<'a>,
    },
    /// Only these tokens are allowed; there is at least one. The two sets may share ids.
    Only {
        /// Tokens that continue in the constraint.
        tokens: Tokens<'a>,
        /// Tokens that end the span, or the output; ascending.
        ends: &'a [TokenId],
    },
    /// No token is allowed, because the set is damaged here. Hosts refuse or end the output; none allows everything.
    Nothing,
}

impl<'a> Allowed<'a> {
    /// The weights, where there are any.
    #[inline]
    pub fn weights(&self) -> Option<WeightedTokens<'a>> {
        match self {
            Self::Only { tokens, .. } | Self::Open { tokens } => tokens.weights(),
            Self::All | Self::Nothing => None,
        }
    }

    /// The weight of an allowed token, which is added to its logit.
    pub fn weight_of(&self, token: TokenId) -> f32 {
        let Some(weighted) = self.weights() else { return 0.0 };
        match (weighted.ids().binary_search(&token), self) {
            (Ok(at), _) => weighted.weights()[at],
            (Err(_), Self::Only { ends, .. }) if ends.binary_search(&token).is_ok() => weighted.end(),
            _ => 0.0,
        }
    }

    /// These tokens, which ascend, each with its weight; 0 where there are none.
    pub(crate) fn weigh<I: Iterator<Item = TokenId>>(
        &self,
        tokens: I,
    ) -> impl Iterator<Item = (TokenId, f32)> + use<'a, I> {
        let (ids, weights, end) = match self.weights() {
            Some(weighted) => (weighted.ids(), weighted.weights(), weighted.end()),
            None => (&[][..], &[][..], 0.0),
        };
        // At an open leaf no token says that the value ends.
        let end = if matches!(self, Self::Only { .. }) { end } else { 0.0 };
        let mut weights = ids.iter().zip(weights).peekable();
        tokens.map(move |token| (token, weights.next_if(|(id, _)| **id == token).map_or(end, |(_, &weight)| weight)))
    }

    fn parts(&self) -> (Tokens<'a>, &'a [TokenId]) {
        match *self {
            Self::All | Self::Nothing => (Tokens::default(), &[]),
            Self::Open { tokens } => (tokens, &[]),
            Self::Only { tokens, ends } => (tokens, ends),
        }
    }

    /// The allowed tokens, ascending and each once. Where any token may end a value, only those that continue it;
    /// empty where every token is allowed.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + use<'a> {
        let (tokens, ends) = self.parts();
        let (mut tokens, mut ends) = (tokens.iter().peekable(), ends.iter().copied().peekable());
        std::iter::from_fn(move || {
            let next = match (tokens.peek(), ends.peek()) {
                (Some(&token), Some(&end)) => token.min(end),
                (Some(&only), None) | (None, Some(&only)) => only,
                (None, None) => return None,
            };
            tokens.next_if_eq(&next);
            ends.next_if_eq(&next);
            Some(next)
        })
    }

    /// Returns the tokens of [`Self::iter`] as a slice, if one part alone holds them: no mask, and not both tokens and
    /// ends.
    #[inline]
    pub fn ids(&self) -> Option<&'a [TokenId]> {
        let (tokens, ends) = self.parts();
        match tokens.ids()? {
            [] => Some(ends),
            ids => ends.is_empty().then_some(ids),
        }
    }

    /// Collects the tokens of [`Self::iter`]; if everything is allowed, all of a vocabulary of this size.
    pub fn to_vec(&self, n_vocab: usize) -> Vec<TokenId> {
        if matches!(self, Self::All) {
            return TokenId::all(n_vocab).collect();
        }
        if let Some(ids) = self.ids() {
            return ids.to_vec();
        }
        let (tokens, ends) = self.parts();
        let mut all = Vec::with_capacity(tokens.len() + ends.len());
        all.extend(self.iter());
        all
    }

    /// The lowest allowed token, unless every token is allowed.
    pub fn first(&self) -> Option<TokenId> {
        let (tokens, ends) = self.parts();
        tokens.first().into_iter().chain(ends.first().copied()).min()
    }

    /// The only allowed token, if there is just one.
    pub fn single_token(&self) -> Option<TokenId> {
        let Self::Only { .. } = self else { return None };
        let mut tokens = self.iter();
        tokens.next().filter(|_| tokens.next().is_none())
    }

    /// Returns whether this token is allowed by this set.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::All | Self::Open { .. } => true,
            Self::Only { tokens, ends } => tokens.contains(token) || ends.binary_search(&token).is_ok(),
            Self::Nothing => false,
        }
    }
}
