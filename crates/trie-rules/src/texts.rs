//! List of all texts of a rule with few texts.

use crate::rule::Rule;
use std::collections::HashMap;
use trie_core::NotListed;
use trie_core::work::{LimitExceeded, spend};

/// Reason why the texts of a rule cannot be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextsError {
    /// The language is infinite: some state is reachable from itself.
    #[error("the language is infinite: something may be repeated for ever")]
    Endless,
    /// There are more than were asked for.
    #[error("there are more than {limit} texts")]
    TooMany {
        /// The most that were wanted.
        limit: usize,
    },
    /// The rule is walked token by token, so it has no texts to list.
    #[error("the texts of {what} are not listed, however few there are: give them as a list")]
    Unlisted {
        /// Name of the unsupported rule.
        what: &'static str,
    },
    /// It takes more work than it may.
    #[error("the texts are not all found: {over}")]
    TooMuch {
        /// Budget that was exceeded.
        #[from]
        over: LimitExceeded,
    },
    /// The search visited this many states without an answer.
    #[error("after {states} states it is not settled whether there are at most {limit} texts")]
    Unsettled {
        /// Number of states visited.
        states: usize,
        /// The most that were wanted.
        limit: usize,
    },
}

trie_core::error_kind!(TextsError, Rule);

impl From<TextsError> for NotListed {
    fn from(error: TextsError) -> Self {
        match error {
            TextsError::TooMany { limit } | TextsError::Unsettled { limit, .. } => Self::TooMany { limit },
            TextsError::TooMuch { .. } | TextsError::Endless | TextsError::Unlisted { .. } => Self::Endless,
        }
    }
}

/// States that were reached, breadth first, and their steps.
struct StateGraph<S> {
    known: HashMap<S, u32>,
    order: Vec<S>,
    /// Known transitions: byte and target state, ascending by byte.
    steps: Vec<Vec<(u8, u32)>>,
    ends: Vec<bool>,
}

/// Returns all texts of a rule, if there are at most `limit`: shorter ones first, texts of equal length in the order of
/// their bytes.
///
/// For finite automata the answer is exact. For other rules it is exact if it is found among the first `100,000 + 64 ·
/// limit` states. A state that can reach itself makes the texts infinitely many, and every allowed prefix counts as at
/// least one text. The rule must have no dead ends, as [`Rule`] requires.
///
/// ```
/// use trie_rules::{Regex, TextsError, texts};
///
/// let answers = texts(&Regex::new("yes|no|n/?a")?, 10)?;
/// assert_eq!(answers, [b"na".to_vec(), b"no".to_vec(), b"n/a".to_vec(), b"yes".to_vec()]);
/// assert_eq!(texts(&Regex::new("[a-z]{9}")?, 10), Err(TextsError::TooMany { limit: 10 }));
/// assert_eq!(texts(&Regex::new("a*")?, 10), Err(TextsError::Endless));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Infinitely many texts, more than `limit`, or a search that settled neither.
pub fn texts<R: Rule>(rule: &R, limit: usize) -> Result<Vec<Vec<u8>>, TextsError> {
    let most = limit.saturating_mul(64).saturating_add(100_000);
    let start = rule.start();
    let mut reached = StateGraph {
        known: HashMap::from([(start.clone(), 0)]),
        order: vec![start],
        steps: Vec::new(),
        ends: Vec::new(),
    };
    // Looked through whenever it doubled: most of what is endless is so soon.
    let mut look_at = 64;
    while reached.steps.len() < reached.order.len() {
        if reached.steps.len() >= look_at {
            look_at *= 2;
            reached.count(limit)?;
        }
        if reached.steps.len() >= most {
            return Err(TextsError::Unsettled { states: most, limit });
        }
        spend(256)?;
        reached.ask(rule);
    }
    reached.count(limit)?;
    Ok(reached.list())
}

impl<S: Clone + Eq + std::hash::Hash> StateGraph<S> {
    /// Asks the next state for its steps.
    fn ask<R: Rule<State = S>>(&mut self, rule: &R) {
        let state = self.order[self.steps.len()].clone();
        self.ends.push(rule.is_end(&state));
        let mut steps = Vec::new();
        for byte in 0..=255 {
            let Some(after) = rule.step(&state, byte) else { continue };
            let to = self.known.get(&after).copied().unwrap_or_else(|| {
                self.known.insert(after.clone(), self.order.len() as u32);
                self.order.push(after);
                self.order.len() as u32 - 1
            });
            steps.push((byte, to));
        }
        self.steps.push(steps);
    }

    /// Returns a lower bound on the number of texts: those that end at visited states, and one for each transition to
    /// another.
    fn count(&self, limit: usize) -> Result<(), TextsError> {
        let states = self.order.len();
        let mut waits_for = vec![0u32; states];
        self.steps.iter().flatten().for_each(|&(_, to)| waits_for[to as usize] += 1);
        let mut ways = vec![0usize; states];
        ways[0] = 1;
        let mut ready = if waits_for[0] == 0 { vec![0u32] } else { Vec::new() };
        let (mut passed, mut texts) = (0, 0usize);
        while let Some(state) = ready.pop() {
            passed += 1;
            let of_it = ways[state as usize];
            let Some(steps) = self.steps.get(state as usize) else {
                texts = texts.saturating_add(of_it);
                continue;
            };
            texts = texts.saturating_add(of_it * usize::from(self.ends[state as usize]));
            for &(_, to) in steps {
                let to = to as usize;
                ways[to] = ways[to].saturating_add(of_it);
                waits_for[to] -= 1;
                if waits_for[to] == 0 {
                    ready.push(to as u32);
                }
            }
        }
        match () {
            // All can be reached, so what waits for ever waits for itself.
            () if passed < states => Err(TextsError::Endless),
            () if texts > limit => Err(TextsError::TooMany { limit }),
            () => Ok(()),
        }
    }

    fn list(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut level = vec![(0u32, Vec::new())];
        while !level.is_empty() {
            let mut longer = Vec::new();
            for (state, text) in level {
                for &(byte, to) in &self.steps[state as usize] {
                    longer.push((to, [text.as_slice(), &[byte]].concat()));
                }
                if self.ends[state as usize] {
                    found.push(text);
                }
            }
            level = longer;
        }
        found
    }
}
