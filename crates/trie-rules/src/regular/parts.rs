//! Concatenations and unions of automata and lists: all ways to split a text are walked at once.

use super::RegularError;
use super::choice::Choice;
use super::list::{List, Place};
use super::parts_walk::PartsWalk;
use crate::automaton::table::{Classes, Table};
use crate::automaton::{Automaton, AutomatonLimits};
use crate::rule::{Rule, Walker};
use crate::tokens::token_bytes::TokenBytes;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use trie_core::work::spend;

/// Parts, and the parts that may follow each. Every part has at least one text and leads to an end, so every place in a
/// part begins a legal text.
///
/// The state is a sorted, shared set of places, one for each way to split the text; it is not `Copy`.
#[derive(Clone, PartialEq, Eq)]
pub struct Parts {
    all: Vec<Part>,
    starts: Vec<u32>,
    /// Factors joined by [`super::Regular::followed_by`], kept for further calls.
    pub(super) factors: Vec<Factor>,
}

#[derive(Clone, PartialEq, Eq)]
struct Part {
    of: Source,
    /// Parts that may follow.
    then: Vec<u32>,
    /// True if the text may end with it.
    last: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Source {
    Automaton(Automaton),
    List(Arc<List>),
}

/// Factor of a concatenation.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Factor {
    Automaton(Automaton),
    Choice(Choice),
    Parts(Arc<Parts>),
}

/// Places in parts, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartsState(Arc<[Item]>);

/// A place in a part: the state of an automaton, or the node and depth of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) part: u32,
    pub(super) at: Place,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |part: &Part| match &part.of {
            Source::Automaton(automaton) => format!("{} states", automaton.states()),
            Source::List(list) => format!("{} texts", list.len()),
        };
        f.debug_tuple("Parts").field(&self.all.iter().map(shown).collect::<Vec<_>>()).finish()
    }
}

impl Source {
    fn start(&self) -> Place {
        match self {
            Self::Automaton(automaton) => Place { node: automaton.start(), depth: 0 },
            Self::List(list) => list.start(),
        }
    }

    #[inline]
    fn step(&self, at: Place, byte: u8) -> Option<Place> {
        match self {
            Self::Automaton(automaton) => Some(Place { node: automaton.step(&at.node, byte)?, depth: 0 }),
            Self::List(list) => list.step(at, byte),
        }
    }

    #[inline]
    fn is_end(&self, at: Place) -> bool {
        match self {
            Self::Automaton(automaton) => automaton.is_end(&at.node),
            Self::List(list) => list.is_end(at),
        }
    }
}

impl Factor {
    fn add_to(&self, all: &mut Vec<Part>) -> Vec<u32> {
        let mut one = |of| {
            all.push(Part { of, then: Vec::new(), last: true });
            all.len() as u32 - 1
        };
        match self {
            Self::Automaton(automaton) => vec![one(Source::Automaton(automaton.clone()))],
            Self::Choice(choice) => {
                let automaton = choice.automaton.clone().map(Source::Automaton);
                automaton.into_iter().chain([Source::List(Arc::clone(&choice.list))]).map(one).collect()
            }
            Self::Parts(parts) => {
                let offset = all.len() as u32;
                all.extend(parts.all.iter().cloned().map(|mut part| {
                    part.then.iter_mut().for_each(|then| *then += offset);
                    part
                }));
                parts.starts.iter().map(|start| start + offset).collect()
            }
        }
    }
}

impl Parts {
    /// Bytes of a part, about.
    pub(super) const SIZE: usize = size_of::<Part>();

    /// Returns an empty concatenation.
    pub(super) fn empty() -> Self {
        Self { all: Vec::new(), starts: Vec::new(), factors: Vec::new() }
    }

    /// Adds a factor at the beginning, and returns its starts and the parts with which it ends.
    pub(super) fn begin(&mut self, factor: &Factor) -> (Vec<u32>, Vec<u32>) {
        let (starts, ends) = self.add(&[], factor);
        self.starts.extend_from_slice(&starts);
        (starts, ends)
    }

    /// Adds a factor behind these parts, and returns its starts and the parts with which it ends.
    pub(super) fn add(&mut self, behind: &[u32], factor: &Factor) -> (Vec<u32>, Vec<u32>) {
        let begin = self.all.len() as u32;
        let starts = factor.add_to(&mut self.all);
        self.follow(behind, &starts);
        let ends = (begin..self.all.len() as u32).filter(|&part| self.all[part as usize].last).collect();
        (starts, ends)
    }

    /// Lets the places `starts` follow the places `behind`.
    pub(super) fn follow(&mut self, behind: &[u32], starts: &[u32]) {
        for &part in behind {
            self.all[part as usize].then.extend_from_slice(starts);
        }
    }

    /// The text does not end with these.
    pub(super) fn goes_on(&mut self, ends: &[u32]) {
        for &part in ends {
            self.all[part as usize].last = false;
        }
    }

    /// One after the other. Two at least.
    pub(super) fn sequence(factors: Vec<Factor>) -> Self {
        let mut made = Self::empty();
        let mut ends: Vec<u32> = Vec::new();
        for (at, factor) in factors.iter().enumerate() {
            made.goes_on(&ends);
            ends = if at == 0 { made.begin(factor).1 } else { made.add(&ends, factor).1 };
        }
        made.factors = factors;
        made
    }

    /// Builds the union of several factors.
    pub(super) fn one_of(factors: &[Factor]) -> Self {
        let mut made = Self::empty();
        for factor in factors {
            made.begin(factor);
        }
        made
    }

    /// The same texts as one automaton.
    pub(super) fn determinise(&self, limits: AutomatonLimits) -> Result<Automaton, RegularError> {
        let lists = self.automata().any(|automaton| automaton.is_none());
        // A repetition has one automaton many times.
        let mut seen = HashSet::new();
        let automata: Vec<&Automaton> =
            self.automata().flatten().filter(|automaton| seen.insert(Arc::as_ptr(&automaton.0))).collect();
        let classes = Classes::from_key(|byte| {
            let of_each: Vec<u8> = automata.iter().map(|automaton| automaton.class(byte)).collect();
            (of_each, lists.then_some(byte))
        });
        let weigh = |state: &PartsState| size_of_val(&*state.0);
        let step = |state: &PartsState, byte| {
            // What is over says so where the next state is looked at.
            let _ = spend(state.0.len());
            self.step(state, byte)
        };
        let table = Table::explore(&classes, self.start(), limits, weigh, step, |state| u32::from(self.is_end(state)))?;
        Ok(Automaton::of_table(table)?)
    }

    /// With what may follow where a part is over.
    fn close(&self, mut items: Vec<Item>) -> PartsState {
        let mut at = 0;
        while let Some(&item) = items.get(at) {
            at += 1;
            let part = &self.all[item.part as usize];
            if !part.then.is_empty() && part.of.is_end(item.at) {
                for &then in &part.then {
                    let start = Item { part: then, at: self.all[then as usize].of.start() };
                    if !items.contains(&start) {
                        items.push(start);
                    }
                }
            }
        }
        items.sort_unstable();
        items.dedup();
        PartsState(items.into())
    }

    /// A place, and what may follow where its part is over.
    pub(super) fn state_at(&self, place: Item) -> PartsState {
        self.close(vec![place])
    }

    /// The part of a place, if nothing follows it.
    pub(super) fn last(&self, place: Item) -> Option<&Source> {
        let part = &self.all[place.part as usize];
        part.then.is_empty().then_some(&part.of)
    }

    /// The automaton of each part.
    pub(super) fn automata(&self) -> impl Iterator<Item = Option<&Automaton>> {
        self.all.iter().map(|part| match &part.of {
            Source::Automaton(automaton) => Some(automaton),
            Source::List(_) => None,
        })
    }

    /// Returns the places of a state, without starts of parts that follow another place of the state: their tokens are
    /// allowed at that place, too. If parts follow each other in a cycle, those with higher numbers count as the
    /// followers.
    pub(super) fn places(&self, state: &PartsState) -> impl Iterator<Item = Item> {
        let start = |place: &Item| self.all[place.part as usize].of.start();
        let begun = move |place: &Item| {
            let before = |other: &Item| {
                let part = &self.all[other.part as usize];
                let is_first = other.part < place.part || other.at != start(other);
                is_first && part.then.contains(&place.part) && part.of.is_end(other.at)
            };
            place.at == start(place) && state.0.iter().any(before)
        };
        state.0.iter().filter(move |place| !begun(place)).copied()
    }

    /// Returns the number of places at a state: the number of ways to split the text that are still possible.
    pub fn open(state: &PartsState) -> usize {
        state.0.len()
    }
}

impl Rule for Parts {
    type State = PartsState;

    fn is_finite(&self) -> bool {
        true
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<PartsState>>> {
        Some(Arc::new(PartsWalk::new(self.clone(), Arc::clone(tokens))))
    }

    fn start(&self) -> PartsState {
        let start = |&part: &u32| Item { part, at: self.all[part as usize].of.start() };
        self.close(self.starts.iter().map(start).collect())
    }

    fn step(&self, state: &PartsState, byte: u8) -> Option<PartsState> {
        let after =
            |item: &Item| Some(Item { part: item.part, at: self.all[item.part as usize].of.step(item.at, byte)? });
        let mut items = state.0.iter().filter_map(after).peekable();
        items.peek()?;
        Some(self.close(items.collect()))
    }

    fn is_end(&self, state: &PartsState) -> bool {
        let ends = |item: &Item| {
            let part = &self.all[item.part as usize];
            part.last && part.of.is_end(item.at)
        };
        state.0.iter().any(ends)
    }
}

/// Lists this small become automata where something follows them.
const SMALL: usize = 4096;

impl Factor {
    /// As an automaton, where that is cheap.
    pub(super) fn small(self) -> Result<Self, RegularError> {
        match &self {
            Self::Choice(choice) if choice.list.text_bytes() <= SMALL => {
                let all = Parts::one_of(std::slice::from_ref(&self));
                all.determinise(AutomatonLimits::default()).map(Self::Automaton)
            }
            _ => Ok(self),
        }
    }
}
