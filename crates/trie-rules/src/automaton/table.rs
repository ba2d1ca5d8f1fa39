//! Transition tables of finite automata: explored state by state, trimmed and minimised.

use lru::DefaultHasher;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem::size_of;
use trie_core::work::{LimitExceeded, spend};

pub(crate) const DEAD: u32 = u32::MAX;

/// A finite automaton over bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// Equivalence class of each byte.
    pub(crate) classes: [u8; 256],
    pub(crate) width: usize,
    /// After each state, by class.
    pub(crate) next: Vec<u32>,
    /// Pattern that ends at each state: 0 for none, else the number of the first one + 1.
    pub(crate) ends: Vec<u32>,
    pub(crate) start: u32,
}

/// Equivalence classes of bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) of: [u8; 256],
    /// A byte of each.
    pub(crate) bytes: Vec<u8>,
}

impl Classes {
    /// Builds the classes: bytes with equal keys form a class. Classes are numbered in the order of their first bytes.
    pub(crate) fn from_key<K: Eq + Hash>(mut key: impl FnMut(u8) -> K) -> Self {
        let mut known = HashMap::new();
        let (mut of, mut bytes) = ([0; 256], Vec::new());
        for byte in 0..=255u8 {
            let class = *known.entry(key(byte)).or_insert_with(|| {
                bytes.push(byte);
                (bytes.len() - 1) as u8
            });
            of[usize::from(byte)] = class;
        }
        Self { of, bytes }
    }
}

/// States that were found, and the bytes that they take in addition to the table.
pub(crate) struct FoundStates<S> {
    known: HashMap<S, u32>,
    order: Vec<S>,
    weight: usize,
}

impl Table {
    /// Explores every reachable state, with one step for each class of bytes. The table that is returned may have dead
    /// ends, and is not minimal.
    pub(crate) fn explore<S: Clone + Eq + Hash>(
        classes: &Classes,
        start: S,
        limits: AutomatonLimits,
        weigh: impl Fn(&S) -> usize,
        mut step: impl FnMut(&S, u8) -> Option<S>,
        end: impl Fn(&S) -> u32,
    ) -> Result<Self, AutomatonError> {
        let mut found = FoundStates { known: HashMap::new(), order: Vec::new(), weight: 0 };
        found.number(start, &weigh);
        let (mut next, mut ends) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(state) = found.order.get(at).cloned() {
            at += 1;
            spend(classes.bytes.len())?;
            ends.push(end(&state));
            for &byte in &classes.bytes {
                next.push(step(&state, byte).map_or(DEAD, |after| found.number(after, &weigh)));
            }
            let bytes = size_of::<u32>() * (next.len() + (found.order.len() - at) * classes.bytes.len());
            if bytes + found.weight > limits.bytes {
                return Err(AutomatonError::TooLarge { limit: limits.bytes });
            }
        }
        Ok(Self { classes: classes.of, width: classes.bytes.len(), next, ends, start: 0 })
    }

    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        let next = *self.next.get(state as usize * self.width + usize::from(self.classes[usize::from(byte)]))?;
        (next != DEAD).then_some(next)
    }

    #[inline]
    pub(crate) fn is_end(&self, state: u32) -> bool {
        self.ends.get(state as usize).is_some_and(|&end| end != 0)
    }

    fn row(&self, state: usize) -> &[u32] {
        &self.next[state * self.width..][..self.width]
    }

    /// Removes dead ends: states from which no end can be reached.
    pub(crate) fn without_dead_ends(mut self) -> Result<Self, AutomatonError> {
        let live = self.live();
        if !live[self.start as usize] {
            return Err(AutomatonError::Nothing);
        }
        self.next.iter_mut().filter(|to| **to != DEAD && !live[**to as usize]).for_each(|to| *to = DEAD);
        Ok(self)
    }

    /// States from which an end can be reached.
    fn live(&self) -> Vec<bool> {
        const SWEEPS: usize = 8;
        let states = self.ends.len();
        let mut live: Vec<bool> = self.ends.iter().map(|&end| end != 0).collect();
        // Steps mostly lead to later states: backwards, one sweep finds most.
        for _ in 0..SWEEPS {
            let mut changed = false;
            for state in (0..states).rev().filter(|&state| !live[state]).collect::<Vec<_>>() {
                live[state] = self.row(state).iter().any(|&to| to != DEAD && live[to as usize]);
                changed |= live[state];
            }
            if !changed {
                return live;
            }
        }
        let into = Incoming::from_table(self);
        let mut queue: Vec<u32> = (0..states as u32).filter(|&state| live[state as usize]).collect();
        while let Some(state) = queue.pop() {
            for &edge in into.edges(state) {
                let tail = into.tails[edge as usize];
                if !std::mem::replace(&mut live[tail as usize], true) {
                    queue.push(tail);
                }
            }
        }
        live
    }

    /// Returns the minimal automaton of the same texts. States and classes of bytes are numbered in the order in which
    /// they are reached, so that equal languages have equal tables. Unreachable states are left out. `O(m log m)` for
    /// `m` steps that lead somewhere (Valmari's refinement).
    pub(crate) fn minimal(self) -> Self {
        let class = self.equivalent();
        let count = class.iter().max().map_or(0, |&most| most as usize + 1);
        let classes = self.classes_of(&class);
        let mut number = vec![DEAD; count];
        let mut order = vec![self.start];
        number[class[self.start as usize] as usize] = 0;
        let (mut next, mut ends) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            ends.push(self.ends[state as usize]);
            for &byte in &classes.bytes {
                next.push(self.step(state, byte).map_or(DEAD, |to| {
                    let of = &mut number[class[to as usize] as usize];
                    if *of == DEAD {
                        *of = order.len() as u32;
                        order.push(to);
                    }
                    *of
                }));
            }
        }
        Self { classes: classes.of, width: classes.bytes.len(), next, ends, start: 0 }
    }

    /// Bytes whose columns agree.
    fn classes_of(&self, class: &[u32]) -> Classes {
        let after = |column: usize| self.next.iter().skip(column).step_by(self.width);
        let after = |column| after(column).map(|&to| if to == DEAD { DEAD } else { class[to as usize] });
        let mut hashes = vec![0u64; self.width];
        for (state, row) in self.next.chunks(self.width).enumerate() {
            let factor = factor(state as u64);
            for (hash, &to) in hashes.iter_mut().zip(row).filter(|&(_, &to)| to != DEAD) {
                *hash = hash.wrapping_add((u64::from(class[to as usize]) + 1).wrapping_mul(factor));
            }
        }
        let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
        let same: Vec<usize> = (0..self.width)
            .map(|column| {
                let alike = known.entry(hashes[column]).or_default();
                // Equal hashes are no proof.
                let found = alike.iter().copied().find(|&other| after(other).eq(after(column)));
                found.unwrap_or_else(|| {
                    alike.push(column);
                    column
                })
            })
            .collect();
        Classes::from_key(|byte| same[usize::from(self.classes[usize::from(byte)])])
    }

    /// For each state the number of its class: states that nothing tells apart have the same.
    pub(crate) fn equivalent(&self) -> Vec<u32> {
        let (class, stable) = self.told_apart_soon();
        if stable { class } else { self.refine_classes(&class) }
    }

    /// Distinguishes states by a few steps, with hashes of rows, which usually suffices. Returns the classes, and
    /// whether they are final.
    fn told_apart_soon(&self) -> (Vec<u32>, bool) {
        /// A chain of states takes a round for each: few states are told apart so sooner than by splitting blocks.
        const FEW: usize = 512;
        let rounds = if self.ends.len() <= FEW { 48 } else { 8 };
        let mut class = self.ends.clone();
        let mut count = 0;
        // A sum has no order in which the processor must do it.
        let factors: Vec<u64> = (0..self.width as u64).map(factor).collect();
        for _ in 0..rounds {
            let mut known: HashMap<(u32, u64), u32, DefaultHasher> = HashMap::default();
            let number = |to: u32| if to == DEAD { 0 } else { u64::from(class[to as usize]) + 1 };
            let split: Vec<u32> = (0..class.len())
                .map(|state| {
                    let row = self.row(state).iter().zip(&factors);
                    let hash = row.fold(0u64, |sum, (&to, factor)| sum.wrapping_add(number(to).wrapping_mul(*factor)));
                    let fresh = known.len() as u32;
                    *known.entry((class[state], hash)).or_insert(fresh)
                })
                .collect();
            let found = known.len();
            class = split;
            if found == count || found == class.len() {
                // What differs in hash differs; that what agrees in hash agrees is proved here.
                return (class.clone(), found == class.len() || self.agrees(&class, found));
            }
            count = found;
        }
        (class, false)
    }

    fn agrees(&self, class: &[u32], count: usize) -> bool {
        let number = |to: u32| if to == DEAD { DEAD } else { class[to as usize] };
        let mut first = vec![usize::MAX; count];
        (0..class.len()).all(|state| {
            let of = &mut first[class[state] as usize];
            if *of == usize::MAX {
                *of = state;
                return true;
            }
            let (row, other) = (self.row(state).iter(), self.row(*of).iter());
            self.ends[state] == self.ends[*of] && row.map(|&to| number(to)).eq(other.map(|&to| number(to)))
        })
    }

    /// The classes, from some that are known to differ.
    fn refine_classes(&self, known: &[u32]) -> Vec<u32> {
        let into = Incoming::from_table(self);
        let mut states = Partition::from_keys(known);
        let mut edges = Partition::from_keys(&into.labels);
        // A block of states splits the steps that lead into it from the others of their byte; a set of steps splits
        // states that have one of them from those that have none.
        let (mut block, mut set) = (1, 0);
        while set < edges.len() {
            for at in edges.range(set) {
                states.mark(into.tails[edges.elements[at] as usize]);
            }
            states.split();
            set += 1;
            while block < states.len() {
                for at in states.range(block) {
                    into.edges(states.elements[at]).iter().for_each(|&edge| edges.mark(edge));
                }
                edges.split();
                block += 1;
            }
        }
        states.set
    }
}

impl<S: Clone + Eq + Hash> FoundStates<S> {
    fn number(&mut self, state: S, weigh: impl Fn(&S) -> usize) -> u32 {
        if let Some(&known) = self.known.get(&state) {
            return known;
        }
        let number = self.order.len() as u32;
        // Twice: as a key and in order.
        self.weight += 2 * (size_of::<S>() + weigh(&state));
        self.known.insert(state.clone(), number);
        self.order.push(state);
        number
    }
}

/// Returns a pseudorandom factor for hashes: sums of products are equal only for equal rows, except by chance.
fn factor(of: u64) -> u64 {
    let mixed = (of + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)) | 1
}

/// Steps that lead somewhere, by the state that they lead to.
struct Incoming {
    /// Start of the transitions into each state; one more than states.
    begins: Vec<u32>,
    by_head: Vec<u32>,
    tails: Vec<u32>,
    labels: Vec<u32>,
}

impl Incoming {
    fn from_table(table: &Table) -> Self {
        let states = table.ends.len();
        let mut begins = vec![0u32; states + 1];
        let (mut tails, mut labels, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        for state in 0..states {
            for (label, &to) in table.row(state).iter().enumerate().filter(|&(_, &to)| to != DEAD) {
                tails.push(state as u32);
                labels.push(label as u32);
                heads.push(to);
                begins[to as usize + 1] += 1;
            }
        }
        for state in 0..states {
            begins[state + 1] += begins[state];
        }
        let (mut by_head, mut at) = (vec![0; heads.len()], begins.clone());
        for (edge, &head) in heads.iter().enumerate() {
            by_head[at[head as usize] as usize] = edge as u32;
            at[head as usize] += 1;
        }
        Self { begins, by_head, tails, labels }
    }

    fn edges(&self, head: u32) -> &[u32] {
        &self.by_head[self.begins[head as usize] as usize..self.begins[head as usize + 1] as usize]
    }
}

/// Numbers in sets that are only ever split.
struct Partition {
    /// States, grouped by set.
    elements: Vec<u32>,
    /// Index of each state in `elements`.
    place: Vec<u32>,
    /// Set of each state.
    set: Vec<u32>,
    first: Vec<u32>,
    end: Vec<u32>,
    /// Number of marked states of each set: they come first.
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl Partition {
    /// Sets of equal keys.
    fn from_keys(keys: &[u32]) -> Self {
        let mut elements: Vec<u32> = (0..keys.len() as u32).collect();
        elements.sort_by_key(|&element| keys[element as usize]);
        let (mut place, mut set) = (vec![0; keys.len()], vec![0; keys.len()]);
        let (mut first, mut end): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for (at, &element) in elements.iter().enumerate() {
            if at == 0 || keys[element as usize] != keys[elements[at - 1] as usize] {
                first.push(at as u32);
                end.push(at as u32);
            }
            place[element as usize] = at as u32;
            set[element as usize] = first.len() as u32 - 1;
            end[first.len() - 1] = at as u32 + 1;
        }
        let marked = vec![0; first.len()];
        Self { elements, place, set, first, end, marked, touched: Vec::new() }
    }

    fn len(&self) -> usize {
        self.first.len()
    }

    fn range(&self, set: usize) -> std::ops::Range<usize> {
        self.first[set] as usize..self.end[set] as usize
    }

    fn mark(&mut self, element: u32) {
        let set = self.set[element as usize] as usize;
        let (from, to) = (self.place[element as usize], self.first[set] + self.marked[set]);
        if from < to {
            return;
        }
        let other = self.elements[to as usize];
        self.elements[from as usize] = other;
        self.place[other as usize] = from;
        self.elements[to as usize] = element;
        self.place[element as usize] = to;
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
    }

    /// Sets with marked and unmarked members become two; the smaller one is new.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let set = set as usize;
            let (first, end) = (self.first[set], self.end[set]);
            let middle = first + std::mem::take(&mut self.marked[set]);
            if middle == end {
                continue;
            }
            let fresh = if middle - first <= end - middle {
                self.first[set] = middle;
                first..middle
            } else {
                self.end[set] = middle;
                middle..end
            };
            for at in fresh.clone() {
                self.set[self.elements[at as usize] as usize] = self.first.len() as u32;
            }
            self.first.push(fresh.start);
            self.end.push(fresh.end);
            self.marked.push(0);
        }
    }
}

/// Size limits of an automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AutomatonLimits {
    /// Limit in bytes, which applies both to the automaton and to the memory for its construction.
    pub bytes: usize,
}

impl Default for AutomatonLimits {
    /// Returns a limit of 32 MiB.
    fn default() -> Self {
        Self { bytes: 32 << 20 }
    }
}

impl AutomatonLimits {
    /// Largest value of a limit: 1 GiB.
    pub const MOST: usize = 1 << 30;

    /// Returns a limit of so many bytes, at most [`AutomatonLimits::MOST`].
    pub const fn bytes(bytes: usize) -> Self {
        Self { bytes: if bytes < Self::MOST { bytes } else { Self::MOST } }
    }
}

/// Error returned when an automaton cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AutomatonError {
    /// It grew beyond its limit.
    #[error(
        "the automaton needs more than {limit} bytes: raise the limit (max_bytes, AutomatonLimits::bytes), or repeat \
         less, such as .{{1,50}} for .{{1,500}}"
    )]
    TooLarge {
        /// Limit that was exceeded.
        limit: usize,
    },
    /// Something that automata do not have.
    #[error("{what} cannot be decided byte by byte")]
    Unsupported {
        /// Name of the unsupported construct.
        what: String,
    },
    /// It takes more work than it may.
    #[error("{over}")]
    TooMuch {
        /// Budget that was exceeded.
        #[from]
        over: LimitExceeded,
    },
    /// No text is legal.
    #[error("no text matches")]
    Nothing,
}

trie_core::error_kind!(AutomatonError, Rule);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits by what follows until nothing changes.
    fn naive(table: &Table) -> usize {
        let mut class = table.ends.clone();
        loop {
            let key = |state: usize| {
                let row = table.row(state).iter();
                let after: Vec<u32> = row.map(|&to| if to == DEAD { DEAD } else { class[to as usize] }).collect();
                (class[state], after)
            };
            let mut known = HashMap::new();
            let split: Vec<u32> = (0..class.len())
                .map(|state| {
                    let fresh = known.len() as u32;
                    *known.entry(key(state)).or_insert(fresh)
                })
                .collect();
            let same = split.iter().max() == class.iter().max() && split == class;
            class = split;
            if same {
                return known.len();
            }
        }
    }

    fn reachable(table: &Table) -> Table {
        let classes = Classes::from_key(|byte| table.classes[usize::from(byte)]);
        let limits = AutomatonLimits::default();
        let step = |state: &u32, byte| table.step(*state, byte);
        Table::explore(&classes, table.start, limits, |_| 0, step, |&state| table.ends[state as usize]).unwrap()
    }

    proptest! {
        #[test]
        fn minimal_as_the_naive_way(
            next in prop::collection::vec(prop_oneof![3 => 0..12u32, 1 => Just(DEAD)], 36),
            ends in prop::collection::vec(0..3u32, 12),
        ) {
            let mut classes = [2; 256];
            classes[97] = 0;
            classes[98] = 1;
            let table = reachable(&Table { classes, width: 3, next, ends, start: 0 });
            let Ok(table) = table.without_dead_ends() else { return Ok(()) };
            let table = reachable(&table);
            let small = table.clone().minimal();
            prop_assert_eq!(small.ends.len(), naive(&table));
            prop_assert!(small == small.clone().minimal());
            // Both end alike after every text of six bytes.
            for text in 0..3usize.pow(6) {
                let bytes = (0..6).map(|at| b"abc"[text / 3usize.pow(at) % 3]);
                let run = |table: &Table| bytes.clone().try_fold(table.start, |state, byte| table.step(state, byte));
                let end = |table: &Table| run(table).map(|state| table.ends[state as usize]);
                prop_assert_eq!(end(&table), end(&small));
            }
        }
    }
}
