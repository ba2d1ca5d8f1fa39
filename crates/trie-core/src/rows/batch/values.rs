//! What rows have written: values, and the tokens of those that are text.

use super::{Batch, BatchError, is_free};
use crate::machine::constraint::{Constraint, Role, Thought};
use crate::machine::span::Status;
use crate::set::ids::TokenId;
use crate::set::trie::Leaf;

impl Batch {
    /// Whether each row has its value. What follows it is up to its rules: anything, or only what stops.
    pub fn finished(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        self.rows.iter().map(|row| row.walked.state().status() == Status::Complete)
    }

    /// The value of a row, once complete. It is kept, whatever follows.
    ///
    /// # Errors
    /// No such row.
    pub fn leaf(&self, row: usize) -> Result<Option<Leaf>, BatchError> {
        let row = self.row(row)?;
        Ok(row.walked.leaf(self.rules_of(row).constraint(row.walked.state())))
    }

    /// The values of a row known so far: more than one where constraints follow each other.
    ///
    /// # Errors
    /// No such row.
    pub fn leaves(&self, row: usize) -> Result<Vec<Leaf>, BatchError> {
        let row = self.row(row)?;
        Ok(row.walked.leaves(self.rules_of(row).constraint(row.walked.state())))
    }

    /// The tokens of the value of a row, once complete, that follows a rule: what its text is made of. `None` for other
    /// rows, whose values are leaves.
    ///
    /// # Errors
    /// No such row.
    pub fn value_tokens(&self, row: usize) -> Result<Option<Vec<TokenId>>, BatchError> {
        let row = self.row(row)?;
        let (rules, state) = (self.rules_of(row), row.walked.state());
        let constraint = rules.constraint(state);
        let is_text = constraint.sets().is_empty() && !is_free(constraint);
        let Some(written) = row.written.as_ref().filter(|_| is_text && state.status() == Status::Complete) else {
            return Ok(None);
        };
        let mut at = rules.start();
        let since_begun = &written[written.len() - state.accepted()..];
        let of_value = |token: &&TokenId| rules.advance(&mut at, **token) == Some(Role::Value);
        Ok(Some(since_begun.iter().filter(of_value).copied().collect()))
    }

    /// What a row has thought so far, behind a [`ThinkGate`](crate::ThinkGate).
    ///
    /// # Errors
    /// No such row.
    pub fn thought(&self, row: usize) -> Result<Thought, BatchError> {
        let row = self.row(row)?;
        Ok(row.walked.thought(self.rules_of(row).constraint(row.walked.state())))
    }
}
