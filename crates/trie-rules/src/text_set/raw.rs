//! Automata over classes of characters, and their canonical form: one automaton for each set of texts.

use super::alphabet::Alphabet;
use super::nfa::{Nfa, State};
use crate::automaton::table::{DEAD, Table};
use crate::automaton::{AutomatonError, AutomatonLimits};
use lru::DefaultHasher;
use std::collections::HashMap;
use trie_core::work::spend;

/// The states of an automaton, from 0 on; no states: no texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Raw {
    /// After each state, by class of character.
    pub(super) next: Vec<u32>,
    pub(super) ends: Vec<bool>,
    pub(super) width: usize,
}

impl Raw {
    #[inline]
    pub(super) fn step(&self, state: u32, class: u32) -> u32 {
        self.next[state as usize * self.width + class as usize]
    }

    pub(super) fn row(&self, state: u32) -> &[u32] {
        &self.next[state as usize * self.width..][..self.width]
    }

    /// The one smallest automaton of the same texts: states and classes are numbered in the order in which they come.
    pub(super) fn canonical(self, alphabet: &Alphabet) -> (Alphabet, Self) {
        let none = || (Alphabet::one(), Self { next: Vec::new(), ends: Vec::new(), width: 1 });
        if self.ends.is_empty() {
            return none();
        }
        let ends = self.ends.iter().map(|&end| u32::from(end)).collect();
        let table = Table { classes: [0; 256], width: self.width, next: self.next, ends, start: 0 };
        let Ok(table) = table.without_dead_ends() else { return none() };
        let class = table.equivalent();
        // Columns that agree are one.
        let mut known: HashMap<Vec<u32>, u32, DefaultHasher> = HashMap::default();
        let as_one: Vec<u32> = (0..table.width)
            .map(|column| {
                let after = table.next.iter().skip(column).step_by(table.width);
                let after = after.map(|&to| if to == DEAD { DEAD } else { class[to as usize] }).collect();
                let fresh = known.len() as u32;
                *known.entry(after).or_insert(fresh)
            })
            .collect();
        let (alphabet, columns) = alphabet.merge_classes(&as_one);
        let column: Vec<usize> =
            columns.iter().map(|one| as_one.iter().position(|other| other == one).unwrap_or_default()).collect();
        let count = class.iter().max().map_or(0, |&most| most as usize + 1);
        let mut number = vec![DEAD; count];
        number[class[0] as usize] = 0;
        let (mut order, mut next, mut ends) = (vec![0u32], Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            ends.push(table.ends[state as usize] != 0);
            for &column in &column {
                let to = table.next[state as usize * table.width + column];
                next.push(if to == DEAD {
                    DEAD
                } else {
                    let of = &mut number[class[to as usize] as usize];
                    if *of == DEAD {
                        *of = order.len() as u32;
                        order.push(to);
                    }
                    *of
                });
            }
        }
        let width = alphabet.width;
        (alphabet, Self { next, ends, width })
    }
}

/// The sets of states of an automaton that does not look around.
struct Subsets<'n> {
    nfa: &'n Nfa,
    known: HashMap<Vec<u32>, u32, DefaultHasher>,
    order: Vec<Vec<u32>>,
    /// Sets by the states that a character leads to.
    together: HashMap<Vec<u32>, u32, DefaultHasher>,
    seen: Vec<u32>,
    round: u32,
    bytes: usize,
}

/// All sets of states that texts lead to. `classes`: those of each set of characters.
pub(super) fn determinise(
    nfa: &Nfa,
    classes: &[Vec<u32>],
    width: usize,
    limits: AutomatonLimits,
) -> Result<Raw, AutomatonError> {
    let mut subsets = Subsets {
        nfa,
        known: HashMap::default(),
        order: Vec::new(),
        together: HashMap::default(),
        seen: vec![0; nfa.states.len()],
        round: 0,
        bytes: 0,
    };
    subsets.number(&[nfa.main().entry]);
    let (mut next, mut ends) = (Vec::new(), Vec::new());
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); width];
    let mut at = 0;
    while let Some(set) = subsets.order.get(at).cloned() {
        at += 1;
        spend(16 + set.len())?;
        let row = next.len();
        next.resize(row + width, DEAD);
        after.iter_mut().for_each(Vec::clear);
        let (mut is_end, mut all) = (false, false);
        for &state in &set {
            match nfa.states[state as usize] {
                State::Set { set, next } => {
                    let classes = &classes[set as usize];
                    for &class in classes {
                        after[class as usize].push(next);
                    }
                }
                State::Accept => is_end = true,
                State::All => (is_end, all) = (true, true),
                _ => {}
            }
        }
        ends.push(is_end);
        for (class, after) in after.iter_mut().enumerate() {
            if all {
                next[row + class] = at as u32 - 1;
            } else if !after.is_empty() {
                spend(after.len())?;
                after.sort_unstable();
                after.dedup();
                next[row + class] = subsets.cached_number(after);
            }
        }
        let waiting = (subsets.order.len() - at) * width;
        if size_of::<u32>() * (next.len() + waiting) + subsets.bytes > limits.bytes {
            return Err(AutomatonError::TooLarge { limit: limits.bytes });
        }
    }
    Ok(Raw { next, ends, width })
}

impl Subsets<'_> {
    fn cached_number(&mut self, states: &[u32]) -> u32 {
        if let Some(&known) = self.together.get(states) {
            return known;
        }
        let number = self.number(states);
        self.bytes += size_of::<(Vec<u32>, u32)>() + size_of_val(states);
        self.together.insert(states.to_vec(), number);
        number
    }

    fn number(&mut self, from: &[u32]) -> u32 {
        self.round += 1;
        let mut queue = from.to_vec();
        let mut set = Vec::new();
        let mut all = None;
        while let Some(state) = queue.pop() {
            if std::mem::replace(&mut self.seen[state as usize], self.round) == self.round {
                continue;
            }
            match &self.nfa.states[state as usize] {
                State::Split(ways) => queue.extend(ways),
                State::All => all = Some(state),
                _ => set.push(state),
            }
        }
        // Everything matches: whatever else would does not matter.
        if let Some(all) = all {
            set = vec![all];
        }
        set.sort_unstable();
        if let Some(&known) = self.known.get(&set) {
            return known;
        }
        let number = self.order.len() as u32;
        self.bytes += 2 * (size_of::<Vec<u32>>() + size_of_val(&*set)) + 32;
        self.known.insert(set.clone(), number);
        self.order.push(set);
        number
    }
}
