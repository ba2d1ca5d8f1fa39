//! Drafts from the text itself: prompt lookup.

use super::proposer::{Ahead, Proposer};
use crate::runtime::error::RuntimeError;
use trie_core::TokenId;

/// Guesses what followed the longest repeated end of the text, of equal ones the last.
#[derive(Debug)]
pub(super) struct Lookup {
    /// Tokens that must be alike.
    least: usize,
    /// The index of the token that was guessed last, and the length of the text then.
    last: Option<(usize, usize)>,
}

impl Lookup {
    /// Tokens that are compared, and tokens of the text that are searched: they bound the cost of a guess.
    const MOST: usize = 16;
    const SEARCHED: usize = 1 << 15;

    pub(super) fn new(least: usize) -> Self {
        Self { least, last: None }
    }

    /// Returns the index of the token that followed, if this many are alike.
    fn search(tokens: &[TokenId], least: usize) -> Option<usize> {
        let from = tokens.len().saturating_sub(Self::SEARCHED).max(least);
        let (mut best, mut found) = (least - 1, None);
        for at in (from..tokens.len()).rev() {
            if tokens[at - 1] != tokens[tokens.len() - 1] {
                continue;
            }
            let (before, end) = (tokens[..at].iter().rev(), tokens.iter().rev());
            let alike = before.zip(end).take(Self::MOST).take_while(|(one, other)| one == other).count();
            if alike > best {
                (best, found) = (alike, Some(at));
            }
            if best == Self::MOST {
                break;
            }
        }
        found
    }
}

impl Proposer for Lookup {
    fn next(
        &mut self,
        tokens: &[TokenId],
        _: &mut dyn Ahead,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<Option<TokenId>, RuntimeError> {
        let goes_on = |&(at, len): &(usize, usize)| tokens.len() == len + 1 && tokens.get(at) == tokens.last();
        let at = match self.last.filter(goes_on) {
            Some((at, _)) => Some(at + 1),
            None if tokens.is_empty() => None,
            None => Self::search(tokens, self.least),
        };
        self.last = at.map(|at| (at, tokens.len()));
        Ok(at.and_then(|at| tokens.get(at).copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches in the plainest way.
    fn naive(tokens: &[TokenId], least: usize) -> Option<usize> {
        let alike = |at: usize| {
            (1..=at.min(Lookup::MOST)).take_while(move |n| tokens[..at].ends_with(&tokens[tokens.len() - n..]))
        };
        let places = (1..tokens.len()).map(|at| (alike(at).count(), at));
        places.filter(|&(alike, _)| alike >= least).max().map(|(_, at)| at)
    }

    #[test]
    fn finds_what_the_naive_search_finds() {
        let mut seed = 7_u32;
        for _ in 0..2000 {
            let mut next = |most: u32| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 16) % most
            };
            let len = next(40);
            let tokens: Vec<TokenId> = (0..len).map(|_| TokenId::new(next(3)).unwrap()).collect();
            for least in [2, 5] {
                let found = if tokens.is_empty() { None } else { Lookup::search(&tokens, least) };
                assert_eq!(found, naive(&tokens, least), "{tokens:?}");
            }
        }
    }
}
