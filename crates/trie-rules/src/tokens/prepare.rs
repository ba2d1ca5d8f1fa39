//! Token masks that are computed in advance, on all cores.

use crate::rule::Rule;
use crate::tokens::by_rule::ByRule;
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trie_core::work::Instant;

/// Limits of [`ByRule::prepare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrepareLimits {
    /// Maximum number of states, those of the shortest texts first.
    pub states: usize,
    /// Approximate time limit of the walk.
    pub time: Duration,
}

impl Default for PrepareLimits {
    /// 10,000 states, one second.
    fn default() -> Self {
        Self { states: 10_000, time: Duration::from_secs(1) }
    }
}

impl PrepareLimits {
    /// Sets the limit on states.
    #[must_use]
    pub const fn states(self, states: usize) -> Self {
        Self { states, ..self }
    }

    /// Sets the time limit.
    #[must_use]
    pub const fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }
}

/// Extent of the masks that were computed in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preparation {
    /// Number of states that were found.
    pub states: usize,
    /// Number of states whose masks are cached now.
    pub walked: usize,
    /// True if all states of the rule were visited: then every mask is cached, and none will be computed later.
    pub complete: bool,
}

impl<R: Rule> ByRule<R> {
    /// Computes token masks in advance, on all cores: of all states if there are few, as in automata, else of the
    /// states of the shortest texts. It stops at a limit, also at that of the memory for masks, so that no cached mask
    /// is dropped.
    ///
    /// The first mask of a state takes some ten microseconds, so this pays off only where even that must not delay a
    /// generation.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trie_core::TokenId;
    /// use trie_rules::{ByRule, PrepareLimits, Regex, TokenBytes};
    ///
    /// # let id = |n: usize| TokenId::new(n as u32).unwrap();
    /// let tokens = ["1", "2", "12", "-"];
    /// let tokens = TokenBytes::new(4, tokens.iter().enumerate().map(|(n, piece)| (piece.as_bytes(), id(n))))?;
    /// let dates = ByRule::new(Regex::new("[0-9]{2}-[0-9]")?, Arc::new(tokens))?;
    /// let done = dates.prepare(PrepareLimits::default());
    /// assert!(done.complete && done.walked == 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(&self, limits: PrepareLimits) -> Preparation {
        let deadline = Instant::now().checked_add(limits.time);
        let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let (states, all) = self.shortest(limits.states, late);
        // Each thread may be about to keep one.
        let threads = rayon::current_num_threads();
        let stopped = AtomicBool::new(false);
        let walked = states.par_iter().filter(|state| {
            if stopped.load(Ordering::Relaxed) {
                return false;
            }
            if late() || !self.has_room(threads) {
                stopped.store(true, Ordering::Relaxed);
                return false;
            }
            self.legal(state).is_ok()
        });
        let walked = walked.count();
        Preparation { states: states.len(), walked, complete: all && walked == states.len() }
    }

    /// Up to so many states, those of the shortest texts first, and whether there are no more.
    fn shortest(&self, most: usize, late: impl Fn() -> bool) -> (Vec<R::State>, bool) {
        let start = self.rule().start();
        let mut known = HashSet::from([start.clone()]);
        let mut states = vec![start];
        let mut at = 0;
        while let Some(state) = states.get(at).cloned() {
            at += 1;
            if late() {
                return (states, false);
            }
            let after: Vec<_> = (0..=255).filter_map(|byte| self.rule().step(&state, byte)).collect();
            // What a rule fails with is said where the state is visited.
            if self.rule().failure().is_some() {
                return (states, false);
            }
            for next in after {
                if known.contains(&next) {
                    continue;
                }
                if states.len() >= most {
                    return (states, false);
                }
                known.insert(next.clone());
                states.push(next);
            }
        }
        (states, true)
    }
}
