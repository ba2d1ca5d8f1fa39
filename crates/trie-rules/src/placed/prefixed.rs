//! A rule after fixed bytes, such as the end of a prompt that is written again (token healing).

use crate::placed::{PlacedBytes, Position};
use crate::rule::Rule;
use crate::tokens::by_rule::{ByRule, ByRuleError, ByRuleState};
use crate::tokens::masks::MaskLimits;
use trie_core::{Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, TokenId, Trie};

/// Bytes that come first, and then a rule. A token may cross from one to the other. Masks behind the bytes are those of
/// the rule alone.
#[derive(Debug)]
pub(crate) struct PrefixedRule<R: Rule> {
    before: ByRule<PlacedBytes<R>>,
    rule: ByRule<R>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PrefixedState<B, S> {
    Before(B),
    Inside(S),
}

type StateOf<R> = PrefixedState<ByRuleState<Position<<R as Rule>::State>>, ByRuleState<<R as Rule>::State>>;

impl<R: Rule + Clone> PrefixedRule<R> {
    pub(crate) fn new(before: &[u8], rule: &ByRule<R>) -> Result<Self, ByRuleError> {
        // Few masks: one for each byte of them.
        let between = PlacedBytes::new(before, rule.rule().clone(), &[]);
        let before = ByRule::with_limits(between, rule.spelling().clone(), MaskLimits::default())?;
        Ok(Self { before, rule: rule.clone() })
    }

    fn settle(at: ByRuleState<Position<R::State>>) -> StateOf<R> {
        match at.rule_state() {
            Position::Inside { rule: Some(state), .. } => PrefixedState::Inside(ByRuleState::new(state.clone())),
            _ => PrefixedState::Before(at),
        }
    }
}

impl<R: Rule + Clone> Constraint for PrefixedRule<R> {
    type State = StateOf<R>;

    fn start(&self) -> Self::State {
        Self::settle(self.before.start())
    }

    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a> {
        match at {
            PrefixedState::Before(at) => self.before.next(at, scratch),
            PrefixedState::Inside(at) => self.rule.next(at, scratch),
        }
    }

    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role> {
        match at {
            PrefixedState::Inside(at) => self.rule.advance(at, token),
            PrefixedState::Before(before) => {
                let mut after = before.clone();
                let role = self.before.advance(&mut after, token)?;
                *at = Self::settle(after);
                Some(role)
            }
        }
    }

    fn ending(&self, at: &Self::State) -> Ending {
        match at {
            PrefixedState::Before(_) => Ending::No,
            PrefixedState::Inside(at) => self.rule.ending(at),
        }
    }

    fn forced_token(&self, at: &Self::State, scratch: &mut Scratch) -> Option<TokenId> {
        match at {
            PrefixedState::Before(at) => self.before.forced_token(at, scratch),
            PrefixedState::Inside(at) => self.rule.forced_token(at, scratch),
        }
    }

    fn problem(&self, at: &Self::State) -> Option<Problem> {
        match at {
            PrefixedState::Before(at) => self.before.problem(at),
            PrefixedState::Inside(at) => self.rule.problem(at),
        }
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl<R: Rule + Clone> Special for PrefixedRule<R> {}
