//! Patterns: regular expressions of ECMAScript.

use crate::lock::lock;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use trie_core::work::look;
use trie_rules::schema::ecma_classes;
use trie_rules::{Automaton, AutomatonError, AutomatonLimits, Regex, RegexError, Rule};

/// What becomes of a pattern.
#[derive(Clone)]
pub(super) enum Held {
    /// It is held by this automaton, which has the whole text.
    By(Arc<str>, Automaton),
    /// No text matches.
    Nothing,
    /// It cannot be held; why.
    Not(String),
}

impl Held {
    /// Whether it is found in a text, as far as is known.
    pub(super) fn finds(&self, text: &str) -> bool {
        let Self::By(_, automaton) = self else { return false };
        let end = text.bytes().try_fold(automaton.start(), |state, byte| automaton.step(&state, byte));
        end.is_some_and(|end| automaton.is_end(&end))
    }
}

#[derive(Default)]
struct Seen {
    patterns: HashMap<String, Held>,
    states: usize,
}

/// Patterns that were seen: tools come again with each request.
static SEEN: LazyLock<Mutex<Seen>> = LazyLock::new(Mutex::default);
const MOST_SEEN: usize = 1000;
/// States of their automata, each of some hundred bytes.
const MOST_STATES: usize = 200_000;
const LIMITS: AutomatonLimits = AutomatonLimits::bytes(2 << 20);

/// An automaton of the texts in which a pattern is found.
pub(super) fn held(pattern: &str) -> Held {
    if let Some(held) = lock(&SEEN).patterns.get(pattern) {
        return held.clone();
    }
    let whole = whole(pattern);
    let held = match Regex::with_limits(&whole, LIMITS) {
        Ok(regex) => Held::By(whole.into(), regex.automaton().clone()),
        Err(RegexError::Automaton { problem: AutomatonError::Nothing, .. }) => Held::Nothing,
        Err(error) => Held::Not(error.to_string()),
    };
    if look(0, 0).is_err() {
        // It says nothing of the pattern that this work was over.
        return held;
    }
    let mut seen = lock(&SEEN);
    if seen.patterns.len() >= MOST_SEEN || seen.states >= MOST_STATES {
        *seen = Seen::default();
    }
    if let Held::By(_, automaton) = &held {
        seen.states += automaton.states();
    }
    seen.patterns.insert(pattern.to_owned(), held.clone());
    held
}

/// The same as a pattern of whole texts: what is not anchored may stand anywhere.
fn whole(pattern: &str) -> String {
    let inner = ecma_classes(pattern);
    let forks = inner.contains('|');
    let (begins, rest) = match inner.strip_prefix('^') {
        Some(rest) if !forks => (true, rest),
        _ => (false, &*inner),
    };
    let (ends, rest) = match rest.strip_suffix('$') {
        Some(rest) if !forks && !rest.ends_with('\\') => (true, rest),
        _ => (false, rest),
    };
    let any = |anchored: bool| if anchored { "" } else { "(?s:.)*" };
    format!("{}(?:{rest}){}", any(begins), any(ends))
}
