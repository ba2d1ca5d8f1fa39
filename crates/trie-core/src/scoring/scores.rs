//! Bounds on the probabilities of a set's values while it is scored.

use super::choice::{Choice, ChooseStats};
use super::error::{DeadEnd, ScoringError};
use super::mass::RowMass;
use super::values::{TrieSpanState, Values, needs_row};
use crate::machine::constraint::{Scratch, Step};
use crate::rows::softmax::log_add;
use crate::set::ids::{LeafId, TokenId};
use crate::set::trie::Cursor;
use std::cmp::Reverse;
use std::sync::Arc;

/// A position that was not read: any value below it may still get the probability that is left there.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnreadPosition {
    pub(super) at: Cursor,
    pub(super) logprob: f64,
}

/// The values scored so far.
#[derive(Debug)]
pub(super) struct Scores {
    values: Arc<Values>,
    logprobs: Vec<f64>,
    /// The best `top` of them, falling.
    best: Vec<f64>,
    top: usize,
    scratch: Vec<f32>,
    certain: Vec<f32>,
    rows: usize,
}

impl Scores {
    /// `top` is how many of the best are looked for; 0 for all.
    pub(super) fn new(values: Arc<Values>, top: usize) -> Self {
        let logprobs = vec![f64::NAN; values.trie().len()];
        Self { values, logprobs, best: Vec::new(), top, scratch: Vec::new(), certain: Vec::new(), rows: 0 }
    }

    /// Rows read so far.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Reads the row after a position of this log-probability. `open` gets each following token that needs a row, its
    /// position, and its log-probability. The prefix of the row is not known here: see [`NoLogits`].
    pub(super) fn expand(
        &mut self,
        at: TrieSpanState,
        logprob: f64,
        row: &[f32],
        mut open: impl FnMut(TokenId, TrieSpanState, f64),
    ) -> Result<(), ScoringError> {
        self.rows += 1;
        let values = Arc::clone(&self.values);
        let mut certain = std::mem::take(&mut self.certain);
        let mass = RowMass::read_after(logprob, row, &mut certain)?;
        let dead_end = DeadEnd { depth: at.depth() };
        let mut scratch = Scratch::default();
        let ways = mass.ways(&values.rules, &at, &mut scratch, &mut self.scratch).ok_or(dead_end)?;
        if let Some(stops) = ways.stops {
            self.leaf(at, logprob + stops)?;
        }
        for child in ways.tokens(row.len()) {
            let Step { state: below, .. } = values.rules.step(&at, child).ok_or(dead_end)?;
            let logprob = logprob + mass.logprob(child);
            if needs_row(&below) { open(child, below, logprob) } else { self.leaf(below, logprob)? }
        }
        self.certain = certain;
        Ok(())
    }

    fn leaf(&mut self, at: TrieSpanState, logprob: f64) -> Result<(), DeadEnd> {
        // The machine says that one ends here: only its number is looked up.
        let leaf = self.values.trie().store().leaves.leaf(at.position().cursor().node());
        let leaf = leaf.ok_or(DeadEnd { depth: at.depth() })?;
        let known = self.logprobs[leaf.index()];
        // Of several sequences of one value, any may be the output.
        self.logprobs[leaf.index()] = if known.is_nan() { logprob } else { log_add(known, logprob) };
        let place = self.best.partition_point(|&better| better >= logprob);
        if place < self.top {
            self.best.truncate(self.top - 1);
            self.best.insert(place, logprob);
        }
        Ok(())
    }

    /// The log-probability that a position needs for the search for the best values to continue there.
    pub(super) fn threshold(&self) -> f64 {
        let best = self.best.get(self.top.wrapping_sub(1)).copied();
        // Sequences of one value add up: none is too improbable to matter.
        best.filter(|_| self.values.trie().is_tree()).unwrap_or(f64::NEG_INFINITY)
    }

    /// Upper bounds on the log-probability of each value, given the positions that were not read.
    ///
    /// The leaves below two positions are nested or disjoint. So the open positions above a leaf form a stack, and
    /// their probabilities are only added up: the difference of large sums would lose a small one.
    fn highest(&self, left: &[UnreadPosition]) -> Vec<f64> {
        let mut open: Vec<(u32, Reverse<u32>, f64)> = left
            .iter()
            .map(|left| (self.values.trie().leaves_below(left.at), left.logprob))
            .map(|(below, logprob)| (below.start, Reverse(below.end), logprob))
            .collect();
        open.sort_unstable_by_key(|&(start, end, _)| (start, end));
        let mut open = open.into_iter().peekable();
        let mut above: Vec<(u32, f64)> = Vec::new();
        let bound = |(leaf, &known): (u32, &f64)| {
            while above.last().is_some_and(|&(end, _)| end <= leaf) {
                above.pop();
            }
            while let Some((_, Reverse(end), logprob)) = open.next_if(|&(start, ..)| start <= leaf) {
                if end > leaf {
                    above.push((end, log_add(above.last().map_or(f64::NEG_INFINITY, |&(_, sum)| sum), logprob)));
                }
            }
            let known = if known.is_nan() { f64::NEG_INFINITY } else { known };
            log_add(known, above.last().map_or(f64::NEG_INFINITY, |&(_, sum)| sum)).min(0.0)
        };
        (0..).zip(&self.logprobs).map(bound).collect()
    }

    /// Returns whether the best `top` values, or all, are known as well as is possible with these positions not read.
    pub(super) fn is_settled(&self, open: &[UnreadPosition]) -> bool {
        /// Share of the mass that single precision does not tell from none.
        const NOTHING: f64 = f32::EPSILON as f64;
        let left = open.iter().map(|open| open.logprob).fold(f64::NEG_INFINITY, log_add);
        let found = self.logprobs.iter().copied().filter(|known| !known.is_nan()).fold(f64::NEG_INFINITY, log_add);
        left <= found + NOTHING.ln() || (self.top > 0 && self.ranks(self.top, &self.highest(open)))
    }

    /// Returns whether no other value can be more probable than the first `top`.
    fn ranks(&self, top: usize, highest: &[f64]) -> bool {
        let ranking = self.ranking();
        let Some(lowest) = ranking.get(top.min(self.logprobs.len()) - 1) else { return false };
        let least = self.logprobs[lowest.index()];
        let mut is_first = vec![false; self.logprobs.len()];
        ranking.iter().take(top).for_each(|leaf| is_first[leaf.index()] = true);
        highest.iter().zip(is_first).all(|(&highest, is_first)| is_first || highest <= least)
    }

    /// The scored values, best first.
    fn ranking(&self) -> Vec<LeafId> {
        let mut ranking: Vec<u32> = (0..self.logprobs.len() as u32).collect();
        let score = |leaf: u32| self.logprobs[leaf as usize];
        ranking.retain(|&leaf| !score(leaf).is_nan());
        ranking.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
        ranking.into_iter().map(LeafId::new).collect()
    }

    /// Builds the result with these positions not read; on request with bounds for the values that were not scored.
    pub(super) fn into_choice(
        mut self,
        most: usize,
        open: &[UnreadPosition],
        bounds: bool,
        stats: ChooseStats,
    ) -> Choice {
        let logprobs_high = (bounds && !open.is_empty()).then(|| self.highest(open));
        if bounds {
            // Nothing is known of them but an upper bound.
            self.logprobs.iter_mut().filter(|known| known.is_nan()).for_each(|known| *known = f64::NEG_INFINITY);
        }
        let mut ranking = self.ranking();
        ranking.truncate(most);
        let is_certain = if let Some(highest) = &logprobs_high {
            self.ranks(1, highest)
        } else {
            let least = ranking.first().map_or(f64::NEG_INFINITY, |best| self.logprobs[best.index()]);
            open.iter().all(|open| open.logprob <= least)
        };
        let mass_low = self.logprobs.iter().filter(|p| !p.is_nan()).fold(0.0, |sum, p| sum + p.exp());
        let left = open.iter().fold(0.0, |sum, open| sum + open.logprob.exp());
        let stats = ChooseStats { rows: self.rows, healed_bytes: self.values.trie().heal_bytes(), ..stats };
        // Rounding must not make probabilities of more than all.
        let mass_low = f64::min(mass_low, 1.0);
        let mass_high = (mass_low + left).min(1.0);
        Choice { logprobs: self.logprobs, logprobs_high, ranking, is_certain, mass_low, mass_high, stats }
    }
}
