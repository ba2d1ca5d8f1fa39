//! A marker of several tokens, searched for in a stream of tokens.

use crate::set::ids::TokenId;

/// Finds a token sequence in a stream: how much of it the last tokens are, whatever came before (Knuth, Morris and
/// Pratt).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    tokens: Box<[TokenId]>,
    /// For each length, the longest shorter beginning that is also its end.
    shorter: Box<[u32]>,
}

impl Marker {
    pub(super) fn new(tokens: &[TokenId]) -> Self {
        let mut shorter = vec![0u32; tokens.len() + 1];
        for at in 1..tokens.len() {
            let mut matched = shorter[at] as usize;
            while matched > 0 && tokens[matched] != tokens[at] {
                matched = shorter[matched] as usize;
            }
            shorter[at + 1] = matched as u32 + u32::from(tokens[matched] == tokens[at]);
        }
        Self { tokens: tokens.into(), shorter: shorter.into() }
    }

    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the length of the prefix that the text ends with after one more token. `O(1)` on average over a walk.
    pub(super) fn advance(&self, matched: usize, token: TokenId) -> usize {
        let mut matched = matched;
        loop {
            match self.tokens.get(matched) {
                Some(&next) if next == token => return matched + 1,
                _ if matched == 0 => return 0,
                _ => matched = self.shorter.get(matched).map_or(0, |&shorter| shorter as usize),
            }
        }
    }

    /// Returns the end of its first occurrence in these tokens.
    pub(super) fn first_end(&self, tokens: &[TokenId]) -> Option<usize> {
        let mut matched = 0;
        tokens.iter().position(|&token| {
            matched = self.advance(matched, token);
            matched == self.len()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_the_end_of_the_text_is(
            marker in prop::collection::vec(0..3u32, 1..6), text in prop::collection::vec(0..3u32, 0..30)
        ) {
            let ids: Vec<TokenId> = marker.iter().filter_map(|&id| TokenId::new(id)).collect();
            let found = Marker::new(&ids);
            let mut matched = 0;
            for end in 1..=text.len() {
                matched = found.advance(matched, TokenId::new(text[end - 1]).unwrap());
                let longest = (0..=marker.len().min(end)).rev().find(|&length| {
                    text[..end].ends_with(&marker[..length])
                });
                prop_assert_eq!(Some(matched), longest, "after {:?}", &text[..end]);
            }
            let all: Vec<TokenId> = text.iter().filter_map(|&id| TokenId::new(id)).collect();
            let first = text.windows(marker.len()).position(|window| window == marker);
            prop_assert_eq!(found.first_end(&all), first.map(|first| first + marker.len() - 1));
        }
    }
}
