//! Drafts from the text itself: prompt lookup.

use super::proposer::{Ahead, Proposer};
use crate::runtime::error::RuntimeError;
use trie_core::TokenId;

/// Guesses what followed the longest repeated ends of the text, of equal ones the last first.
#[derive(Debug)]
pub(super) struct Lookup {
    /// Tokens that must be alike.
    least: usize,
    /// The index of the token that was the best guess last, and the length of the text then.
    last: Option<(usize, usize)>,
}

impl Lookup {
    /// Tokens that are compared, and tokens of the text that are searched: they bound the cost of a guess.
    const MOST: usize = 16;
    const SEARCHED: usize = 1 << 15;

    pub(super) fn new(least: usize) -> Self {
        Self { least, last: None }
    }

    /// Returns the indices of different tokens that followed, at most `most`, if this many are alike.
    fn search(tokens: &[TokenId], least: usize, most: usize) -> Vec<usize> {
        let from = tokens.len().saturating_sub(Self::SEARCHED).max(least);
        // How many are alike, and the index; the best first.
        let mut found: Vec<(usize, usize)> = Vec::with_capacity(most + 1);
        for at in (from..tokens.len()).rev() {
            if tokens[at - 1] != tokens[tokens.len() - 1] {
                continue;
            }
            let (before, end) = (tokens[..at].iter().rev(), tokens.iter().rev());
            let alike = before.zip(end).take(Self::MOST).take_while(|(one, other)| one == other).count();
            let worst = if found.len() == most { found[most - 1].0 } else { least - 1 };
            let same = found.iter().position(|&(_, other)| tokens[other] == tokens[at]);
            if alike <= same.map_or(worst, |same| found[same].0) {
                continue;
            }
            if let Some(same) = same {
                found.remove(same);
            }
            found.insert(found.partition_point(|&(other, _)| other >= alike), (alike, at));
            found.truncate(most);
            if found.len() == most && found[most - 1].0 == Self::MOST {
                break;
            }
        }
        found.into_iter().map(|(_, at)| at).collect()
    }
}

impl Proposer for Lookup {
    fn guess(
        &mut self,
        tokens: &[TokenId],
        most: usize,
        _: &mut dyn Ahead,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<TokenId>, RuntimeError> {
        let goes_on = |&(at, len): &(usize, usize)| tokens.len() == len + 1 && tokens.get(at) == tokens.last();
        let mut places: Vec<usize> = self.last.filter(goes_on).map(|(at, _)| at + 1).into_iter().collect();
        if places.len() < most && !tokens.is_empty() {
            places.extend(Self::search(tokens, self.least, most));
        }
        self.last = places.first().map(|&at| (at, tokens.len()));
        let mut guesses = Vec::with_capacity(most);
        for guess in places.into_iter().filter_map(|at| tokens.get(at).copied()) {
            if guesses.len() < most && !guesses.contains(&guess) {
                guesses.push(guess);
            }
        }
        Ok(guesses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Searches in the plainest way.
    fn naive(tokens: &[TokenId], least: usize, most: usize) -> Vec<usize> {
        let alike = |at: usize| {
            (1..=at.min(Lookup::MOST)).take_while(move |n| tokens[..at].ends_with(&tokens[tokens.len() - n..]))
        };
        let places = (1..tokens.len()).map(|at| (alike(at).count(), at));
        let mut places: Vec<_> = places.filter(|&(alike, _)| alike >= least).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        let mut seen = HashSet::new();
        places.into_iter().map(|(_, at)| at).filter(|&at| seen.insert(tokens[at])).take(most).collect()
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
            for (least, most) in [(2, 1), (5, 1), (2, 2), (2, 4)] {
                let found = if tokens.is_empty() { Vec::new() } else { Lookup::search(&tokens, least, most) };
                assert_eq!(found, naive(&tokens, least, most), "{tokens:?}");
            }
        }
    }
}
