//! Rows of logits: masked in place, or chosen from.

use super::rows::{Rows, RowsMut};
use super::threads::{LOOK, map_parts, worthwhile};
use super::{Batch, BatchError, Row, Worker, shares};
use crate::machine::span::SpanRules;
use crate::rows::draw::Draw;
use crate::rows::element::Logit;
use crate::rows::row;
use crate::set::ids::TokenId;
use std::sync::Arc;

impl Batch {
    /// Checks that these are rows of logits for this batch.
    pub(super) fn check_logits(&self, count: usize, width: usize) -> Result<(), BatchError> {
        self.count("rows of logits", count)?;
        let n_vocab = self.n_vocab;
        if width < n_vocab {
            return Err(BatchError::Width { what: "rows of logits", got: width, need: n_vocab, n_vocab });
        }
        Ok(())
    }

    /// Sets the logit of every token that is not allowed to −inf; other logits keep their exact bits. Entries beyond
    /// the vocabulary are never allowed, not even in free rows. `O(rows · V)`: [`Batch::select`] needs no mask.
    ///
    /// # Errors
    /// Another number of rows, rows narrower than the vocabulary, or a damaged set; nothing was written then.
    pub fn apply<L: Logit>(&mut self, logits: RowsMut<'_, L>) -> Result<(), BatchError> {
        self.check_logits(logits.count(), logits.width())?;
        self.survey()?;
        let count = worthwhile(size_of::<L>() * logits.width() * self.len());
        let (rules, n_vocab) = (&self.rules, self.n_vocab);
        let parts = shares(&self.rows, logits, self.spare.workers(count));
        let starved = map_parts(parts, |(rows, logits, worker)| mask_rows(rules, n_vocab, rows, logits, worker));
        self.starved += starved.into_iter().sum::<u64>();
        Ok(())
    }

    /// Chooses the token of each row without accepting it: the best allowed token, or a drawn one. `O(k)` a row in the
    /// number of allowed tokens; `O(V)` where every token is allowed.
    ///
    /// # Errors
    /// Another number of rows or of places for the tokens, rows narrower than the vocabulary, or a damaged set; then
    /// nothing was written or drawn.
    pub fn select<L: Logit>(&mut self, logits: Rows<'_, L>, chosen: &mut [TokenId]) -> Result<(), BatchError> {
        self.check_logits(logits.count(), logits.width())?;
        self.count("places for tokens", chosen.len())?;
        let count = worthwhile(self.survey()?.saturating_mul(LOOK));
        let size = self.rows.len().div_ceil(count).max(1);
        let (rules, settings, n_vocab) = (&self.rules, &self.options.draw, self.n_vocab);
        let mut draws = self.draws.chunks_mut(size);
        let parts = self.rows.chunks(size).zip(chosen.chunks_mut(size)).zip(self.spare.workers(count)).enumerate();
        let parts = parts.map(|(part, ((rows, chosen), worker))| {
            let draws = draws.next().unwrap_or_default();
            (part * size, rows, chosen, draws, worker)
        });
        let starved = map_parts(parts.collect(), |(first, rows, chosen, draws, worker)| {
            let mut draws: std::slice::IterMut<'_, Draw> = draws.iter_mut();
            let mut starved = 0;
            for (index, (row, chosen)) in rows.iter().zip(chosen).enumerate() {
                let allowed = rules[row.rules as usize].allowed(row.walked.state(), &mut worker.scratch);
                let logits = &logits.row(first + index)[..n_vocab];
                let logits = L::widen_allowed(logits, allowed, &mut worker.wide);
                // Something may come: that was looked at first.
                if let Some(best) = row::choose(logits, allowed, draws.next(), settings, row.counted_tokens(settings)) {
                    *chosen = best.token;
                    starved += u64::from(best.starved);
                }
            }
            starved
        });
        self.starved += starved.into_iter().sum::<u64>();
        Ok(())
    }
}

fn mask_rows<L: Logit>(
    rules: &[Arc<SpanRules>],
    n_vocab: usize,
    rows: &[Row],
    logits: RowsMut<'_, L>,
    worker: &mut Worker,
) -> u64 {
    let (mut starved, mut saved) = (0, Vec::new());
    for (row, logits) in rows.iter().zip(logits.into_iter()) {
        let allowed = rules[row.rules as usize].allowed(row.walked.state(), &mut worker.scratch);
        starved += u64::from(row::mask(logits, allowed, &mut saved).unwrap_or_default());
        // A free row is left alone up to here.
        logits[n_vocab..].fill(L::NEG_INFINITY);
    }
    starved
}
