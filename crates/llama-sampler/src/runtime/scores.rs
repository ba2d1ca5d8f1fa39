//! What is known of a set's values while it is scored.

use super::choose::{Choice, ChooseStats};
use trie_core::{Cursor, LeafId, TokenId, Trie, log_add, log_probability, log_sum_exp};

/// The values scored so far.
pub(super) struct Scores<'t> {
    pub(super) trie: &'t Trie,
    ends: Vec<TokenId>,
    logprobs: Vec<f64>,
    /// The best `top` of them, falling.
    pub(super) best: Vec<f64>,
    pub(super) top: usize,
    scratch: Vec<f32>,
    rows: usize,
}

impl<'t> Scores<'t> {
    pub(super) fn new(trie: &'t Trie, ends: &[TokenId]) -> Self {
        let mut ends = ends.to_vec();
        ends.sort_unstable();
        ends.dedup();
        let logprobs = vec![f64::NAN; trie.len()];
        Self { trie, ends, logprobs, best: Vec::new(), top: 0, scratch: Vec::new(), rows: 0 }
    }

    fn needs_row(&self, at: Cursor) -> bool {
        needs_row(self.trie, &self.ends, at)
    }

    /// Reads the row after a position of this log-probability. `open` gets the positions after it that need a row.
    pub(super) fn expand(&mut self, at: Cursor, logprob: f64, row: &[f32], mut open: impl FnMut(Cursor, f64)) {
        self.rows += 1;
        let sum = log_sum_exp(row);
        let children = self.trie.children(at);
        if self.trie.is_terminal(at) {
            let stops = if self.ends.is_empty() {
                // Ending is whatever no child is. Summed without them: 1 − Σ would cancel.
                self.scratch.clear();
                self.scratch.extend_from_slice(row);
                for child in children {
                    self.scratch[child.index()] = f32::NEG_INFINITY;
                }
                (log_sum_exp(&self.scratch) - sum).min(0.0)
            } else {
                // A token that is both is taken as the child.
                let ends = self.ends.iter().filter(|end| children.binary_search(end).is_err());
                ends.map(|end| log_probability(row[end.index()], sum)).fold(f64::NEG_INFINITY, log_add)
            };
            self.leaf(at, logprob + if stops.is_nan() { f64::NEG_INFINITY } else { stops });
        }
        for &child in children {
            let Some(below) = self.trie.step(at, child) else { continue };
            let logprob = logprob + log_probability(row[child.index()], sum);
            if self.needs_row(below) { open(below, logprob) } else { self.leaf(below, logprob) }
        }
    }

    fn leaf(&mut self, at: Cursor, logprob: f64) {
        if let Some(leaf) = self.trie.leaf_at(at) {
            self.logprobs[leaf.index()] = logprob;
            let place = self.best.partition_point(|&better| better >= logprob);
            if place < self.top {
                self.best.truncate(self.top - 1);
                self.best.insert(place, logprob);
            }
        }
    }

    /// The scored values, best first.
    fn ranking(&self) -> Vec<LeafId> {
        let mut ranking: Vec<u32> = (0..self.logprobs.len() as u32).collect();
        let score = |leaf: u32| self.logprobs[leaf as usize];
        ranking.retain(|&leaf| !score(leaf).is_nan());
        ranking.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
        ranking.into_iter().map(LeafId::new).collect()
    }

    pub(super) fn into_choice(self, most: usize, open: f64, stats: ChooseStats) -> Choice {
        let mut ranking = self.ranking();
        ranking.truncate(most);
        let mass_low: f64 = self.logprobs.iter().filter(|p| !p.is_nan()).map(|p| p.exp()).sum();
        let stats = ChooseStats { rows: self.rows, ..stats };
        // Rounding must not make probabilities of more than all.
        let mass_low = mass_low.min(1.0);
        Choice { logprobs: self.logprobs, ranking, mass_low, mass_high: (mass_low + open).min(1.0), stats }
    }
}

/// Whether a value's probability depends on what follows this position.
fn needs_row(trie: &Trie, ends: &[TokenId], at: Cursor) -> bool {
    !ends.is_empty() || !trie.children(at).is_empty()
}

/// The positions below the root that need a row, depth first, each with the token that leads to it.
pub(super) fn positions<'s>(trie: &'s Trie, ends: &'s [TokenId]) -> impl Iterator<Item = (TokenId, Cursor)> + 's {
    fn below(trie: &Trie, at: Cursor) -> impl Iterator<Item = (TokenId, Cursor)> {
        trie.children(at).iter().rev().filter_map(move |&token| Some((token, trie.step(at, token)?)))
    }
    let mut stack: Vec<(TokenId, Cursor)> = below(trie, Cursor::ROOT).collect();
    std::iter::from_fn(move || {
        loop {
            let (token, at) = stack.pop()?;
            if needs_row(trie, ends, at) {
                stack.extend(below(trie, at));
                return Some((token, at));
            }
        }
    })
}
