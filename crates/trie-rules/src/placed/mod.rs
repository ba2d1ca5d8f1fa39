//! A rule between texts that stand there anyway, as in a form.

pub(crate) mod placed_walk;
pub(crate) mod prefixed;

use crate::placed::placed_walk::BetweenWalk;
use crate::rule::{Rule, Walker};
use crate::tokens::by_rule::{ByRule, ByRuleError, ByRuleState};
use crate::tokens::masks::MaskLimits;
use crate::tokens::spelling::Spelling;
use crate::tokens::token_bytes::TokenBytes;
use std::sync::Arc;
use trie_core::{Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, TokenId, Tokens, Trie};

/// A text, a rule, and another text. Tokens may cross both boundaries. As a constraint it is over as soon as it is
/// known where the rule's text ends: the rest of the text behind it is left to whoever writes that.
#[derive(Debug)]
pub struct Placed<R: Rule>(ByRule<Between<R>>);

/// Bytes before a rule, the rule, and bytes after it. A clone is one reference count.
#[derive(Debug)]
pub(crate) struct Between<R>(Arc<Texts<R>>);

#[derive(Debug)]
struct Texts<R> {
    before: Box<[u8]>,
    rule: R,
    /// Of each byte: the places of what stands after that are this byte.
    places: Box<[u64; 256]>,
    /// Bytes of what stands after, as far as they count.
    whole: u32,
    /// The first of them.
    first: Option<u8>,
}

impl<R> Clone for Between<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// More bytes behind a rule tell nothing more of where its text ends.
const MOST_BEHIND: usize = 63;

/// Where a walk of a [`Placed`] rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At<S> {
    /// So many bytes of what stands before.
    Before(u32),
    Inside {
        /// In the rule's text, if it can go on.
        rule: Option<S>,
        /// Bit n: the rule's text may be over, with n bytes of what stands after behind it.
        behind: u64,
    },
}

impl<R: Rule> Clone for Placed<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Rule> Between<R> {
    pub(crate) fn new(before: &[u8], rule: R, after: &[u8]) -> Self {
        let after = &after[..after.len().min(MOST_BEHIND)];
        let mut places = Box::new([0; 256]);
        after.iter().enumerate().for_each(|(place, &byte)| places[usize::from(byte)] |= 1 << place);
        let (whole, first) = (after.len() as u32, after.first().copied());
        Self(Arc::new(Texts { before: before.into(), rule, places, whole, first }))
    }

    /// The first byte of what stands after.
    pub(crate) fn first_behind(&self) -> Option<u8> {
        self.0.first
    }

    fn begun(&self) -> At<R::State> {
        let state = self.0.rule.start();
        let behind = u64::from(self.0.rule.is_end(&state));
        At::Inside { rule: Some(state), behind }
    }

    fn is_whole(&self, behind: u64) -> bool {
        behind >> self.0.whole != 0
    }
}

impl<R: Rule> Rule for Between<R> {
    type State = At<R::State>;

    fn start(&self) -> Self::State {
        if self.0.before.is_empty() { self.begun() } else { At::Before(0) }
    }

    fn step(&self, state: &Self::State, byte: u8) -> Option<Self::State> {
        match state {
            At::Before(at) => {
                let place = *at as usize;
                let last = place + 1 == self.0.before.len();
                (self.0.before[place] == byte).then(|| if last { self.begun() } else { At::Before(at + 1) })
            }
            // Once what stands behind is whole, nothing goes on: the shortest text of the rule counts.
            At::Inside { behind, .. } if self.0.whole > 0 && self.is_whole(*behind) => None,
            At::Inside { rule, behind } => {
                let rule = rule.as_ref().and_then(|state| self.0.rule.step(state, byte));
                let ends = rule.as_ref().is_some_and(|state| self.0.rule.is_end(state));
                let behind = ((behind & self.0.places[usize::from(byte)]) << 1) | u64::from(ends);
                (rule.is_some() || behind != 0).then_some(At::Inside { rule, behind })
            }
        }
    }

    fn is_end(&self, state: &Self::State) -> bool {
        matches!(state, At::Inside { behind, .. } if self.is_whole(*behind))
    }

    fn failure(&self) -> Option<Problem> {
        self.0.rule.failure()
    }

    fn is_finite(&self) -> bool {
        self.0.rule.is_finite()
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<Self::State>>> {
        let inside = self.0.rule.walker(tokens)?;
        Some(Arc::new(BetweenWalk::new(self.clone(), inside, Arc::clone(tokens))))
    }
}

/// A state of a [`Placed`] rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlacedState<S>(ByRuleState<At<S>>);

impl<R: Rule> Placed<R> {
    /// The rule between two texts.
    ///
    /// # Errors
    /// As [`ByRule::new`].
    pub fn new(
        before: &[u8],
        rule: R,
        after: &[u8],
        spelling: impl Into<Spelling>,
        limits: MaskLimits,
    ) -> Result<Self, ByRuleError> {
        ByRule::with_limits(Between::new(before, rule, after), spelling, limits).map(Self)
    }

    /// Whether the rule's text may end here, with nothing of what stands after behind it.
    pub fn may_end(&self, at: &PlacedState<R::State>) -> bool {
        matches!(at.0.rule_state(), At::Inside { behind, .. } if behind & 1 == 1)
    }

    /// How many bytes of the text behind the rule are written, once it is known where the rule's own ends.
    pub fn behind(&self, at: &PlacedState<R::State>) -> Option<usize> {
        let Texts { rule: own, whole, .. } = &*self.0.rule().0;
        let &At::Inside { ref rule, behind } = at.0.rule_state() else { return None };
        if *whole > 0 && self.0.rule().is_whole(behind) {
            return Some(*whole as usize);
        }
        let goes_on = || rule.as_ref().is_some_and(|state| (0..=255).any(|byte| own.step(state, byte).is_some()));
        (behind.is_power_of_two() && !goes_on()).then_some(behind.trailing_zeros() as usize)
    }
}

impl<R: Rule> Constraint for Placed<R> {
    type State = PlacedState<R::State>;

    fn start(&self) -> Self::State {
        PlacedState(self.0.start())
    }

    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a> {
        if self.behind(at).is_some() {
            return Next { tokens: Tokens::default(), ending: Ending::Must };
        }
        self.0.next(&at.0, scratch)
    }

    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role> {
        if self.behind(at).is_some() { None } else { self.0.advance(&mut at.0, token) }
    }

    fn forced_token(&self, at: &Self::State, scratch: &mut Scratch) -> Option<TokenId> {
        if self.behind(at).is_some() { None } else { self.0.forced_token(&at.0, scratch) }
    }

    fn problem(&self, at: &Self::State) -> Option<Problem> {
        self.0.problem(&at.0)
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl<R: Rule> Special for Placed<R> {}
