//! Log-probabilities of the tokens of the output, where requested.

use crate::runtime::watch::TokenLogprob;
use trie_core::{Allowed, TokenId, logits};

/// Log-probabilities of the allowed tokens at the last row, and of the tokens written so far.
#[derive(Debug)]
pub(super) struct Likely {
    /// Number of most probable tokens to report beside each.
    top: usize,
    /// All allowed tokens, ascending, with their log-probabilities. A token that was chosen ahead of its turn is looked
    /// up in the row of its choice.
    legal: Vec<(TokenId, f32)>,
    written: Vec<TokenLogprob>,
}

impl Likely {
    pub(super) fn new(top: u32) -> Self {
        Self { top: top as usize, legal: Vec::new(), written: Vec::new() }
    }

    /// Computes the log-probabilities of the allowed tokens of a row; of all tokens at an open leaf, where other tokens
    /// end it. `O(allowed)`.
    pub(super) fn consider(&mut self, row: &[f32], allowed: &Allowed<'_>) {
        self.legal.clear();
        self.legal.extend(allowed.logits(row));
        let best = self.legal.iter().fold(f32::NEG_INFINITY, |best, &(_, logit)| best.max(logit));
        let weight = |&(_, logit): &(TokenId, f32)| f64::from(logits::weight(logit, best));
        let sum: f64 = self.legal.iter().map(weight).sum();
        for (index, (_, logit)) in self.legal.iter_mut().enumerate() {
            *logit = match (sum > 0.0, best.is_finite()) {
                (true, true) => (f64::from(logits::clean(*logit)) - f64::from(best) - sum.ln()) as f32,
                (true, false) => (f64::from(logits::weight(*logit, best)) / sum).ln() as f32,
                // A starved row gives all to the first.
                (false, _) => f32::from(u8::from(index == 0)).ln(),
            };
        }
    }

    /// Notes that only this token could come.
    pub(super) fn note_forced(&mut self, token: TokenId) {
        self.legal.clear();
        self.legal.push((token, 0.0));
    }

    /// Returns the log-probability of a token, and keeps it if the token is part of the output.
    pub(super) fn write(&mut self, token: TokenId, kept: bool) -> TokenLogprob {
        let place = self.legal.binary_search_by_key(&token, |&(token, _)| token);
        let logprob = place.map_or(f32::NEG_INFINITY, |place| self.legal[place].1);
        let known = TokenLogprob { token, logprob, top: self.best() };
        if kept {
            self.written.push(known.clone());
        }
        known
    }

    /// Takes back all but the first `n`.
    pub(super) fn take_back(&mut self, n: usize) {
        self.written.truncate(n);
    }

    pub(super) fn finish(self) -> Vec<TokenLogprob> {
        self.written
    }

    fn best(&self) -> Vec<(TokenId, f32)> {
        let order = |one: &(TokenId, f32), other: &(TokenId, f32)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
        let mut best = self.legal.clone();
        if self.top < best.len() {
            if self.top > 0 {
                best.select_nth_unstable_by(self.top - 1, order);
            }
            best.truncate(self.top);
        }
        best.sort_unstable_by(order);
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trie_core::Tokens;

    fn token(id: u32) -> TokenId {
        TokenId::new(id).unwrap()
    }

    #[test]
    fn logarithms_of_usual_and_of_odd_rows() {
        let ids = [token(0), token(1), token(3)];
        let only = Allowed::Only { tokens: Tokens::Ids(&ids), ends: &[] };
        let found = |row: &[f32], allowed: &Allowed<'_>, of: u32| {
            let mut likely = Likely::new(2);
            likely.consider(row, allowed);
            likely.write(token(of), true)
        };
        let usual = found(&[1.0, 2.0, 9.0, 2.0], &only, 0);
        let sum = (1f64.exp() + 2.0 * 2f64.exp()).ln();
        assert!((f64::from(usual.logprob) - (1.0 - sum)).abs() < 1e-6, "{usual:?}");
        assert_eq!(usual.top.iter().map(|&(token, _)| token.get()).collect::<Vec<_>>(), [1, 3]);
        let all = found(&[0.0; 4], &Allowed::All, 2);
        assert!((all.logprob - 0.25f32.ln()).abs() < 1e-6);
        assert_eq!(all.top, [(token(0), all.logprob), (token(1), all.logprob)]);
        // At an open leaf any other token ends the value.
        let open = found(&[0.0; 4], &Allowed::Open { tokens: Tokens::Ids(&ids[..1]) }, 3);
        assert!((open.logprob - 0.25f32.ln()).abs() < 1e-6);
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let logprob = |row: &[f32], of: u32| found(row, &only, of).logprob.to_bits();
        assert_eq!(logprob(&[nan, 1.0, 0.0, -inf], 1), 0f32.to_bits());
        assert_eq!(logprob(&[inf, 1.0, 0.0, inf], 3), 0.5f32.ln().to_bits());
        assert_eq!(logprob(&[nan, -inf, 0.0, nan], 0), 0f32.to_bits());
        // Small shares are not lost.
        assert_eq!(logprob(&[0.0, 500.0, 0.0, -inf], 0), (-500f32).to_bits());
    }

    #[test]
    fn what_is_taken_back_and_what_had_to_come() {
        let mut likely = Likely::new(0);
        for id in 0..4 {
            likely.note_forced(token(id));
            assert!(likely.write(token(id), id != 3).logprob.abs() < f32::EPSILON);
        }
        likely.take_back(2);
        assert_eq!(likely.finish().iter().map(|one| one.token.get()).collect::<Vec<_>>(), [0, 1]);
    }
}
