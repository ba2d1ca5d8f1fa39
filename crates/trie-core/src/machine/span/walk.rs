//! The state machine of a span: which tokens a state allows, how a token changes the state, and which tokens are
//! forced. Only this file decides it.
//!
//! ```text
//!            goes on                  end token, or a value that cannot go on
//!   Active ────────► Active (deeper) ────────────────────────────────────────► Complete
//!     ▲ │ illegal, from a host that cannot be refused: ignored at the start      │
//!     │ └──────────────────────────────► Off  ◄── deeper, or patience is over ───┘ (illegal under After::Stop)
//!   reset, activate                     deactivate: Idle
//! ```

use super::allowed::Allowed;
use super::error::SpanError;
use super::rules::{After, SpanRules};
use super::state::{SpanState, Status};
use crate::machine::constraint::{AllExcept, Ending, Problem, Role, Scratch, Special, Step, Tokens};
use crate::set::ids::TokenId;

/// Outcome of a token that a host reported and that could not be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// The token was allowed.
    Accepted(Role),
    /// Not allowed, at the start or where a damaged set allows nothing: the token is ignored and the span stays as it
    /// is.
    Ignored,
    /// Not allowed, after the start or with the patience used up: the span is now [`Status::Off`].
    TurnedOff,
}

impl<C: Special> SpanRules<C> {
    /// Armed at the start of the first constraint.
    pub fn start(&self) -> SpanState<C::State> {
        self.initial_state(0)
    }

    pub(super) fn initial_state(&self, constraint: u32) -> SpanState<C::State> {
        let at = self.constraints()[constraint as usize].1.start();
        SpanState { at, status: Status::Active, constraint, depth: 0, tail: 0, ignored: 0, off_at: 0 }
    }

    /// The constraint that a state walks.
    #[inline]
    pub fn constraint(&self, state: &SpanState<C::State>) -> &C {
        &self.constraints()[state.constraint as usize].1
    }

    /// Returns the allowed tokens. A trie takes `O(1)` and no scratch.
    #[inline]
    pub fn allowed<'a>(&'a self, state: &'a SpanState<C::State>, scratch: &'a mut Scratch) -> Allowed<'a> {
        self.allowed_in(self.constraint(state), state, scratch)
    }

    /// [`SpanRules::allowed`] with the constraint at hand: a step must not look it up.
    #[inline]
    pub(crate) fn allowed_in<'a>(
        &'a self,
        constraint: &'a C,
        state: &'a SpanState<C::State>,
        scratch: &'a mut Scratch,
    ) -> Allowed<'a> {
        match state.status {
            Status::Active => {}
            Status::Complete if self.after_value() == After::Stop => {
                return Allowed::Only { tokens: Tokens::default(), ends: self.stop_tokens_of(state.constraint) };
            }
            Status::Complete => {
                return match constraint.barred_tokens() {
                    [] => Allowed::All,
                    barred => {
                        let tokens = Tokens::Except(AllExcept::new(barred).limit_to(self.n_vocab()));
                        Allowed::Only { tokens, ends: &[] }
                    }
                };
            }
            Status::Idle | Status::Off => return Allowed::All,
        }
        let next = constraint.next(&state.at, scratch);
        let tokens = next.tokens.limit_to(self.n_vocab());
        match next.ending {
            Ending::Free => match tokens {
                Tokens::Except(_) => Allowed::Only { tokens, ends: self.end_tokens_of(state.constraint) },
                _ => Allowed::All,
            },
            Ending::No if tokens.is_empty() => Allowed::Nothing,
            Ending::No => Allowed::Only { tokens, ends: &[] },
            Ending::May | Ending::Must => match self.end_tokens_of(state.constraint) {
                [] => Allowed::Open { tokens },
                ends => Allowed::Only { tokens, ends },
            },
        }
    }

    /// The error because of which no token is allowed.
    pub(crate) fn problem(&self, state: &SpanState<C::State>) -> Option<Problem> {
        self.constraint(state).problem(&state.at)
    }

    /// [`SpanRules::allowed`], with an error if no token is allowed.
    ///
    /// # Errors
    /// A set that is damaged at this state, or an error in the constraint.
    pub fn choices<'a>(
        &'a self,
        state: &'a SpanState<C::State>,
        scratch: &'a mut Scratch,
    ) -> Result<Allowed<'a>, SpanError> {
        match self.allowed(state, scratch) {
            Allowed::Nothing => Err(self.dead_end_error(state)),
            allowed => Ok(allowed),
        }
    }

    /// The error for a state in which no token is allowed.
    #[cold]
    pub(crate) fn dead_end_error(&self, state: &SpanState<C::State>) -> SpanError {
        let path = self.constraints()[state.constraint as usize].0.clone();
        let depth = state.depth();
        match self.problem(state) {
            Some(problem) => SpanError::Problem { path, depth, problem },
            None => SpanError::Damaged { path, depth },
        }
    }

    /// Accepts a token and returns its role. Returns `None`, without a change, if the token is not allowed.
    #[inline]
    pub fn advance(&self, state: &mut SpanState<C::State>, token: TokenId) -> Option<Role> {
        self.advance_in(&self.constraints()[state.constraint as usize].1, state, token)
    }

    /// [`SpanRules::advance`] with the constraint at hand.
    #[inline]
    pub(crate) fn advance_in(&self, constraint: &C, state: &mut SpanState<C::State>, token: TokenId) -> Option<Role> {
        if token.index() >= self.n_vocab() {
            return None;
        }
        if state.status != Status::Active {
            let stops = state.status == Status::Complete && self.after_value() == After::Stop;
            if stops && !is_in(self.stop_tokens_of(state.constraint), token) {
                return None;
            }
            if !stops && state.status == Status::Complete && is_in(constraint.barred_tokens(), token) {
                return None;
            }
            state.tail += 1;
            return Some(Role::Free);
        }
        let ends = self.end_tokens_of(state.constraint);
        if (ends.is_empty() || !self.ends_free_text(constraint, state, token))
            && let Some(role) = constraint.advance(&mut state.at, token)
        {
            state.depth += 1;
            // A value that cannot go on is complete at once where no end token has to follow.
            if ends.is_empty() && constraint.ending(&state.at) == Ending::Must {
                state.status = Status::Complete;
            }
            return Some(role);
        }
        let role = match constraint.ending(&state.at) {
            Ending::May | Ending::Must if ends.is_empty() => Role::Free,
            Ending::May | Ending::Must | Ending::Free if is_in(ends, token) => Role::End,
            _ => return None,
        };
        state.tail += 1;
        state.status = Status::Complete;
        Some(role)
    }

    /// Returns whether this is an end token in free text, and nothing that the constraint looks for.
    #[cold]
    fn ends_free_text(&self, constraint: &C, state: &SpanState<C::State>, token: TokenId) -> bool {
        constraint.ending(&state.at) == Ending::Free
            && is_in(self.end_tokens_of(state.constraint), token)
            && !constraint.next(&state.at, &mut Scratch::default()).tokens.names(token)
    }

    /// The state after a token and the token's role, or `None` if it is not allowed: [`SpanRules::advance`] on a copy.
    pub fn step(&self, state: &SpanState<C::State>, token: TokenId) -> Option<Step<SpanState<C::State>>> {
        let mut state = state.clone();
        let role = self.advance(&mut state, token)?;
        Some(Step { state, role })
    }

    /// Takes a token from a host that cannot be refused, such as a C callback.
    pub fn observe(&self, state: &mut SpanState<C::State>, token: TokenId) -> Observation {
        match self.advance(state, token) {
            Some(role) => Observation::Accepted(role),
            None => self.handle_illegal(self.constraint(state), state),
        }
    }

    /// Handles a token that is not allowed and cannot be refused.
    pub(super) fn handle_illegal(&self, constraint: &C, state: &mut SpanState<C::State>) -> Observation {
        if state.status != Status::Active {
            state.tail += 1;
        } else if self.allowed_in(constraint, state, &mut Scratch::default()) == Allowed::Nothing {
            // Off would mean that everything may come.
            return Observation::Ignored;
        } else if state.depth > 0 {
            state.tail += 1;
        } else {
            state.ignored += 1;
            if state.ignored < self.patience() {
                return Observation::Ignored;
            }
        }
        state.status = Status::Off;
        state.off_at = state.accepted() as u32;
        Observation::TurnedOff
    }

    /// The token that is forced while a value is being written, whatever the model prefers. Where the value may either
    /// end or continue, no token is forced.
    pub fn forced(&self, state: &SpanState<C::State>, scratch: &mut Scratch) -> Option<TokenId> {
        if state.status != Status::Active {
            return None;
        }
        let constraint = self.constraint(state);
        if constraint.ending(&state.at) == Ending::No {
            return constraint.forced_token(&state.at, scratch);
        }
        self.allowed_in(constraint, state, scratch).single_token()
    }

    /// The run of such tokens, up to the next choice or the end of the span. `O(length)`.
    pub fn forced_run(&self, state: &SpanState<C::State>) -> ForcedRun<'_, C> {
        ForcedRun { rules: self, state: state.clone(), scratch: Scratch::default() }
    }

    /// The status of a span that is neither idle nor off.
    pub(super) fn resolved_status(&self, constraint: &C, state: &SpanState<C::State>) -> Status {
        let over = || {
            let ends = self.end_tokens_of(state.constraint);
            state.depth > 0 && ends.is_empty() && constraint.ending(&state.at) == Ending::Must
        };
        if state.tail > 0 || over() { Status::Complete } else { Status::Active }
    }
}

fn is_in(ascending: &[TokenId], token: TokenId) -> bool {
    ascending.binary_search(&token).is_ok()
}

/// A run of forced tokens: see [`SpanRules::forced_run`].
#[derive(Debug, Clone)]
pub struct ForcedRun<'a, C: Special> {
    rules: &'a SpanRules<C>,
    state: SpanState<C::State>,
    scratch: Scratch,
}

impl<C: Special> ForcedRun<'_, C> {
    /// The state after the tokens yielded so far.
    pub fn state(&self) -> &SpanState<C::State> {
        &self.state
    }
}

impl<C: Special> Iterator for ForcedRun<'_, C> {
    type Item = TokenId;

    fn next(&mut self) -> Option<TokenId> {
        let token = self.rules.forced(&self.state, &mut self.scratch)?;
        self.rules.advance(&mut self.state, token)?;
        Some(token)
    }
}
