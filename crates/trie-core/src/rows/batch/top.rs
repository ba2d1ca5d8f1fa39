//! The best continuations of all rows together: one step of a beam search.

use super::continuations::{Continuations, Ends, ScoreMode};
use super::rows::Rows;
use super::threads::{LOOK, map_parts, worthwhile};
use super::{Batch, BatchError, Row, Worker};
use crate::machine::span::{SpanRules, Status};
use crate::rows::element::Logit;
use crate::rows::logits::{greater, is_usable};
use crate::set::ids::TokenId;
use std::cmp::Ordering;
use std::sync::Arc;

/// A continuation of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Child {
    /// Number of the parent row.
    pub parent: usize,
    /// The token that follows it.
    pub token: TokenId,
    /// The score of the row with what the token adds.
    pub score: f64,
}

impl Child {
    /// Best first; ties by row, then by token.
    fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score.partial_cmp(&self.score).unwrap_or(Ordering::Equal);
        by_score.then_with(|| (self.parent, self.token).cmp(&(other.parent, other.token)))
    }
}

impl Batch {
    /// The `k` best continuations of all rows, best first, ties by row and then by token: the same as the `k` best
    /// entries of the masked rows, without computing a mask. There may be fewer than `k`, but never a filler.
    ///
    /// `scores` are the scores of the rows; without them, all are 0. A row with the score −inf has no continuations,
    /// nor has a finished row. A row in which every token is allowed has only the tokens that continue to a longer
    /// value. A token that the model calls impossible (−inf or NaN) does not count as a continuation either. If all
    /// allowed tokens of a row are impossible, its lowest allowed token stands for them, with −inf.
    ///
    /// # Errors
    /// Another number of rows or scores, rows narrower than the vocabulary, a score that is not a number, or a damaged
    /// set.
    pub fn top_children<L: Logit>(
        &mut self,
        logits: Rows<'_, L>,
        k: usize,
        scores: Option<&[f64]>,
        mode: ScoreMode,
    ) -> Result<Vec<Child>, BatchError> {
        self.top_children_of(logits, k, scores, mode, &[self.len()])
    }

    /// [`Batch::top_children`] for each group of rows: `k` continuations for each, group after group. `ends` holds the
    /// end of each group; the last end is the number of rows.
    ///
    /// # Errors
    /// As [`Batch::top_children`], or ends that do not ascend up to the number of rows.
    pub fn top_children_of<L: Logit>(
        &mut self,
        logits: Rows<'_, L>,
        k: usize,
        scores: Option<&[f64]>,
        mode: ScoreMode,
        ends: &[usize],
    ) -> Result<Vec<Child>, BatchError> {
        let found = self.expand(logits, k, scores, mode, ends, Ends::AsTokens)?;
        Ok(found.children)
    }

    /// [`Batch::top_children_of`], with the ends of values scored as `ends` says.
    pub(super) fn expand<L: Logit>(
        &mut self,
        logits: Rows<'_, L>,
        k: usize,
        scores: Option<&[f64]>,
        mode: ScoreMode,
        groups: &[usize],
        ends: Ends,
    ) -> Result<Expansion, BatchError> {
        self.check_logits(logits.count(), logits.width())?;
        self.check_scores(scores)?;
        check_groups(groups, self.len())?;
        let looked_at = self.survey()?;
        let whole_rows = if mode == ScoreMode::Model { self.n_vocab * self.len() } else { 0 };
        let count = worthwhile(looked_at.saturating_mul(LOOK).saturating_add(whole_rows.saturating_mul(4)));
        let size = self.rows.len().div_ceil(count).max(1);
        let parts = self.rows.chunks(size).zip(self.spare.workers(count)).enumerate().collect();
        let (rules, n_vocab) = (&self.rules, self.n_vocab);
        let found = map_parts(parts, |(part, (rows, worker)): (usize, (&[Row], &mut Worker))| {
            let mut search = Search { rules, mode, worker, best: Best::new(k), starved: 0 };
            let (mut kept, mut stops) = (Vec::new(), Vec::new());
            let mut row = part * size;
            let end = row + rows.len();
            for (group, &group_end) in groups.iter().enumerate().skip(groups.partition_point(|&end| end <= row)) {
                while row < end.min(group_end) {
                    let score = scores.map_or(0.0, |scores| scores[row]);
                    let stop = search.offer(row, &rows[row - part * size], &logits.row(row)[..n_vocab], score, ends);
                    stops.extend(stop.map(|stop| (row, stop)));
                    row += 1;
                }
                kept.push((group, search.best.take()));
                if row == end {
                    break;
                }
            }
            (kept, stops, search.starved)
        });
        let mut expanded = Expansion::default();
        let (mut group, mut first) = (0, 0);
        for (groups, stops, starved) in found {
            self.starved += starved;
            expanded.stops.extend(stops);
            let children = &mut expanded.children;
            for (of, best) in groups {
                if of != group {
                    keep_best(children, first, k);
                    (group, first) = (of, children.len());
                }
                children.extend(best);
            }
        }
        keep_best(&mut expanded.children, first, k);
        Ok(expanded)
    }
}

impl Batch {
    /// Checks that these are scores of the rows.
    pub(super) fn check_scores(&self, scores: Option<&[f64]>) -> Result<(), BatchError> {
        let Some(scores) = scores else { return Ok(()) };
        self.count("scores", scores.len())?;
        match scores.iter().position(|&score| score.is_nan() || score == f64::INFINITY) {
            Some(row) => Err(BatchError::Score { row, score: scores[row] }),
            None => Ok(()),
        }
    }
}

/// Continuations of rows, and the scores of the values that end in a row.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    pub(super) children: Vec<Child>,
    pub(super) stops: Vec<(usize, f64)>,
}

pub(super) fn check_groups(ends: &[usize], rows: usize) -> Result<(), BatchError> {
    let mut before = 0;
    for (group, &end) in ends.iter().enumerate() {
        if end < before || end > rows {
            return Err(BatchError::Groups { group, end, before, rows });
        }
        before = end;
    }
    if before == rows { Ok(()) } else { Err(BatchError::Groups { group: ends.len(), end: before, before, rows }) }
}

/// Sorts what begins at `first` and keeps the `k` best of it.
pub(super) fn keep_best(children: &mut Vec<Child>, first: usize, k: usize) {
    children[first..].sort_unstable_by(Child::order);
    children.truncate(first.saturating_add(k));
}

/// Looks at rows, one after the other.
pub(super) struct Search<'s> {
    pub(super) rules: &'s [Arc<SpanRules>],
    pub(super) mode: ScoreMode,
    pub(super) worker: &'s mut Worker,
    pub(super) best: Best,
    pub(super) starved: u64,
}

impl Search<'_> {
    /// Offers the continuations of a row. `logits` has one entry for each token of the vocabulary. Returns the score
    /// that ending adds, if ends are scored apart.
    pub(super) fn offer<L: Logit>(
        &mut self,
        parent: usize,
        row: &Row,
        logits: &[L],
        score: f64,
        ends: Ends,
    ) -> Option<f64> {
        let state = row.walked.state();
        if score == f64::NEG_INFINITY || state.status() == Status::Complete {
            return None;
        }
        let Worker { scratch, ids, logits: values, wide } = &mut *self.worker;
        let allowed = self.rules[row.rules as usize].allowed(state, scratch);
        let looked = Continuations::from_row(allowed, logits, self.mode, ends, ids, values, wide)?;
        let usable = is_usable(looked.values.iter().copied().fold(f32::NEG_INFINITY, greater));
        if let (false, Some(&lowest), Ends::AsTokens) = (usable, looked.tokens.first(), ends) {
            self.starved += 1;
            self.best.push(Child { parent, token: lowest, score: f64::NEG_INFINITY });
            return None;
        }
        // Most are far below the bar: one comparison, with room for rounding, spares the rest.
        let log_sum = looked.log_sum.unwrap_or_default();
        let base = score - log_sum;
        let room = 1e-9 * (1.0 + score.abs() + log_sum.abs() + self.best.bar.abs());
        let low = self.best.bar - room - base;
        let low = if low.is_nan() { f64::NEG_INFINITY } else { low };
        // What a weight adds is not in the logit.
        let low = if looked.weights.is_empty() { low } else { f64::NEG_INFINITY };
        for (nth, (&token, &logit)) in looked.tokens.iter().zip(looked.values).enumerate() {
            if is_usable(logit) && f64::from(logit) >= low {
                let adds = looked.adds(nth);
                if adds > f64::NEG_INFINITY {
                    self.best.push(Child { parent, token, score: score + adds });
                }
            }
        }
        looked.stop.map(|stop| score + stop)
    }
}

/// The best continuations so far: at least `k`, once there are that many.
pub(super) struct Best {
    k: usize,
    children: Vec<Child>,
    /// The score of the worst of the `k`: continuations below it need not be kept.
    bar: f64,
}

impl Best {
    pub(super) fn new(k: usize) -> Self {
        Self { k, children: Vec::new(), bar: f64::NEG_INFINITY }
    }

    #[inline]
    fn push(&mut self, child: Child) {
        if child.score < self.bar {
            return;
        }
        self.children.push(child);
        if self.children.len() >= self.k.saturating_mul(2).max(64) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if let Some(last) = self.k.checked_sub(1).filter(|&last| last < self.children.len()) {
            self.bar = self.children.select_nth_unstable_by(last, Child::order).1.score;
        }
        self.children.truncate(self.k);
    }

    /// Takes the kept continuations and clears the heap for the next group.
    pub(super) fn take(&mut self) -> Vec<Child> {
        self.prune();
        self.bar = f64::NEG_INFINITY;
        std::mem::take(&mut self.children)
    }
}
