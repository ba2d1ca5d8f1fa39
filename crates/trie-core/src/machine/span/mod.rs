//! One constrained stretch of output. `rules.rs` holds the settings, which do not change, and `state.rs` the state,
//! which does; `walk.rs` decides about tokens. A [`Span`] joins the three for hosts that continue, roll back and
//! switch between constraints.

mod allowed;
mod error;
mod rules;
mod state;
mod trail;
mod walk;

pub use allowed::Allowed;
pub use error::{SpanError, UnknownPath};
pub use rules::{After, RulesError, SpanRules};
pub use state::{SpanState, Status};
pub(crate) use trail::Trail;
pub use walk::{ForcedRun, Observation};

use crate::machine::constraint::{
    AnyConstraint, AnyState, Constraint, Ending, Problem, Role, Scratch, Special, Thought,
};
use crate::set::ids::TokenId;
use crate::set::trie::Leaf;
use std::sync::Arc;

/// A state with its rules and the history that rollback needs. A clone is independent. It costs `O(1)`, or `O(walk)`
/// if the constraint does not remember how a state was reached.
#[derive(Debug, Clone)]
pub struct Span {
    rules: Arc<SpanRules>,
    /// The constraint that is walked, stored here so that a step need not look it up.
    constraint: AnyConstraint,
    walked: Trail,
}

impl Span {
    /// A span armed at the start of the first constraint.
    pub fn new(rules: Arc<SpanRules>) -> Self {
        let state = rules.start();
        Self { constraint: rules.constraint(&state).clone(), walked: Trail::new(state), rules }
    }

    /// The rules it follows.
    pub fn rules(&self) -> &Arc<SpanRules> {
        &self.rules
    }

    /// The constraint it walks.
    #[inline]
    pub fn constraint(&self) -> &AnyConstraint {
        &self.constraint
    }

    /// The path of that constraint.
    pub fn path(&self) -> &str {
        &self.rules.constraints()[self.walked.state.constraint as usize].0
    }

    /// Returns its position, as a value.
    pub fn state(&self) -> &SpanState<AnyState> {
        &self.walked.state
    }

    /// Returns the phase of its life.
    #[inline]
    pub fn status(&self) -> Status {
        self.walked.state.status
    }

    /// Returns whether a value ends here, may also continue, and no end token decides: all logits of the row compete.
    pub fn is_open(&self) -> bool {
        matches!(self.allowed(&mut Scratch::default()), Allowed::Open { .. })
    }

    /// Returns the allowed tokens. Of a trie `O(1)`, allocation-free.
    #[inline]
    pub fn allowed<'a>(&'a self, scratch: &'a mut Scratch) -> Allowed<'a> {
        self.rules.allowed_in(&self.constraint, &self.walked.state, scratch)
    }

    /// The forced tokens: exactly one is allowed at each step, up to a choice or the end of the span.
    pub fn forced(&self) -> ForcedRun<'_, AnyConstraint> {
        self.rules.forced_run(&self.walked.state)
    }

    /// The next token, if it is forced: the first of [`Span::forced`].
    pub fn forced_token(&self, scratch: &mut Scratch) -> Option<TokenId> {
        self.rules.forced(&self.walked.state, scratch)
    }

    /// The error because of which the constraint allows no token.
    pub fn problem(&self) -> Option<Problem> {
        self.rules.problem(&self.walked.state)
    }

    /// [`Span::allowed`], with an error if no token is allowed.
    ///
    /// # Errors
    /// As [`SpanRules::choices`].
    pub fn choices<'a>(&'a self, scratch: &'a mut Scratch) -> Result<Allowed<'a>, SpanError> {
        self.rules.choices(&self.walked.state, scratch)
    }

    /// The error for a state in which no token is allowed.
    #[cold]
    pub(crate) fn dead_end_error(&self) -> SpanError {
        self.rules.dead_end_error(&self.walked.state)
    }

    /// Returns the role that a token would play, if it is allowed.
    pub fn role_of(&self, token: TokenId) -> Option<Role> {
        self.rules.step(&self.walked.state, token).map(|step| step.role)
    }

    /// Returns whether a value ends here, ignoring required end tokens.
    pub fn ending(&self) -> Ending {
        self.constraint.ending(&self.walked.state.at)
    }

    /// Returns whether a token that is not allowed here stands for the end of the output.
    pub(crate) fn text_ends(&self) -> bool {
        self.status() == Status::Active && self.constraint.text_ends(&self.walked.state.at)
    }

    /// Returns whether the span is over and nothing but the end of the output may follow.
    pub fn is_over(&self) -> bool {
        self.status() == Status::Complete && self.rules.after_value() == After::Stop
    }

    /// The value, once complete.
    pub fn leaf(&self) -> Option<Leaf> {
        self.walked.leaf(&self.constraint)
    }

    /// The values known so far, in order: several if constraints follow each other. A value that may still continue is
    /// not known yet.
    pub fn leaves(&self) -> Vec<Leaf> {
        self.walked.leaves(&self.constraint)
    }

    /// Returns the thinking so far, behind a [`ThinkGate`](crate::ThinkGate).
    pub fn thought(&self) -> Thought {
        self.walked.thought(&self.constraint)
    }

    /// Tokens walked in the constraint.
    pub fn depth(&self) -> usize {
        self.walked.state.depth()
    }

    /// Tokens accepted since the span was armed, ignored and free ones included.
    pub fn accepted(&self) -> usize {
        self.walked.state.accepted()
    }

    /// Accepts a token and returns its role.
    ///
    /// # Errors
    /// A token that is not allowed, or that the vocabulary does not have; the state is as before.
    #[inline]
    pub fn accept(&mut self, token: TokenId) -> Result<Role, SpanError> {
        match self.advance(token) {
            Some(role) => Ok(role),
            None => Err(self.walked.refusal(&self.rules, &self.constraint, token)),
        }
    }

    #[inline]
    fn advance(&mut self, token: TokenId) -> Option<Role> {
        self.walked.advance(&self.rules, &self.constraint, token)
    }

    /// Takes all tokens or none.
    ///
    /// # Errors
    /// As [`Span::accept`], for the first token that fails.
    pub fn accept_all(&mut self, tokens: &[TokenId]) -> Result<(), SpanError> {
        let before = self.walked.state.clone();
        tokens.iter().try_for_each(|&token| self.accept(token).map(|_| ())).inspect_err(|_| self.walked.restore(before))
    }

    /// Takes a token from a host that cannot be refused, such as a C callback. Allocation-free for tries.
    pub fn observe(&mut self, token: TokenId) -> Observation {
        self.walked.observe(&self.rules, &self.constraint, token)
    }

    /// Takes back the last `n` accepted tokens. Of a trie `O(n log nodes)`.
    ///
    /// # Errors
    /// More than [`Span::accepted`].
    pub fn rollback(&mut self, n: usize) -> Result<(), SpanError> {
        self.walked.rollback(&self.rules, &self.constraint, n)
    }

    /// As after creation: armed at the start of the first constraint.
    pub fn reset(&mut self) {
        self.arm(0);
    }

    fn arm(&mut self, constraint: u32) {
        let state = self.rules.initial_state(constraint);
        if constraint != self.walked.state.constraint {
            self.constraint = self.rules.constraint(&state).clone();
        }
        self.walked.restore(state);
    }

    /// Arms the start of the constraint with this path, whatever the state was.
    ///
    /// # Errors
    /// No constraint has that path.
    pub fn activate(&mut self, path: &str) -> Result<(), SpanError> {
        let constraint = self.rules.number_of(path)?;
        self.arm(constraint);
        Ok(())
    }

    /// Stops constraining until a path is activated or the span is reset.
    pub fn deactivate(&mut self) {
        let state = SpanState { status: Status::Idle, ..self.rules.initial_state(self.walked.state.constraint) };
        self.walked.restore(state);
    }
}
