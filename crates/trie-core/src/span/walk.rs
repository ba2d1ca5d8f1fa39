//! The machine: what is legal in a state, what a token does to it, and what must come. Nothing else decides this.
//!
//! ```text
//!            goes on                  end token, or a value that cannot go on
//!   Active ────────► Active (deeper) ────────────────────────────────────────► Complete
//!     ▲ │ illegal, from a host that cannot be refused: ignored at the start      │
//!     │ └──────────────────────────────► Off  ◄── deeper, or patience is over ───┘ (illegal under After::Stop)
//!   reset, activate                     deactivate: Idle
//! ```

use super::allowed::Allowed;
use super::rules::{After, SpanRules};
use super::state::{SpanState, Status};
use crate::constraint::{Constraint, Ending, Role, Scratch, Step, Tokens};
use crate::ids::TokenId;

/// What became of a token that a host reported and could not be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// It was legal.
    Accepted(Role),
    /// Illegal at the start, or where a damaged set allows nothing: ignored, the span stays as it is.
    Ignored,
    /// Illegal deeper, or patience was over: the span is [`Status::Off`].
    TurnedOff,
}

impl<C: Constraint> SpanRules<C> {
    /// Armed at the start of the first constraint.
    pub fn start(&self) -> SpanState<C::State> {
        self.armed(0)
    }

    pub(super) fn armed(&self, constraint: u32) -> SpanState<C::State> {
        let at = self.constraints()[constraint as usize].1.start();
        SpanState { at, status: Status::Active, constraint, depth: 0, tail: 0, ignored: 0, off_at: 0 }
    }

    /// The constraint that a state walks.
    #[inline]
    pub fn constraint(&self, state: &SpanState<C::State>) -> &C {
        &self.constraints()[state.constraint as usize].1
    }

    /// What may come next. A trie takes `O(1)` and no scratch.
    #[inline]
    pub fn allowed<'a>(&'a self, state: &'a SpanState<C::State>, scratch: &'a mut Scratch) -> Allowed<'a> {
        self.allowed_in(self.constraint(state), state, scratch)
    }

    /// [`SpanRules::allowed`] with the constraint at hand: a step must not look it up.
    #[inline]
    pub(super) fn allowed_in<'a>(
        &'a self,
        constraint: &'a C,
        state: &'a SpanState<C::State>,
        scratch: &'a mut Scratch,
    ) -> Allowed<'a> {
        match state.status {
            Status::Active => {}
            Status::Complete if self.after() == After::Stop => {
                return Allowed::Only { tokens: Tokens::default(), ends: self.stop_tokens_of(state.constraint) };
            }
            Status::Complete | Status::Idle | Status::Off => return Allowed::All,
        }
        let next = constraint.next(&state.at, scratch);
        let tokens = next.tokens;
        match next.ending {
            Ending::Free => Allowed::All,
            Ending::No if tokens.is_empty() => Allowed::Nothing,
            Ending::No => Allowed::Only { tokens, ends: &[] },
            Ending::May | Ending::Must => match self.end_tokens_of(state.constraint) {
                [] => Allowed::Open { tokens },
                ends => Allowed::Only { tokens, ends },
            },
        }
    }

    /// The state after a token and what it was, or `None` if it may not come.
    #[inline]
    pub fn step(&self, state: &SpanState<C::State>, token: TokenId) -> Option<Step<SpanState<C::State>>> {
        self.step_in(self.constraint(state), state, token)
    }

    #[inline]
    pub(super) fn step_in(
        &self,
        constraint: &C,
        state: &SpanState<C::State>,
        token: TokenId,
    ) -> Option<Step<SpanState<C::State>>> {
        if token.index() >= self.n_vocab() {
            return None;
        }
        let role = match state.status {
            Status::Active => {
                let ends = self.end_tokens_of(state.constraint);
                if let Some(Step { state: at, role }) = constraint.step(&state.at, token)
                    && !(role == Role::Free && is_in(ends, token))
                {
                    // A value that cannot go on is complete at once where no end token has to follow.
                    let over = ends.is_empty() && constraint.ending(&at) == Ending::Must;
                    let mut after = state.replace(at);
                    after.depth += 1;
                    after.status = if over { Status::Complete } else { Status::Active };
                    return Some(Step { state: after, role });
                }
                match constraint.ending(&state.at) {
                    Ending::No => return None,
                    Ending::May | Ending::Must if ends.is_empty() => Role::Free,
                    Ending::May | Ending::Must | Ending::Free if is_in(ends, token) => Role::End,
                    Ending::May | Ending::Must | Ending::Free => return None,
                }
            }
            Status::Complete if self.after() == After::Stop && !is_in(self.stop_tokens_of(state.constraint), token) => {
                return None;
            }
            Status::Complete | Status::Idle | Status::Off => Role::Free,
        };
        let mut after = state.clone();
        after.tail += 1;
        if state.status == Status::Active {
            after.status = Status::Complete;
        }
        Some(Step { state: after, role })
    }

    /// The state after a token from a host that cannot be refused, such as a C callback.
    pub fn observe(&self, state: &SpanState<C::State>, token: TokenId) -> (SpanState<C::State>, Observed) {
        self.observe_in(self.constraint(state), state, token)
    }

    pub(super) fn observe_in(
        &self,
        constraint: &C,
        state: &SpanState<C::State>,
        token: TokenId,
    ) -> (SpanState<C::State>, Observed) {
        if let Some(Step { state, role }) = self.step_in(constraint, state, token) {
            return (state, Observed::Accepted(role));
        }
        let mut after = state.clone();
        if state.status == Status::Active {
            if self.allowed_in(constraint, state, &mut Scratch::default()) == Allowed::Nothing {
                // Off would mean that everything may come.
                return (after, Observed::Ignored);
            }
            if state.depth == 0 {
                after.ignored += 1;
                if after.ignored < self.patience() {
                    return (after, Observed::Ignored);
                }
            } else {
                after.tail += 1;
            }
        } else {
            after.tail += 1;
        }
        after.status = Status::Off;
        after.off_at = after.accepted() as u32;
        (after, Observed::TurnedOff)
    }

    /// The token that must come next whatever the model says, while a value is being written. A choice between ending a value
    /// and going on is none.
    pub fn forced(&self, state: &SpanState<C::State>, scratch: &mut Scratch) -> Option<TokenId> {
        if state.status != Status::Active {
            return None;
        }
        let constraint = self.constraint(state);
        if constraint.ending(&state.at) == Ending::No {
            return constraint.forced(&state.at, scratch);
        }
        self.allowed_in(constraint, state, scratch).only()
    }

    /// The run of such tokens, up to the next choice or the end of the span. `O(length)`.
    pub fn forced_run(&self, state: &SpanState<C::State>) -> ForcedRun<'_, C> {
        ForcedRun { rules: self, state: state.clone(), scratch: Scratch::default() }
    }

    /// The status of a span that is neither idle nor off.
    pub(super) fn settled(&self, constraint: &C, state: &SpanState<C::State>) -> Status {
        let over = || {
            let ends = self.end_tokens_of(state.constraint);
            state.depth > 0 && ends.is_empty() && constraint.ending(&state.at) == Ending::Must
        };
        if state.tail > 0 || over() { Status::Complete } else { Status::Active }
    }

    /// The state so many tokens of the walk ago; `None` where the constraint does not remember.
    pub(super) fn back(&self, state: &SpanState<C::State>, tokens: usize) -> Option<C::State> {
        if tokens == 0 { Some(state.at.clone()) } else { self.constraint(state).back(&state.at, tokens) }
    }
}

fn is_in(ascending: &[TokenId], token: TokenId) -> bool {
    ascending.binary_search(&token).is_ok()
}

/// Tokens that must come next: see [`SpanRules::forced_run`].
#[derive(Debug, Clone)]
pub struct ForcedRun<'a, C: Constraint> {
    rules: &'a SpanRules<C>,
    state: SpanState<C::State>,
    scratch: Scratch,
}

impl<C: Constraint> ForcedRun<'_, C> {
    /// The state after the tokens yielded so far.
    pub fn state(&self) -> &SpanState<C::State> {
        &self.state
    }
}

impl<C: Constraint> Iterator for ForcedRun<'_, C> {
    type Item = TokenId;

    fn next(&mut self) -> Option<TokenId> {
        let token = self.rules.forced(&self.state, &mut self.scratch)?;
        self.state = self.rules.step(&self.state, token)?.state;
        Some(token)
    }
}
