//! Subset construction: each state of the deterministic automaton is a set of states of a nondeterministic one. Most
//! sets have one member, whose steps are ranges of bytes. These are copied range by range instead of being computed for
//! each class of bytes.

use crate::automaton::table::{AutomatonError, AutomatonLimits, DEAD, Table};
use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;
use std::collections::HashMap;
use std::mem::size_of;
use trie_core::work::spend;

/// States of an automaton, and the patterns that end at each.
pub(crate) struct Subsets {
    pub(crate) table: Table,
    /// Matching patterns of each set, ascending.
    pub(crate) matched: Vec<Box<[u32]>>,
}

/// Key of a set: its members that read a byte or match, ascending.
type Set = Box<[StateID]>;

struct Builder<'n> {
    nfa: &'n NFA,
    known: HashMap<Set, u32>,
    order: Vec<Set>,
    /// The set that each state alone leads to.
    alone: Vec<u32>,
    /// Sets that several lead to together.
    together: HashMap<Box<[StateID]>, u32>,
    seen: Vec<u32>,
    round: u32,
    stack: Vec<StateID>,
    bytes: usize,
}

impl Subsets {
    /// `None` for what looks around.
    pub(crate) fn from_nfa(nfa: &NFA, limits: AutomatonLimits) -> Option<Result<Self, AutomatonError>> {
        nfa.look_set_any().is_empty().then(|| Self::without_looks(nfa, limits))
    }

    fn without_looks(nfa: &NFA, limits: AutomatonLimits) -> Result<Self, AutomatonError> {
        let byte_classes = nfa.byte_classes();
        let width = byte_classes.alphabet_len() - 1;
        let mut classes = [0; 256];
        (0..=255u8).for_each(|byte| classes[usize::from(byte)] = byte_classes.get(byte));
        let class = |byte: u8| usize::from(classes[usize::from(byte)]);
        let states = nfa.states().len();
        let mut builder = Builder {
            nfa,
            known: HashMap::new(),
            order: Vec::new(),
            alone: vec![DEAD; states],
            together: HashMap::new(),
            seen: vec![0; states],
            round: 0,
            stack: Vec::new(),
            bytes: 0,
        };
        if builder.after_one(nfa.start_anchored()) == DEAD {
            return Err(AutomatonError::Nothing);
        }
        let (mut next, mut ends, mut matched) = (Vec::new(), Vec::new(), Vec::new());
        let mut after: Vec<Vec<StateID>> = vec![Vec::new(); width];
        let mut at = 0;
        while let Some(set) = builder.order.get(at).cloned() {
            at += 1;
            spend(16 + set.len())?;
            let patterns: Box<[u32]> = set.iter().filter_map(|&id| pattern(nfa.state(id))).collect();
            ends.push(patterns.first().map_or(0, |first| first + 1));
            matched.push(patterns);
            let row = next.len();
            next.resize(row + width, DEAD);
            let readers = set.iter().filter(|&&id| pattern(nfa.state(id)).is_none());
            if readers.clone().count() == 1 {
                readers.for_each(|&id| {
                    ranges(nfa.state(id), |first, last, to| {
                        let to = builder.after_one(to);
                        next[row + class(first)..=row + class(last)].fill(to);
                    });
                });
            } else {
                after.iter_mut().for_each(Vec::clear);
                readers.for_each(|&id| {
                    ranges(nfa.state(id), |first, last, to| {
                        after[class(first)..=class(last)].iter_mut().for_each(|after| after.push(to));
                    });
                });
                for (class, after) in after.iter_mut().enumerate().filter(|(_, after)| !after.is_empty()) {
                    spend(after.len())?;
                    next[row + class] = builder.after_several(after);
                }
            }
            let waiting = (builder.order.len() - at) * width;
            if size_of::<u32>() * (next.len() + waiting) + builder.bytes > limits.bytes {
                return Err(AutomatonError::TooLarge { limit: limits.bytes });
            }
        }
        Ok(Self { table: Table { classes, width, next, ends, start: 0 }, matched })
    }
}

fn pattern(state: &State) -> Option<u32> {
    if let State::Match { pattern_id } = state { Some(pattern_id.as_u32()) } else { None }
}

/// The steps of a state: first and last byte, and where to.
fn ranges(state: &State, mut each: impl FnMut(u8, u8, StateID)) {
    match state {
        State::ByteRange { trans } => each(trans.start, trans.end, trans.next),
        State::Sparse(sparse) => sparse.transitions.iter().for_each(|trans| each(trans.start, trans.end, trans.next)),
        State::Dense(dense) => {
            let steps = dense.transitions.iter().zip(0..=255u8);
            steps.filter(|&(&to, _)| to != StateID::ZERO).for_each(|(&to, byte)| each(byte, byte, to));
        }
        _ => {}
    }
}

/// Approximate overhead of an allocation, in bytes.
const OVERHEAD: usize = 32;

impl Builder<'_> {
    fn after_one(&mut self, state: StateID) -> u32 {
        let known = self.alone[state];
        if known != DEAD {
            return known;
        }
        let made = self.closure(&[state]);
        self.alone[state] = made;
        made
    }

    fn after_several(&mut self, states: &mut Vec<StateID>) -> u32 {
        states.sort_unstable();
        states.dedup();
        if let [one] = states[..] {
            return self.after_one(one);
        }
        if let Some(&known) = self.together.get(&**states) {
            return known;
        }
        let made = self.closure(states);
        self.bytes += size_of::<(Box<[StateID]>, u32)>() + size_of_val(&**states);
        self.together.insert(states.as_slice().into(), made);
        made
    }

    /// Computes the epsilon closure of a set of states.
    fn closure(&mut self, from: &[StateID]) -> u32 {
        self.round += 1;
        self.stack.extend_from_slice(from);
        let mut set = Vec::new();
        while let Some(id) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[id], self.round) == self.round {
                continue;
            }
            match self.nfa.state(id) {
                State::Union { alternates } => self.stack.extend_from_slice(alternates),
                State::BinaryUnion { alt1, alt2 } => self.stack.extend([*alt1, *alt2]),
                State::Capture { next, .. } | State::Look { next, .. } => self.stack.push(*next),
                State::Fail => {}
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Match { .. } => set.push(id),
            }
        }
        set.sort_unstable_by_key(|&id| (pattern(self.nfa.state(id)), id));
        if set.is_empty() {
            return DEAD;
        }
        let set: Set = set.into();
        if let Some(&known) = self.known.get(&set) {
            return known;
        }
        let number = self.order.len() as u32;
        self.bytes += 2 * (size_of::<Set>() + size_of_val(&*set) + OVERHEAD);
        self.known.insert(set.clone(), number);
        self.order.push(set);
        number
    }
}
