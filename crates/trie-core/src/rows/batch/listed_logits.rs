//! Logits of the allowed tokens only, for rows in memory that this process cannot read, such as that of a device.

use super::continuations::{Ends, ScoreMode};
use super::top::{Best, Child, Search, check_groups, keep_best};
use super::{Batch, BatchError, Row, Worker};
use crate::machine::constraint::Scratch;
use crate::machine::span::Allowed;
use crate::rows::row;
use crate::set::ids::TokenId;

impl Batch {
    /// Returns whether each row is unconstrained: the list of such a row does not name all its tokens.
    pub fn unbound(&self) -> Vec<bool> {
        let mut scratch = Scratch::default();
        let mut unbound = |row: &Row| {
            let allowed = self.rules_of(row).allowed(row.walked.state(), &mut scratch);
            matches!(allowed, Allowed::All | Allowed::Open { .. })
        };
        self.rows.iter().map(&mut unbound).collect()
    }

    /// [`Batch::select`] for logits that are listed in the order of [`Batch::children`]. Returns `None` for rows in
    /// which every token is allowed; these use up no draw.
    ///
    /// # Errors
    /// Not as many logits as tokens, or a damaged set; then nothing was drawn.
    pub fn select_listed(&mut self, listed: &[f32]) -> Result<Vec<Option<TokenId>>, BatchError> {
        self.check_listed(listed.len())?;
        let (rules, settings, n_vocab) = (&self.rules, &self.options.draw, self.n_vocab);
        let Worker { scratch, wide, .. } = &mut self.spare.workers(1)[0];
        let (mut listed, mut draws, mut chosen) = (listed.iter(), self.draws.iter_mut(), Vec::new());
        for row in &self.rows {
            let allowed = rules[row.rules as usize].allowed(row.walked.state(), scratch);
            write_allowed(wide, n_vocab, allowed, &mut listed);
            let draw = draws.next();
            chosen.push(match allowed {
                Allowed::Only { .. } => {
                    row::choose(wide, allowed, draw, settings, row.counted_tokens(settings)).map(|best| {
                        self.starved += u64::from(best.starved);
                        best.token
                    })
                }
                _ => None,
            });
        }
        Ok(chosen)
    }

    /// [`Batch::top_children_of`] for scores that are listed in the order of [`Batch::children`] and used unchanged.
    ///
    /// # Errors
    /// As [`Batch::top_children_of`], or another number of scores than of tokens.
    pub fn top_listed(
        &mut self,
        listed: &[f32],
        k: usize,
        scores: Option<&[f64]>,
        groups: &[usize],
    ) -> Result<Vec<Child>, BatchError> {
        self.check_listed(listed.len())?;
        check_groups(groups, self.len())?;
        self.check_scores(scores)?;
        let (rules, n_vocab) = (&self.rules, self.n_vocab);
        let worker = &mut self.spare.workers(1)[0];
        let (mut listed, mut wide, mut found) = (listed.iter(), std::mem::take(&mut worker.wide), Vec::new());
        let mut search = Search { rules, mode: ScoreMode::AsGiven, worker, best: Best::new(k), starved: 0 };
        let mut first = 0;
        for &end in groups {
            for row in first..end {
                let of = &self.rows[row];
                let allowed = rules[of.rules as usize].allowed(of.walked.state(), &mut search.worker.scratch);
                write_allowed(&mut wide, n_vocab, allowed, &mut listed);
                search.offer(row, of, &wide, scores.map_or(0.0, |scores| scores[row]), Ends::AsTokens);
            }
            let begin = found.len();
            found.extend(search.best.take());
            keep_best(&mut found, begin, k);
            first = end;
        }
        self.starved += search.starved;
        self.spare.workers(1)[0].wide = wide;
        Ok(found)
    }

    fn check_listed(&mut self, got: usize) -> Result<(), BatchError> {
        self.survey()?;
        let mut scratch = Scratch::default();
        let count = |row: &Row| self.rules_of(row).allowed(row.walked.state(), &mut scratch).iter().count();
        let rows: usize = self.rows.iter().map(count).sum();
        if got == rows { Ok(()) } else { Err(BatchError::Listed { got, tokens: rows }) }
    }
}

/// Writes the listed entries of a row to their positions in a whole row.
fn write_allowed(wide: &mut Vec<f32>, n_vocab: usize, allowed: Allowed<'_>, listed: &mut std::slice::Iter<'_, f32>) {
    wide.resize(n_vocab, 0.0);
    allowed.iter().zip(listed).for_each(|(token, &logit)| wide[token.index()] = logit);
}
