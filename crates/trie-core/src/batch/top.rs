//! The best continuations of all rows together: one step of a beam search.

use super::rows::Rows;
use super::threads::{LOOK, each, worthwhile};
use super::{Batch, BatchError, Row, Worker};
use crate::constraint::Tokens;
use crate::ids::TokenId;
use crate::logits::{greater, is_usable};
use crate::softmax::{log_probability, log_sum_exp};
use crate::span::{Allowed, SpanRules, Status};
use std::cmp::Ordering;
use std::sync::Arc;

/// How a continuation is scored. Each is added to the score of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ScoreMode {
    /// The log of its probability under the whole vocabulary: exact, and `O(V)` a row. What a row has beyond the
    /// vocabulary does not count.
    #[default]
    Model,
    /// The log of its share among the tokens that may come. `O(k)` a row.
    Renormalised,
    /// The logit itself, for rows of log-probabilities. `O(k)` a row.
    AsGiven,
}

/// A continuation of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Child {
    /// The row.
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
    /// The `k` best continuations of all rows, best first, ties by row and then by token: what the `k` best of the
    /// masked rows are, without a mask. Fewer where there are fewer, never a filler.
    ///
    /// `scores` are those of the rows, 0 without. A row with −inf has no continuations. Neither has a finished row, or
    /// one in which everything may come, beyond the tokens that go on to a longer value. A token that the model calls
    /// impossible (−inf or NaN) is none either; only where all that may come in a row is impossible, its lowest token
    /// stands for them with −inf.
    ///
    /// # Errors
    /// Another number of rows or scores, rows narrower than the vocabulary, a score that is no number, or a damaged
    /// set.
    pub fn top_children(
        &mut self,
        logits: Rows<'_, f32>,
        k: usize,
        scores: Option<&[f64]>,
        mode: ScoreMode,
    ) -> Result<Vec<Child>, BatchError> {
        self.top_children_of(logits, k, scores, mode, &[self.len()])
    }

    /// [`Batch::top_children`] of each group of rows: `k` for each, group after group. `ends` says where each group
    /// ends; the last at the last row.
    ///
    /// # Errors
    /// As there, or ends that do not ascend up to the number of rows.
    pub fn top_children_of(
        &mut self,
        logits: Rows<'_, f32>,
        k: usize,
        scores: Option<&[f64]>,
        mode: ScoreMode,
        ends: &[usize],
    ) -> Result<Vec<Child>, BatchError> {
        self.check_logits(logits.count(), logits.width())?;
        if let Some(scores) = scores {
            self.count("scores", scores.len())?;
            let odd = scores.iter().position(|&score| score.is_nan() || score == f64::INFINITY);
            if let Some(row) = odd {
                return Err(BatchError::Score { row, score: scores[row] });
            }
        }
        check_groups(ends, self.len())?;
        let looked_at = self.survey()?;
        let whole_rows = if mode == ScoreMode::Model { self.n_vocab * self.len() } else { 0 };
        let count = worthwhile(looked_at.saturating_mul(LOOK).saturating_add(whole_rows.saturating_mul(4)));
        let size = self.rows.len().div_ceil(count).max(1);
        let parts = self.rows.chunks(size).zip(self.spare.workers(count)).enumerate().collect();
        let (rules, n_vocab) = (&self.rules, self.n_vocab);
        let found = each(parts, |(part, (rows, worker)): (usize, (&[Row], &mut Worker))| {
            let mut search = Search { rules, mode, worker, best: Best::new(k), starved: 0 };
            let mut groups = Vec::new();
            let mut row = part * size;
            let end = row + rows.len();
            for (group, &group_end) in ends.iter().enumerate().skip(ends.partition_point(|&end| end <= row)) {
                while row < end.min(group_end) {
                    let score = scores.map_or(0.0, |scores| scores[row]);
                    search.offer(row, &rows[row - part * size], &logits.row(row)[..n_vocab], score);
                    row += 1;
                }
                groups.push((group, search.best.take()));
                if row == end {
                    break;
                }
            }
            (groups, search.starved)
        });
        let mut children: Vec<Child> = Vec::new();
        let (mut group, mut first) = (0, 0);
        for (groups, starved) in found {
            self.starved += starved;
            for (of, best) in groups {
                if of != group {
                    keep_best(&mut children, first, k);
                    (group, first) = (of, children.len());
                }
                children.extend(best);
            }
        }
        keep_best(&mut children, first, k);
        Ok(children)
    }
}

fn check_groups(ends: &[usize], rows: usize) -> Result<(), BatchError> {
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
fn keep_best(children: &mut Vec<Child>, first: usize, k: usize) {
    children[first..].sort_unstable_by(Child::order);
    children.truncate(first.saturating_add(k));
}

/// Looks at rows, one after the other.
struct Search<'s> {
    rules: &'s [Arc<SpanRules>],
    mode: ScoreMode,
    worker: &'s mut Worker,
    best: Best,
    starved: u64,
}

impl Search<'_> {
    /// Offers the continuations of a row; `logits` are as many as the vocabulary has tokens.
    fn offer(&mut self, parent: usize, row: &Row, logits: &[f32], score: f64) {
        let state = row.walked.state();
        if score == f64::NEG_INFINITY || state.status() == Status::Complete {
            return;
        }
        let Worker { scratch, ids, logits: values } = &mut *self.worker;
        let allowed = self.rules[row.rules as usize].allowed(state, scratch);
        let tokens: &[TokenId] = match allowed {
            Allowed::Only { tokens: Tokens::Ids(tokens), ends: [] } | Allowed::Open { tokens: Tokens::Ids(tokens) } => {
                tokens
            }
            _ => {
                ids.clear();
                ids.extend(allowed.iter());
                ids
            }
        };
        let Some(&lowest) = tokens.first() else { return };
        values.clear();
        values.extend(tokens.iter().map(|token| logits[token.index()]));
        if !is_usable(values.iter().copied().fold(f32::NEG_INFINITY, greater)) {
            self.starved += 1;
            return self.best.push(Child { parent, token: lowest, score: f64::NEG_INFINITY });
        }
        let log_sum = match self.mode {
            ScoreMode::Model => Some(log_sum_exp(logits)),
            ScoreMode::Renormalised => Some(log_sum_exp(values)),
            ScoreMode::AsGiven => None,
        };
        // Most are far below the bar: one comparison, with room for rounding, spares the rest.
        let base = score - log_sum.unwrap_or_default();
        let room = 1e-9 * (1.0 + score.abs() + log_sum.unwrap_or_default().abs() + self.best.bar.abs());
        let low = self.best.bar - room - base;
        let low = if low.is_nan() { f64::NEG_INFINITY } else { low };
        for (&token, &logit) in tokens.iter().zip(&*values) {
            if is_usable(logit) && f64::from(logit) >= low {
                let adds = log_sum.map_or(f64::from(logit), |log_sum| log_probability(logit, log_sum));
                if adds > f64::NEG_INFINITY {
                    self.best.push(Child { parent, token, score: score + adds });
                }
            }
        }
    }
}

/// The best so far: at least `k` of them, once there are as many.
struct Best {
    k: usize,
    children: Vec<Child>,
    /// The score of the worst of `k`: what is below it need not be kept.
    bar: f64,
}

impl Best {
    fn new(k: usize) -> Self {
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

    /// What was kept, for the next group to begin again.
    fn take(&mut self) -> Vec<Child> {
        self.prune();
        self.bar = f64::NEG_INFINITY;
        std::mem::take(&mut self.children)
    }
}
