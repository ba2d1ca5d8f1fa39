//! The outlook of beginnings: how probable it is that one becomes a text, guessed before its rows are read.
//!
//! The states of a small constraint are listed once. The rows that were read so far, averaged, stand for all rows to
//! come; under this one row the probability of every way from a state to an end is a sum over the states after it.

use super::error::ScoringError;
use super::mass::RowMass;
use crate::machine::constraint::{AnyState, Scratch, Tokens};
use crate::machine::span::{Allowed, SpanRules, SpanState, Status};
use crate::set::ids::TokenId;
use std::collections::HashMap;
use std::ops::Range;

/// Most states, and most steps from all of them together; a constraint of more has no outlook.
const MOST_STATES: usize = 1 << 10;
const MOST_STEPS: usize = 1 << 15;
/// Most times that the sums are computed; those of constraints without loops are right much earlier.
const SWEEPS: usize = 32;
/// Change of a logarithm that is none.
const NO_CHANGE: f64 = 1e-3;

/// The states of a constraint, and the mean of the rows that were read.
#[derive(Debug)]
pub(super) struct Outlook {
    states: Vec<State>,
    /// The steps of all states; those of one are sorted by token.
    steps: Vec<Step>,
    /// The tokens of the steps and of ends, and the sum of the probabilities of each in the rows.
    tokens: Vec<TokenId>,
    sums: Vec<f64>,
    rows: f64,
    certain: Vec<f32>,
}

#[derive(Debug)]
struct State {
    steps: Range<usize>,
    stop: Stop,
    /// Logarithm of the probability that a text ends from here on.
    value: f64,
}

/// How a text ends at a state.
#[derive(Debug)]
enum Stop {
    /// It ended with the token before.
    Over,
    /// With any token that does not continue it.
    Open,
    /// With one of these, as indices of the tokens.
    Tokens(Vec<usize>),
}

#[derive(Debug, Clone, Copy)]
struct Step {
    token: TokenId,
    /// Index of the token.
    index: usize,
    /// Number of the state after it.
    to: usize,
}

impl Outlook {
    /// The state at which every text begins.
    pub(super) const START: usize = 0;

    /// The states of the first constraint of `rules`; `None` if it has too many steps, or free text.
    pub(super) fn new(rules: &SpanRules) -> Option<Self> {
        let (mut states, mut steps, mut indices) = (Vec::new(), Vec::new(), HashMap::new());
        let mut listed = vec![rules.start()];
        // States are not ordered and have no hash: those that allow alike are compared.
        let mut alike: HashMap<Look, Vec<usize>> = HashMap::from([(Look::new(rules, &listed[0])?, vec![0])]);
        let mut index_of = |token: TokenId| {
            let next = indices.len();
            *indices.entry(token).or_insert(next)
        };
        while let Some(at) = listed.get(states.len()).cloned() {
            let Look { tokens, ends, is_open } = Look::new(rules, &at)?;
            let stop = match (at.status() == Status::Complete, is_open) {
                (true, _) => Stop::Over,
                (_, true) => Stop::Open,
                _ => Stop::Tokens(ends.into_iter().map(&mut index_of).collect()),
            };
            let first = steps.len();
            if first + tokens.len() > MOST_STEPS || listed.len() > MOST_STATES {
                return None;
            }
            // Most tokens lead where another one of this state led.
            let mut from_here: Vec<usize> = Vec::new();
            for token in tokens {
                let after = rules.step(&at, token)?.state;
                let is_same = |other: &&usize| {
                    let other: &SpanState<AnyState> = &listed[**other];
                    (other.position(), other.status()) == (after.position(), after.status())
                };
                let to = if let Some(&to) = from_here.iter().find(is_same) {
                    to
                } else {
                    let same = alike.entry(Look::new(rules, &after)?).or_default();
                    let to = same.iter().find(is_same).copied().unwrap_or_else(|| {
                        same.push(listed.len());
                        listed.push(after);
                        listed.len() - 1
                    });
                    from_here.push(to);
                    to
                };
                steps.push(Step { token, index: index_of(token), to });
            }
            steps[first..].sort_unstable_by_key(|step| step.token);
            states.push(State { steps: first..steps.len(), stop, value: 0.0 });
        }
        let mut tokens = vec![TokenId::default(); indices.len()];
        for (token, index) in indices {
            tokens[index] = token;
        }
        let sums = vec![0.0; tokens.len()];
        Some(Self { states, steps, tokens, sums, rows: 0.0, certain: Vec::new() })
    }

    /// The number of the state after a token.
    pub(super) fn after(&self, state: usize, token: TokenId) -> Option<usize> {
        let steps = &self.steps[self.states[state].steps.clone()];
        let found = steps.binary_search_by_key(&token, |step| step.token).ok()?;
        Some(steps[found].to)
    }

    /// Adds a row to those whose mean stands for all.
    pub(super) fn add_row(&mut self, row: &[f32]) -> Result<(), ScoringError> {
        let mass = RowMass::read(row, &mut self.certain)?;
        for (sum, &token) in self.sums.iter_mut().zip(&self.tokens) {
            *sum += mass.logprob(token).exp();
        }
        self.rows += 1.0;
        Ok(())
    }

    /// Computes the values of all states under the mean of the rows.
    pub(super) fn update(&mut self) {
        let mean: Vec<f64> = self.sums.iter().map(|sum| sum / self.rows).collect();
        let logs: Vec<f64> = mean.iter().map(|share| share.ln()).collect();
        self.states.iter_mut().for_each(|state| state.value = f64::NEG_INFINITY);
        let mut terms = Vec::new();
        for _ in 0..SWEEPS {
            let mut has_changed = false;
            // States were listed before those that follow them.
            for number in (0..self.states.len()).rev() {
                let State { steps, stop, value } = &self.states[number];
                let steps = &self.steps[steps.clone()];
                let ending = match stop {
                    Stop::Over => 1.0,
                    Stop::Open => 1.0 - steps.iter().map(|step| mean[step.index]).sum::<f64>(),
                    Stop::Tokens(ends) => ends.iter().map(|&end| mean[end]).sum(),
                };
                terms.clear();
                terms.push(ending.max(0.0).ln());
                terms.extend(steps.iter().map(|step| logs[step.index] + self.states[step.to].value));
                let best = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum = if best > f64::NEG_INFINITY {
                    best + terms.iter().map(|term| (term - best).exp()).sum::<f64>().ln()
                } else {
                    best
                };
                has_changed |= sum != *value && (sum - value).abs() > NO_CHANGE;
                self.states[number].value = sum;
            }
            if !has_changed {
                break;
            }
        }
    }

    /// The logarithm of the guess that a text ends from this state on, as [`Outlook::update`] found it.
    pub(super) fn value(&self, state: usize) -> f64 {
        self.states[state].value
    }
}

/// The tokens that continue and those that end, as a state shows them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Look {
    tokens: Vec<TokenId>,
    ends: Vec<TokenId>,
    is_open: bool,
}

impl Look {
    /// `None` if there are too many tokens, or none that could be listed.
    fn new(rules: &SpanRules, at: &SpanState<AnyState>) -> Option<Self> {
        if at.status() == Status::Complete {
            return Some(Self { tokens: Vec::new(), ends: Vec::new(), is_open: true });
        }
        let mut scratch = Scratch::default();
        let (tokens, ends, is_open) = match rules.allowed(at, &mut scratch) {
            Allowed::Only { tokens, ends } => (tokens, ends, false),
            Allowed::Open { tokens } => (tokens, [].as_slice(), true),
            Allowed::All | Allowed::Nothing => return None,
        };
        if matches!(tokens, Tokens::Except(_)) || tokens.len() > MOST_STEPS {
            return None;
        }
        let ends = ends.iter().copied().filter(|&end| !tokens.contains(end)).collect();
        Some(Self { tokens: tokens.iter().collect(), ends, is_open })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::constraint::{AnyConstraint, Constraint, Ending, Next, NotListed, Role, Special};
    use crate::set::trie::Trie;

    fn id(token: u32) -> TokenId {
        TokenId::new(token).unwrap()
    }

    /// Texts `1*(2|3)4?`, and state 3 that only looks like state 1.
    #[derive(Debug)]
    struct Loop([Vec<TokenId>; 4]);

    impl Constraint for Loop {
        type State = usize;

        fn start(&self) -> usize {
            0
        }

        fn next<'a>(&'a self, at: &'a usize, _: &'a mut Scratch) -> Next<'a> {
            let ending = [Ending::No, Ending::May, Ending::Must, Ending::May][*at];
            Next { tokens: Tokens::Ids(&self.0[*at]), ending }
        }

        fn advance(&self, at: &mut usize, token: TokenId) -> Option<Role> {
            *at = match (*at, token.get()) {
                (0, 1) => 0,
                (0, 2) => 1,
                (0, 3) => 3,
                (1 | 3, 4) => 2,
                _ => return None,
            };
            Some(Role::Value)
        }

        fn max_token(&self) -> Option<TokenId> {
            Some(id(4))
        }

        fn to_trie(&self, _: usize) -> Result<Trie, NotListed> {
            Err(NotListed::Endless)
        }
    }

    impl Special for Loop {}

    fn rules(ends: &[TokenId]) -> SpanRules {
        let ways = [vec![id(1), id(2), id(3)], vec![id(4)], vec![], vec![id(4)]];
        let rules = SpanRules::for_constraint(AnyConstraint::new(Loop(ways)), 6).unwrap();
        rules.with_end_tokens(ends).unwrap()
    }

    fn outlook(rules: &SpanRules, rows: &[[f64; 6]]) -> Outlook {
        let mut outlook = Outlook::new(rules).unwrap();
        for row in rows {
            outlook.add_row(&row.map(|share| share.ln() as f32)).unwrap();
        }
        outlook.update();
        outlook
    }

    #[test]
    fn the_value_is_the_sum_over_all_texts() {
        // Their mean is 0.05, 0.3, 0.2, 0.15, 0.2, 0.1.
        let rows = [[0.05, 0.5, 0.1, 0.2, 0.1, 0.05], [0.05, 0.1, 0.3, 0.1, 0.3, 0.15]];
        let found = outlook(&rules(&[id(5)]), &rows);
        let texts = (0..60).map(|repeats| 0.3_f64.powi(repeats) * (0.2 + 0.15) * (0.1 + 0.2 * 0.1));
        assert!((found.value(Outlook::START) - texts.sum::<f64>().ln()).abs() < 2e-3);
        let after = |token| found.after(Outlook::START, id(token)).unwrap();
        assert!(after(1) == Outlook::START && after(2) != after(3) && found.after(Outlook::START, id(4)).is_none());
        assert_eq!(found.after(after(2), id(4)), found.after(after(3), id(4)));
        assert!((found.value(after(3)) - 0.12_f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn without_end_tokens_whatever_does_not_continue_ends() {
        let found = outlook(&rules(&[]), &[[0.05, 0.3, 0.2, 0.15, 0.2, 0.1]]);
        assert!((found.value(Outlook::START) - (0.35_f64 / 0.7).ln()).abs() < 2e-3);
    }

    #[test]
    fn too_many_steps_and_free_text_have_no_outlook() {
        let many = |count: u32| {
            let mut builder = Trie::builder();
            (0..count).for_each(|first| builder.push(None, &[id(first), id(0), id(1)]));
            Outlook::new(&SpanRules::for_constraint(builder.build().unwrap(), 1 << 16).unwrap())
        };
        assert!(many(300).is_some() && many(1000).is_none() && many(40_000).is_none());
        let free = AnyConstraint::new(crate::machine::constraint::Unconstrained);
        assert!(Outlook::new(&SpanRules::for_constraint(free, 6).unwrap()).is_none());
    }
}
