//! Patterns that are held to lengths too, or may not hold a text.

use crate::values::marker::{Finder, Finds, Search};
use std::collections::{HashMap, HashSet};
use trie_core::work::spend;
use trie_rules::{Automaton, Rule};

/// What holds besides a pattern.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    min: u32,
    max: Option<u32>,
    /// Texts that may not come.
    without: Option<Finder>,
    /// Pairs of states from which nothing leads to an end.
    dead: HashSet<(u32, Bound)>,
}

/// Where in bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Bound {
    /// Characters, as far as they matter.
    count: u32,
    search: Search,
}

/// Pairs of states beyond which bounds are not held.
const MOST_PAIRS: usize = 50_000;

/// Why there are no bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unbounded {
    /// No text of the pattern is in them.
    Nothing,
    /// There would be too many states.
    TooLarge,
}

impl Bounds {
    /// Bounds of an automaton; `Ok(None)` where they leave nothing out.
    pub(crate) fn of(
        automaton: &Automaton,
        min: u32,
        max: Option<u32>,
        without: &[Vec<u8>],
    ) -> Result<Option<Self>, Unbounded> {
        let states = reachable(automaton);
        let reads = |text: &Vec<u8>| {
            let from =
                |state: &u32| text.iter().try_fold(*state, |state, &byte| automaton.step(&state, byte)).is_some();
            states.iter().any(from)
        };
        let without: Vec<Vec<u8>> = without.iter().filter(|text| reads(text)).cloned().collect();
        if without.is_empty() && min == 0 && max.is_none() {
            return Ok(None);
        }
        let letters = letters(automaton, &states, &without.concat());
        let without = (!without.is_empty()).then(|| Finder::new(without));
        let mut bounds = Self { min, max, without, dead: HashSet::new() };
        bounds.dead = bounds.dead_ends(automaton, &letters)?;
        if bounds.dead.contains(&(automaton.start(), Bound::default())) {
            return Err(Unbounded::Nothing);
        }
        Ok(Some(bounds))
    }

    fn dead_ends(&self, automaton: &Automaton, letters: &[u8]) -> Result<HashSet<(u32, Bound)>, Unbounded> {
        let start = (automaton.start(), Bound::default());
        let mut numbers = HashMap::from([(start, 0)]);
        let (mut pairs, mut before): (Vec<_>, Vec<Vec<usize>>) = (vec![start], vec![Vec::new()]);
        let mut at = 0;
        while at < pairs.len() {
            let (state, bound) = pairs[at];
            for &byte in letters {
                let Some(next) = automaton.step(&state, byte).zip(self.next(bound, byte)) else { continue };
                let to = *numbers.entry(next).or_insert_with(|| {
                    pairs.push(next);
                    before.push(Vec::new());
                    pairs.len() - 1
                });
                before[to].push(at);
            }
            at += 1;
            if pairs.len() > MOST_PAIRS || spend(letters.len()).is_err() {
                return Err(Unbounded::TooLarge);
            }
        }
        let is_end = |at: &usize| automaton.is_end(&pairs[*at].0) && self.is_end(pairs[*at].1);
        let mut open: Vec<usize> = (0..pairs.len()).filter(is_end).collect();
        let mut live: HashSet<usize> = open.iter().copied().collect();
        while let Some(at) = open.pop() {
            open.extend(before[at].iter().filter(|from| live.insert(**from)));
        }
        Ok((0..pairs.len()).filter(|at| !live.contains(at)).map(|at| pairs[at]).collect())
    }

    fn next(&self, bound: Bound, byte: u8) -> Option<Bound> {
        let inside = byte & 0xc0 == 0x80;
        let count = match self.max {
            _ if inside => bound.count,
            Some(max) if bound.count >= max => return None,
            Some(_) => bound.count + 1,
            None => (bound.count + 1).min(self.min),
        };
        let search = match self.without.as_ref().map(|without| without.step(bound.search, byte, false).1) {
            None | Some(Finds::Text) => Search::default(),
            Some(Finds::Held(search)) => search,
            Some(Finds::Found(_) | Finds::Dead) => return None,
        };
        Some(Bound { count, search })
    }

    /// After a byte that leads the automaton to this state.
    pub(crate) fn step(&self, bound: Bound, byte: u8, state: u32) -> Option<Bound> {
        self.next(bound, byte).filter(|next| !self.dead.contains(&(state, *next)))
    }

    pub(crate) fn is_end(&self, bound: Bound) -> bool {
        bound.count >= self.min
    }
}

/// The states of an automaton.
fn reachable(automaton: &Automaton) -> Vec<u32> {
    let mut states = vec![automaton.start()];
    let (mut seen, mut at) = (HashSet::from([automaton.start()]), 0);
    while at < states.len() {
        let state = states[at];
        let next = (0..=255).filter_map(|byte| automaton.step(&state, byte));
        let next: Vec<u32> = next.filter(|state| seen.insert(*state)).collect();
        states.extend(next);
        at += 1;
    }
    states
}

/// One byte of each kind that the automaton or the bounds tell apart.
fn letters(automaton: &Automaton, states: &[u32], told_apart: &[u8]) -> Vec<u8> {
    let mut kinds = HashSet::new();
    let kind = |byte: &u8| {
        let row: Vec<Option<u32>> = states.iter().map(|state| automaton.step(state, *byte)).collect();
        (row, byte & 0xc0 == 0x80, Some(*byte).filter(|byte| told_apart.contains(byte)))
    };
    (0..=255).filter(|byte| kinds.insert(kind(byte))).collect()
}
