//! Moves of rows: tokens, new parents, and rollback. All rows or none.

use super::{Batch, BatchError, Row};
use crate::machine::span::SpanError;
use crate::rows::draw::Draw;
use crate::set::ids::TokenId;

impl Batch {
    /// Accepts a token in each row: in all of them or in none.
    ///
    /// # Errors
    /// Not one token a row, or one that its row does not allow; the error names row and token.
    pub fn accept(&mut self, tokens: &[TokenId]) -> Result<(), BatchError> {
        self.count("tokens", tokens.len())?;
        let before = &mut self.spare.states;
        before.truncate(tokens.len());
        for (index, (row, &token)) in self.rows.iter_mut().zip(tokens).enumerate() {
            let rules = &*self.rules[row.rules as usize];
            let constraint = rules.constraint(row.walked.state());
            match before.get_mut(index) {
                Some(before) => before.copy_from(row.walked.state()),
                None => before.push(row.walked.state().clone()),
            }
            if row.walked.advance(rules, constraint, token).is_none() {
                let source = row.walked.refusal(rules, constraint, token);
                self.rows.iter_mut().zip(before.drain(..=index)).for_each(|(row, before)| row.walked.restore(before));
                return Err(BatchError::Refused { row: index, source });
            }
        }
        if self.remembers {
            let written =
                self.rows.iter_mut().zip(tokens).filter_map(|(row, &token)| row.written.as_mut().zip(Some(token)));
            written.for_each(|(written, token)| written.push(token));
        }
        Ok(())
    }

    /// Accepts tokens in one row: all of them or none.
    ///
    /// # Errors
    /// No such row, or a token that it does not allow.
    pub fn accept_in(&mut self, row: usize, tokens: &[TokenId]) -> Result<(), BatchError> {
        self.row(row)?;
        let Row { walked, rules, written, .. } = &mut self.rows[row];
        let rules = &*self.rules[*rules as usize];
        let constraint = rules.constraint(walked.state());
        let before = walked.state().clone();
        for &token in tokens {
            if walked.advance(rules, constraint, token).is_none() {
                let source = walked.refusal(rules, constraint, token);
                walked.restore(before);
                return Err(BatchError::Refused { row, source });
            }
        }
        written.as_mut().into_iter().for_each(|written| written.extend_from_slice(tokens));
        Ok(())
    }

    /// Replaces row `i` by a copy of row `parents[i]`. A parent may be named several times or not at all, and the
    /// number of rows may change.
    ///
    /// Draws belong to places, so two copies of a row do not draw alike.
    ///
    /// # Errors
    /// A parent that is not a row.
    pub fn reorder(&mut self, parents: &[usize]) -> Result<(), BatchError> {
        let rows = self.rows.len();
        if let Some(&row) = parents.iter().find(|&&parent| parent >= rows) {
            return Err(BatchError::NoSuchRow { what: "parent", row, rows });
        }
        let next = &mut self.spare.rows;
        // Those of the reorder before are written over.
        next.truncate(parents.len());
        for (row, &parent) in next.iter_mut().zip(parents) {
            let parent = &self.rows[parent];
            row.walked.copy_from(&parent.walked);
            row.rules = parent.rules;
            row.written.clone_from(&parent.written);
            if row.items.is_some() || parent.items.is_some() {
                row.items.clone_from(&parent.items);
            }
        }
        next.extend(parents[next.len()..].iter().map(|&parent| self.rows[parent].clone()));
        std::mem::swap(&mut self.rows, next);
        self.seed_places();
        Ok(())
    }

    /// Takes back the last `n` tokens of each row: in all of them or in none.
    ///
    /// # Errors
    /// More tokens than one of the rows has accepted since its item began.
    pub fn rollback(&mut self, n: usize) -> Result<(), BatchError> {
        let can = |(row, of): (usize, &Row)| of.walked.can_roll_back(n).map_err(|source| refusal(row, source));
        self.rows.iter().enumerate().try_for_each(can)?;
        (0..self.rows.len()).try_for_each(|row| self.rollback_in(row, n))
    }

    /// Takes back the last `n` tokens of one row.
    ///
    /// # Errors
    /// No such row, or more tokens than it has accepted.
    pub fn rollback_in(&mut self, row: usize, n: usize) -> Result<(), BatchError> {
        self.row(row)?;
        let Row { walked, rules, written, .. } = &mut self.rows[row];
        let rules = &*self.rules[*rules as usize];
        let constraint = rules.constraint(walked.state());
        walked.rollback(rules, constraint, n).map_err(|source| refusal(row, source))?;
        written.as_mut().into_iter().for_each(|written| written.truncate(written.len().saturating_sub(n)));
        Ok(())
    }

    /// Puts each row at the start of its rules, before its first item, and restarts the draws.
    pub fn reset(&mut self) {
        self.forget_items();
        for row in &mut self.rows {
            row.walked.restore(self.rules[row.rules as usize].start());
            row.written.as_mut().into_iter().for_each(|written| written.clear());
        }
        self.draws.iter_mut().for_each(Draw::reset);
        self.starved = 0;
    }
}

fn refusal(row: usize, source: SpanError) -> BatchError {
    BatchError::Refused { row, source }
}
