//! A rule between texts that stand there anyway, as in a form.

use crate::by_rule::{ByRule, ByRuleError, ByRuleState};
use crate::masks::MaskLimits;
use crate::rule::Rule;
use crate::spelling::Spelling;
use trie_core::{Constraint, Ending, Leaf, Next, NotListed, Problem, Role, Scratch, TokenId, Tokens, Trie};

/// A text, a rule, and another text. Tokens may cross both boundaries. As a constraint it is over as soon as it is
/// known where the rule's text ends: the rest of the text behind it is left to whoever writes that.
#[derive(Debug)]
pub struct Placed<R: Rule>(ByRule<Between<R>>);

/// Bytes before a rule, the rule, and bytes after it.
#[derive(Debug)]
pub(crate) struct Between<R> {
    before: Box<[u8]>,
    rule: R,
    /// Of each byte: the places of what stands after that are this byte.
    places: Box<[u64; 256]>,
    /// Bytes of what stands after, as far as they count.
    whole: u32,
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
        Self { before: before.into(), rule, places, whole: after.len() as u32 }
    }

    fn begun(&self) -> At<R::State> {
        let state = self.rule.start();
        let behind = u64::from(self.rule.is_end(&state));
        At::Inside { rule: Some(state), behind }
    }

    fn is_whole(&self, behind: u64) -> bool {
        behind >> self.whole != 0
    }
}

impl<R: Rule> Rule for Between<R> {
    type State = At<R::State>;

    fn start(&self) -> Self::State {
        if self.before.is_empty() { self.begun() } else { At::Before(0) }
    }

    fn step(&self, state: &Self::State, byte: u8) -> Option<Self::State> {
        match state {
            At::Before(at) => {
                let place = *at as usize;
                let last = place + 1 == self.before.len();
                (self.before[place] == byte).then(|| if last { self.begun() } else { At::Before(at + 1) })
            }
            // Once what stands behind is whole, nothing goes on: the shortest text of the rule counts.
            At::Inside { behind, .. } if self.whole > 0 && self.is_whole(*behind) => None,
            At::Inside { rule, behind } => {
                let rule = rule.as_ref().and_then(|state| self.rule.step(state, byte));
                let ends = rule.as_ref().is_some_and(|state| self.rule.is_end(state));
                let behind = ((behind & self.places[usize::from(byte)]) << 1) | u64::from(ends);
                (rule.is_some() || behind != 0).then_some(At::Inside { rule, behind })
            }
        }
    }

    fn is_end(&self, state: &Self::State) -> bool {
        matches!(state, At::Inside { behind, .. } if self.is_whole(*behind))
    }

    fn failure(&self) -> Option<Problem> {
        self.rule.failure()
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
        let Between { rule: own, whole, .. } = self.0.rule();
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

    fn value(&self, _at: &Self::State) -> Option<Leaf> {
        None
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
