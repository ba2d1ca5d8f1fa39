//! A state with its rollback history, which a [`Span`](super::Span) and every row of a batch contain.

use super::allowed::Allowed;
use super::error::SpanError;
use super::rules::SpanRules;
use super::state::{SpanState, Status};
use super::walk;
use crate::machine::constraint::{AnyConstraint, AnyState, Constraint, Role, Scratch, Special, Thought};
use crate::set::ids::TokenId;
use crate::set::trie::{Leaf, NotAllowed};

/// State of a walk, with its history. A clone is independent and `O(1)`, or `O(walk)` where the constraint does not
/// remember how a state was reached.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    pub(super) state: SpanState<AnyState>,
    /// The states before each token of the walk, if they cannot be derived from the last state; none for a tree.
    #[allow(clippy::box_collection, reason = "rows of trees are copied by the hundred: theirs is one word, and null")]
    passed: Option<Box<Vec<AnyState>>>,
}

impl Trail {
    pub(crate) fn new(state: SpanState<AnyState>) -> Self {
        Self { state, passed: None }
    }

    /// Becomes a clone of another one, in place.
    #[inline]
    pub(crate) fn copy_from(&mut self, source: &Self) {
        self.state.copy_from(&source.state);
        if self.passed.is_some() || source.passed.is_some() {
            self.passed.clone_from(&source.passed);
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> &SpanState<AnyState> {
        &self.state
    }

    /// Accepts a token. Returns `None`, without a change, if the token is not allowed. `constraint` is the constraint
    /// that the state walks.
    #[inline]
    pub(crate) fn advance(&mut self, rules: &SpanRules, constraint: &AnyConstraint, token: TokenId) -> Option<Role> {
        if constraint.remembers() {
            return rules.advance_in(constraint, &mut self.state, token);
        }
        let before = self.state.at.clone();
        let role = rules.advance_in(constraint, &mut self.state, token)?;
        let passed = self.passed.get_or_insert_default();
        if self.state.depth() > passed.len() {
            passed.push(before);
        }
        Some(role)
    }

    /// As [`Trail::advance`] for a host that cannot be refused.
    pub(super) fn observe(
        &mut self,
        rules: &SpanRules,
        constraint: &AnyConstraint,
        token: TokenId,
    ) -> super::Observation {
        match self.advance(rules, constraint, token) {
            Some(role) => walk::Observation::Accepted(role),
            None => rules.handle_illegal(constraint, &mut self.state),
        }
    }

    /// Why a token was refused.
    #[cold]
    pub(crate) fn refusal(&self, rules: &SpanRules, constraint: &AnyConstraint, token: TokenId) -> SpanError {
        let n_vocab = rules.n_vocab();
        if token.index() >= n_vocab {
            return SpanError::OutsideVocabulary { token, n_vocab };
        }
        let mut scratch = Scratch::default();
        match rules.allowed_in(constraint, &self.state, &mut scratch) {
            Allowed::Nothing => rules.dead_end_error(&self.state),
            allowed => NotAllowed::new(token, self.state.accepted(), allowed.iter()).into(),
        }
    }

    /// Checks that `n` tokens can be rolled back.
    pub(crate) fn can_roll_back(&self, n: usize) -> Result<(), SpanError> {
        let accepted = self.state.accepted();
        if n > accepted { Err(SpanError::RollbackTooFar { asked: n, accepted }) } else { Ok(()) }
    }

    /// Takes back the last `n` accepted tokens. Of a trie `O(n log nodes)`.
    pub(crate) fn rollback(
        &mut self,
        rules: &SpanRules,
        constraint: &AnyConstraint,
        n: usize,
    ) -> Result<(), SpanError> {
        self.can_roll_back(n)?;
        let from_tail = n.min(self.state.tail as usize);
        let from_walk = (n - from_tail).min(self.state.depth());
        let state = &mut self.state;
        if from_walk > 0 && !constraint.back(&mut state.at, from_walk) {
            let passed = self.passed.as_deref().map_or(&[][..], Vec::as_slice);
            let before = passed.get(passed.len().saturating_sub(from_walk)).cloned();
            state.at = before.unwrap_or_else(|| constraint.start());
        }
        state.tail -= from_tail as u32;
        state.depth -= from_walk as u32;
        state.ignored -= (n - from_tail - from_walk) as u32;
        forget_after(&mut self.passed, state.depth());
        let still_off = state.status == Status::Off && state.accepted() >= state.off_at as usize;
        if !still_off && state.status != Status::Idle {
            state.status = rules.resolved_status(constraint, state);
        }
        Ok(())
    }

    /// Puts back a state that was passed on this walk, or the start of another one.
    pub(crate) fn restore(&mut self, state: SpanState<AnyState>) {
        forget_after(&mut self.passed, state.depth());
        self.state = state;
    }

    /// The value that ends at the state, or that ended last.
    pub(crate) fn value(&self, constraint: &AnyConstraint) -> Option<Leaf> {
        constraint.values(&self.state.at, true).pop()
    }

    /// The value, once complete.
    pub(crate) fn leaf(&self, constraint: &AnyConstraint) -> Option<Leaf> {
        if self.state.status == Status::Complete { self.value(constraint) } else { None }
    }

    /// Returns the thinking so far.
    pub(crate) fn thought(&self, constraint: &AnyConstraint) -> Thought {
        constraint.thought(&self.state.at)
    }

    /// The values known so far, in order. A value that may still continue is not known yet.
    pub(crate) fn leaves(&self, constraint: &AnyConstraint) -> Vec<Leaf> {
        constraint.values(&self.state.at, self.state.status == Status::Complete)
    }
}

#[allow(clippy::box_collection, reason = "see the field")]
fn forget_after(passed: &mut Option<Box<Vec<AnyState>>>, depth: usize) {
    if let Some(passed) = passed {
        passed.truncate(depth);
    }
}
