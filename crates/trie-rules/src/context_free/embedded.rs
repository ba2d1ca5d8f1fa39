//! Machines over bytes inside a grammar, such as a JSON Schema.

use crate::rule::Rule;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::Problem;

/// The most states of one machine that a grammar keeps.
const MOST_STATES: usize = 4_000_000;

/// A rule of any kind whose states are numbers.
pub(super) trait ByteMachine: fmt::Debug + Send + Sync {
    fn start(&self) -> u32;

    /// Returns the state after one byte more; `None` if no legal text begins so.
    fn step(&self, state: u32, byte: u8) -> Option<u32>;

    fn is_end(&self, state: u32) -> bool;

    /// Returns the problem because of which `step` and `is_end` said no; see [`Rule::failure`].
    fn failure(&self) -> Option<Problem>;

    /// Returns true if there is such a problem.
    fn failing(&self) -> bool;
}

/// A rule of any kind as a part of a grammar, such as the documents of a JSON Schema. A clone is one reference count.
#[derive(Debug, Clone)]
pub struct EmbeddedRule(Arc<dyn ByteMachine>);

impl EmbeddedRule {
    /// Wraps a rule so that grammars can refer to it.
    pub fn new(rule: impl Rule) -> Self {
        Self(Arc::new(RuleStates::new(rule)))
    }

    pub(super) fn allows_empty(&self) -> bool {
        self.0.is_end(self.0.start())
    }

    pub(super) fn machine(&self) -> &Arc<dyn ByteMachine> {
        &self.0
    }
}

/// A rule, and the numbers of those of its states that were met.
struct RuleStates<R: Rule> {
    rule: R,
    states: Mutex<StateNumbers<R::State>>,
}

struct StateNumbers<S> {
    number: HashMap<S, u32>,
    by_number: Vec<S>,
    is_full: bool,
}

impl<R: Rule> RuleStates<R> {
    fn new(rule: R) -> Self {
        let start = rule.start();
        let states =
            StateNumbers { number: HashMap::from([(start.clone(), 0)]), by_number: vec![start], is_full: false };
        Self { rule, states: Mutex::new(states) }
    }

    fn states(&self) -> MutexGuard<'_, StateNumbers<R::State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, number: u32) -> Option<R::State> {
        self.states().by_number.get(number as usize).cloned()
    }
}

impl<R: Rule> ByteMachine for RuleStates<R> {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Option<u32> {
        let next = self.rule.step(&self.state(state)?, byte)?;
        let mut states = self.states();
        if let Some(&known) = states.number.get(&next) {
            return Some(known);
        }
        // Beyond the limit nothing is allowed rather than too much.
        let number = states.by_number.len() as u32;
        if states.by_number.len() >= MOST_STATES {
            states.is_full = true;
            return None;
        }
        states.number.insert(next.clone(), number);
        states.by_number.push(next);
        Some(number)
    }

    fn is_end(&self, state: u32) -> bool {
        self.state(state).is_some_and(|state| self.rule.is_end(&state))
    }

    fn failure(&self) -> Option<Problem> {
        self.rule.failure().or_else(|| self.states().is_full.then(|| Problem::new(TooManyStates)))
    }

    fn failing(&self) -> bool {
        self.rule.failing() || self.states().is_full
    }
}

impl<R: Rule> fmt::Debug for RuleStates<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RuleStates").field(&self.rule).finish()
    }
}

/// More states than a machine inside a grammar may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the texts of a schema inside the grammar lead to more than {MOST_STATES} states")]
struct TooManyStates;
