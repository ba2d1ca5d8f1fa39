//! Alternatives of each token of the output, where a receipt is requested.

use super::generated::{Branch, TrailStep};
use trie_core::{Allowed, TokenId, log_probability, log_sum_exp, mask_row};
use trie_text::{KeptTokens, Vocab};

/// Allowed tokens at the last row, and the steps written so far.
#[derive(Debug, Default)]
pub(super) struct Trail {
    /// The last row; `None` if only one token was allowed.
    row: Option<Row>,
    written: Vec<TrailStep>,
}

#[derive(Debug)]
struct Row {
    mask: [u8; 32],
    mass: f64,
    /// The row by which the token was chosen: weights are added, and forbidden tokens are −inf.
    logits: Vec<f32>,
    log_sum: f64,
}

impl Trail {
    /// Records the allowed tokens of a row. `O(vocabulary)`.
    pub(super) fn consider(&mut self, row: &[f32], allowed: &Allowed<'_>, vocab: &Vocab) {
        self.row = None;
        if allowed.single_token().is_some() {
            return;
        }
        let (mut logits, everything) = (row.to_vec(), log_sum_exp(row));
        // Of what could come, with weights and without.
        let (log_sum, plain) = if allowed.weights().is_some() {
            let (ids, weighed): (Vec<TokenId>, Vec<f32>) = allowed.logits(row).unzip();
            logits.fill(f32::NEG_INFINITY);
            ids.iter().zip(&weighed).for_each(|(id, &logit)| logits[id.index()] = logit);
            (log_sum_exp(&weighed), log_sum_of(row, &ids))
        } else if let Allowed::Only { tokens, ends } = *allowed {
            mask_row(&mut logits, tokens, ends, &mut Vec::new());
            let sum = allowed.ids().map_or_else(|| log_sum_exp(&logits), |ids| log_sum_of(row, ids));
            (sum, sum)
        } else {
            (everything, everything)
        };
        let share = (plain - everything).exp();
        // Where both are infinite, what could come has all of it, or nothing has any.
        let mass = if share.is_nan() { f64::from(u8::from(plain > 0.0)) } else { share.min(1.0) };
        self.row = Some(Row { mask: vocab.mask_digest(*allowed), mass, logits, log_sum });
    }

    /// Notes that only one token could come.
    pub(super) fn note_forced(&mut self) {
        self.row = None;
    }

    pub(super) fn write(&mut self, token: TokenId) {
        let branch = self.row.take().map(|row| row.branch(token));
        self.written.push(TrailStep { token, branch, dropped: false });
    }

    pub(super) fn finish(self) -> Vec<TrailStep> {
        self.written
    }

    /// Returns the steps of a form, in which the `kept` tokens stay and the others are dropped.
    pub(super) fn finish_filled(self, kept: &KeptTokens) -> Vec<TrailStep> {
        let written = self.written.into_iter().enumerate();
        written.map(|(at, step)| TrailStep { dropped: !kept.contains(at), ..step }).collect()
    }
}

fn log_sum_of(row: &[f32], ids: &[TokenId]) -> f64 {
    log_sum_exp(&ids.iter().map(|id| row[id.index()]).collect::<Vec<_>>())
}

impl Row {
    fn branch(&self, token: TokenId) -> Branch {
        let &Self { mask, mass, ref logits, log_sum } = self;
        let starved = log_sum == f64::NEG_INFINITY;
        let share = |logit| if starved { 0.0 } else { log_probability(logit, log_sum).exp() };
        let own = logits.get(token.index()).copied();
        let (before, after) = logits.split_at(token.index().min(logits.len()));
        let most = |logits: &[f32]| logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let best = most(before).max(most(after.get(1..).unwrap_or_default()));
        // A starved row gives all to the token that was taken.
        let probability = if starved { 1.0 } else { own.map_or(0.0, share) };
        Branch { mass, probability, runner_up: share(best), mask }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trie_core::Tokens;
    use trie_text::TokenKind;

    fn token(id: u32) -> TokenId {
        TokenId::new(id).unwrap()
    }

    fn branch(row: &[f32], allowed: &Allowed<'_>, of: u32) -> Option<Branch> {
        let pieces = (0..row.len()).map(|id| ([id as u8], TokenKind::Text));
        let vocab = Vocab::new(pieces, Vec::new(), None).unwrap();
        let mut trail = Trail::default();
        trail.consider(row, allowed, &vocab);
        trail.write(token(of));
        trail.finish()[0].branch
    }

    #[test]
    fn shares_of_usual_and_of_odd_rows() {
        let ids = [token(0), token(1), token(3)];
        let only = Allowed::Only { tokens: Tokens::Ids(&ids), ends: &[] };
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} is not {other}");
        let usual = branch(&[1.0, 2.0, 9.0, 2.0], &only, 0).unwrap();
        let [one, two, nine] = [1f64, 2.0, 9.0].map(f64::exp);
        near(usual.mass, (one + 2.0 * two) / (one + 2.0 * two + nine));
        near(usual.probability, one / (one + 2.0 * two));
        near(usual.runner_up, two / (one + 2.0 * two));
        let all = branch(&[0.0; 4], &Allowed::All, 2).unwrap();
        assert_ne!(all.mask, usual.mask);
        near(all.mass, 1.0);
        near(all.probability, 0.25);
        near(all.runner_up, 0.25);
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for row in [[nan, 1.0, 0.0, -inf], [inf, 1.0, 0.0, inf], [nan, -inf, 0.0, nan], [nan; 4]] {
            let Branch { mass, probability, runner_up, .. } = branch(&row, &only, 1).unwrap();
            for share in [mass, probability, runner_up] {
                assert!((0.0..=1.0).contains(&share), "{row:?}: {share}");
            }
        }
        let forced = Allowed::Only { tokens: Tokens::Ids(&ids[..1]), ends: &[] };
        assert_eq!(branch(&[0.0; 4], &forced, 0), None);
    }
}
