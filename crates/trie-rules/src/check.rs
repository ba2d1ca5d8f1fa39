//! Brute-force checks of the laws of rules, for authors of rules.

use crate::rule::Rule;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use trie_core::work::{LimitExceeded, Limits, Work, hold, spend};

/// A law that a rule breaks, and the text at which it does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// The rule answered the same question in two ways.
    #[error("after {text:?}, the same state gave two answers for byte {byte}")]
    ChangesItsMind {
        /// Text that shows it.
        text: Vec<u8>,
        /// Byte after the text.
        byte: u8,
    },
    /// Equal states with different hashes: masks would be kept twice.
    #[error("after {text:?}, equal states have different hashes")]
    UnequalHashes {
        /// Text that shows it.
        text: Vec<u8>,
    },
    /// A dead end: a text that begins no legal text, though the rule allowed it.
    #[error("{text:?} is allowed, but no legal text begins so: generation would run into a dead end")]
    DeadEnd {
        /// Text that shows it.
        text: Vec<u8>,
    },
    /// It takes more work than it may: ask for fewer states.
    #[error("the laws of the rule are not all looked at: {over}")]
    TooMuch {
        /// Budget that was exceeded.
        #[from]
        over: LimitExceeded,
    },
    /// No text is legal.
    #[error("no text is legal")]
    Nothing,
    /// The rule has no states to check.
    #[error("{what} has no states to ask, so its laws are not looked at")]
    Unasked {
        /// Name of the unsupported input.
        what: &'static str,
    },
}

trie_core::error_kind!(Broken, Rule);

/// Extent of a successful check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckExtent {
    /// States that were reached.
    pub states: usize,
    /// True if every reachable state was checked.
    pub complete: bool,
}

/// Checks up to `most_states` states of a rule, those of the shortest texts first: equal questions must get equal
/// answers, and every state must lead to an end. States that were not visited count as leading to an end.
///
/// # Errors
/// The first law that is broken.
pub fn check_rule<R: Rule>(rule: &R, most_states: usize) -> Result<CheckExtent, Broken> {
    Work::run_bounded(Limits::default(), || looked_at(rule, most_states))
}

fn looked_at<R: Rule>(rule: &R, most_states: usize) -> Result<CheckExtent, Broken> {
    let hasher = RandomState::new();
    let mut known: HashMap<R::State, usize> = HashMap::new();
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut into: Vec<Vec<usize>> = vec![Vec::new()];
    let (mut ends, mut border) = (Vec::new(), Vec::new());
    let mut queue = VecDeque::from([rule.start()]);
    known.insert(rule.start(), 0);
    while let Some(state) = queue.pop_front() {
        let number = known[&state];
        let text = texts[number].clone();
        hold(128 + text.len() + size_of::<R::State>())?;
        if state != state.clone() || hasher.hash_one(&state) != hasher.hash_one(state.clone()) {
            return Err(Broken::UnequalHashes { text });
        }
        if rule.is_end(&state) != rule.is_end(&state.clone()) {
            return Err(Broken::ChangesItsMind { text, byte: 0 });
        }
        if rule.is_end(&state) {
            ends.push(number);
        }
        for byte in 0..=255 {
            spend(4)?;
            let after = rule.step(&state, byte);
            if after != rule.step(&state.clone(), byte) {
                return Err(Broken::ChangesItsMind { text, byte });
            }
            let Some(after) = after else { continue };
            let to = match known.get(&after) {
                Some(&to) => to,
                None if known.len() < most_states => {
                    let to = texts.len();
                    known.insert(after.clone(), to);
                    texts.push([text.as_slice(), &[byte]].concat());
                    into.push(Vec::new());
                    queue.push_back(after);
                    to
                }
                None => {
                    border.push(number);
                    continue;
                }
            };
            into[to].push(number);
        }
    }
    let mut live = vec![false; texts.len()];
    let mut queue: Vec<usize> = ends.iter().chain(&border).copied().collect();
    while let Some(number) = queue.pop() {
        if !std::mem::replace(&mut live[number], true) {
            queue.extend(&into[number]);
        }
    }
    match live.iter().position(|&live| !live) {
        Some(0) => Err(Broken::Nothing),
        Some(dead) => Err(Broken::DeadEnd { text: texts.swap_remove(dead) }),
        None => Ok(CheckExtent { states: texts.len(), complete: border.is_empty() }),
    }
}
