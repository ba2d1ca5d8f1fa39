//! Automata that call each other, with all parses followed at once.
//!
//! The state of a text is a set of places. A place is a state of an automaton, with its callers. Calls of the same
//! automaton at the same byte are merged, whatever their callers, as in Earley's parser: parses that diverge and meet
//! again are followed once. A tail call, after which the caller reads nothing more, returns to the caller's own caller:
//! right-recursive lists need no stack.

use super::embedded::ByteMachine;
use crate::automaton::Table;
use crate::automaton::dense::Alphabet;
use crate::rule::{Rule, Walker};
use crate::tokens::lazy_walk::LazyWalk;
use crate::tokens::slices::{MOST_CHARS, add};
use crate::tokens::token_bytes::TokenBytes;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};
use trie_core::Problem;
use trie_core::work::{over, spend};

/// Byte that begins a call: it never occurs in UTF-8. Two bytes follow, the digits of the called body's number; both
/// are less than this byte.
pub(super) const CALL: u8 = 0xff;
pub(super) const DIGITS: usize = 200;

/// An automaton that may call others, or a machine over bytes that calls nothing.
pub(super) struct Body {
    code: Code,
    /// For each state where its calls begin in the next: what is called, and the state behind it.
    first_call: Vec<u32>,
    calls: Vec<(u32, u32)>,
    /// For each state, true if it reads bytes.
    reads: Vec<bool>,
}

enum Code {
    Table(Box<Table>),
    Machine(Arc<dyn ByteMachine>),
}

pub(super) struct Machine {
    /// Bodies in call order: one that is called before any byte has a higher number than its caller.
    bodies: Vec<Body>,
    root: u32,
}

/// Callers of a call: the places to which it returns. Two are equal if and only if their keys are, which cover their
/// own callers, too.
#[derive(Clone)]
struct Callers(Arc<Calling>);

struct Calling {
    key: [u64; 2],
    /// True if the text may end behind the call.
    end: bool,
    /// Places to return to, in ascending order.
    places: Box<[Place]>,
}

/// A state of a body, and who called it.
#[derive(Clone)]
struct Place {
    body: u32,
    state: u32,
    callers: Callers,
}

/// State of a text in a grammar. A clone is one reference count, comparing is linear in how many ways there are to read
/// the text.
#[derive(Clone)]
pub(super) struct Places(Arc<Standing>);

struct Standing {
    end: bool,
    /// Ascending: those that read a byte.
    places: Box<[Place]>,
}

impl Body {
    pub(super) fn new(table: Table) -> Self {
        let (mut first_call, mut calls, mut reads) = (vec![0], Vec::new(), Vec::new());
        for state in 0..table.ends.len() as u32 {
            if let Some(high) = table.step(state, CALL) {
                for one in 0..DIGITS {
                    let Some(low) = table.step(high, one as u8) else { continue };
                    let behind = |other| Some(((DIGITS * one + other) as u32, table.step(low, other as u8)?));
                    calls.extend((0..DIGITS).filter_map(behind));
                }
            }
            first_call.push(calls.len() as u32);
            reads.push((0..CALL).any(|byte| table.step(state, byte).is_some()));
        }
        Self { code: Code::Table(Box::new(table)), first_call, calls, reads }
    }

    pub(super) fn of_machine(machine: Arc<dyn ByteMachine>) -> Self {
        Self { code: Code::Machine(machine), first_call: Vec::new(), calls: Vec::new(), reads: Vec::new() }
    }

    pub(super) fn table(&self) -> Option<&Table> {
        if let Code::Table(table) = &self.code { Some(table) } else { None }
    }

    pub(super) fn start(&self) -> u32 {
        match &self.code {
            Code::Table(table) => table.start,
            Code::Machine(machine) => machine.start(),
        }
    }

    fn step(&self, state: u32, byte: u8) -> Option<u32> {
        match &self.code {
            Code::Table(table) => table.step(state, byte),
            Code::Machine(machine) => machine.step(state, byte),
        }
    }

    fn is_end(&self, state: u32) -> bool {
        match &self.code {
            Code::Table(table) => table.is_end(state),
            Code::Machine(machine) => machine.is_end(state),
        }
    }

    /// Returns the calls of a state: what it calls, and the states behind that.
    pub(super) fn calls(&self, state: u32) -> &[(u32, u32)] {
        let Some(&[first, end]) = self.first_call.get(state as usize..).and_then(|rest| rest.first_chunk()) else {
            return &[];
        };
        &self.calls[first as usize..end as usize]
    }

    /// Returns the numbers of all that any state calls.
    pub(super) fn all_calls(&self) -> impl Iterator<Item = u32> {
        self.calls.iter().map(|&(called, _)| called)
    }

    /// Gives new numbers to what is called.
    pub(super) fn renumber(mut self, number: impl Fn(u32) -> u32) -> Self {
        self.calls.iter_mut().for_each(|(called, _)| *called = number(*called));
        self
    }

    /// Returns true if a byte may come in a state. A machine is not asked.
    fn reads(&self, state: u32) -> bool {
        self.reads.get(state as usize).is_none_or(|&reads| reads)
    }

    /// Returns whether nothing can follow a state.
    fn is_last(&self, state: u32) -> bool {
        !self.reads(state) && self.calls(state).is_empty()
    }
}

impl Place {
    fn key(&self) -> (u32, u32, [u64; 2]) {
        (self.body, self.state, self.callers.0.key)
    }
}

/// Computes the key of callers, which an attacker cannot predict: different callers have the same key with a
/// probability of 2^-128.
fn key(end: bool, places: &[Place]) -> [u64; 2] {
    static RANDOM: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    RANDOM.each_ref().map(|random| {
        let mut hash = random.build_hasher();
        hash.write_u8(u8::from(end));
        for place in places {
            hash.write_u64(u64::from(place.body) << 32 | u64::from(place.state));
            place.callers.0.key.iter().for_each(|&part| hash.write_u64(part));
        }
        hash.finish()
    })
}

impl Callers {
    fn new(end: bool, places: Vec<Place>) -> Self {
        Self(Arc::new(Calling { key: key(end, &places), end, places: places.into() }))
    }
}

impl Drop for Calling {
    /// Drops callers one by one: a recursive drop would overflow the thread's stack for a deeply nested text.
    fn drop(&mut self) {
        let mut left = std::mem::take(&mut self.places).into_vec();
        while let Some(place) = left.pop() {
            if let Some(mut calling) = Arc::into_inner(place.callers.0) {
                left.append(&mut std::mem::take(&mut calling.places).into_vec());
            }
        }
    }
}

/// Puts a place where it belongs, unless it is there.
fn insert(places: &mut Vec<Place>, place: Place) -> bool {
    let at = places.binary_search_by_key(&place.key(), Place::key);
    if let Err(at) = at {
        places.insert(at, place);
    }
    at.is_err()
}

/// The places behind one byte.
#[derive(Default)]
struct NextPlaces {
    end: bool,
    places: Vec<Place>,
    /// Read, and what follows from it not yet seen.
    left: Vec<Place>,
    /// By what is called: whether the text may end behind it, and the places behind it.
    calls: BTreeMap<u32, (bool, Vec<Place>)>,
}

impl Machine {
    /// Builds the machine from bodies in an order; numbers refer to the bodies before.
    pub(super) fn new(bodies: Vec<Body>, order: &[usize], root: usize) -> Self {
        let mut number = vec![0; bodies.len()];
        order.iter().zip(0..).for_each(|(&body, at)| number[body] = at);
        let mut sorted: Vec<(u32, Body)> = number.iter().copied().zip(bodies).collect();
        sorted.sort_by_key(|(number, _)| *number);
        let renumber = |(_, body): (u32, Body)| body.renumber(|called| number[called as usize]);
        Self { root: number[root], bodies: sorted.into_iter().map(renumber).collect() }
    }

    /// The table of a grammar that calls nothing.
    pub(super) fn into_single_table(self) -> Result<Table, Self> {
        let mut bodies = self.bodies;
        match bodies.pop() {
            Some(Body { code: Code::Table(table), calls, .. }) if bodies.is_empty() && calls.is_empty() => Ok(*table),
            last => {
                bodies.extend(last);
                Err(Self { bodies, root: self.root })
            }
        }
    }

    pub(super) fn states(&self) -> usize {
        self.bodies.iter().map(|body| body.reads.len()).sum()
    }

    /// Returns the automata by the numbers of their bodies: `None` for a machine over bytes.
    fn tables(&self) -> impl Iterator<Item = Option<&Table>> {
        self.bodies.iter().map(Body::table)
    }

    /// Returns the automata in which a text stands, and where.
    fn in_tables(&self, places: &Places) -> impl Iterator<Item = (usize, &Table, u32)> {
        let of = |place: &Place| Some((place.body as usize, self.bodies[place.body as usize].table()?, place.state));
        places.0.places.iter().filter_map(of)
    }
}

impl Rule for Machine {
    type State = Places;

    fn start(&self) -> Places {
        let root = &self.bodies[self.root as usize];
        let mut behind = NextPlaces { end: root.is_end(root.start()), ..NextPlaces::default() };
        behind.calls.insert(self.root, (true, Vec::new()));
        self.close_places(behind)
    }

    fn step(&self, from: &Places, byte: u8) -> Option<Places> {
        if byte == CALL {
            return None;
        }
        let mut behind = NextPlaces::default();
        for place in &from.0.places {
            let Some(state) = self.bodies[place.body as usize].step(place.state, byte) else { continue };
            behind.left.push(Place { state, ..place.clone() });
        }
        if behind.left.is_empty() || spend(from.0.places.len()).is_err() {
            return None;
        }
        Some(self.close_places(behind))
    }

    fn is_end(&self, at: &Places) -> bool {
        at.0.end
    }

    fn failure(&self) -> Option<Problem> {
        self.machines().find_map(ByteMachine::failure).or_else(|| over().map(Problem::new))
    }

    fn failing(&self) -> bool {
        over().is_some() || self.machines().any(ByteMachine::failing)
    }
}

impl Machine {
    fn machines(&self) -> impl Iterator<Item = &dyn ByteMachine> {
        self.bodies
            .iter()
            .filter_map(|body| if let Code::Machine(machine) = &body.code { Some(&**machine) } else { None })
    }

    /// With all that needs no byte: returns, then calls.
    fn close_places(&self, mut behind: NextPlaces) -> Places {
        while let Some(place) = behind.left.pop() {
            if !insert(&mut behind.places, place.clone()) {
                continue;
            }
            if self.bodies[place.body as usize].is_end(place.state) {
                behind.end |= place.callers.0.end;
                behind.left.extend(place.callers.0.places.iter().cloned());
            }
            self.call(&mut behind.calls, &place);
        }
        // Callers come before what they call, so that all who call one are known when it is begun. It is not empty
        // here: where it may be, its callers go on without it.
        while let Some((body, (end, places))) = behind.calls.pop_first() {
            let state = self.bodies[body as usize].start();
            let place = Place { body, state, callers: Callers::new(end, places) };
            self.call(&mut behind.calls, &place);
            insert(&mut behind.places, place);
        }
        behind.places.retain(|place| self.bodies[place.body as usize].reads(place.state));
        Places(Arc::new(Standing { end: behind.end, places: behind.places.into() }))
    }

    fn call(&self, calls: &mut BTreeMap<u32, (bool, Vec<Place>)>, from: &Place) {
        let body = &self.bodies[from.body as usize];
        for &(called, state) in body.calls(from.state) {
            let (end, places) = calls.entry(called).or_default();
            if body.is_last(state) {
                *end |= from.callers.0.end;
                from.callers.0.places.iter().for_each(|place| _ = insert(places, place.clone()));
            } else {
                insert(places, Place { state, ..from.clone() });
            }
        }
    }
}

impl PartialEq for Places {
    fn eq(&self, other: &Self) -> bool {
        let keys = |places: &Self| (places.0.end, places.0.places.len());
        let both = self.0.places.iter().zip(&other.0.places);
        Arc::ptr_eq(&self.0, &other.0)
            || keys(self) == keys(other) && both.into_iter().all(|(one, other)| one.key() == other.key())
    }
}

impl Eq for Places {}

impl Hash for Places {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(u8::from(self.0.end));
        self.0.places.iter().for_each(|place| place.key().hash(state));
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.states();
        f.debug_struct("Machine").field("automata", &self.bodies.len()).field("states", &states).finish_non_exhaustive()
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.places.iter().map(|place| (place.body, place.state));
        f.debug_list().entries(shown).finish()
    }
}

#[derive(Debug)]
pub(super) struct MachineWalk {
    machine: Arc<Machine>,
    /// Byte classes of each body that is an automaton.
    alphabets: Vec<Option<Alphabet>>,
    tokens: Arc<TokenBytes>,
    lazy: LazyWalk<Machine>,
}

impl MachineWalk {
    pub(super) fn new(machine: Arc<Machine>, tokens: Arc<TokenBytes>) -> Self {
        let alphabets = machine.tables().map(|table| table.map(|table| Alphabet::new(&table.classes))).collect();
        let lazy = LazyWalk::new(Arc::clone(&machine), Arc::clone(&tokens));
        Self { machine, alphabets, tokens, lazy }
    }

    /// Kinds of characters all of whose texts one of the places takes, after a blank or without one.
    fn whole_kinds(&self, places: &Places, blank: bool) -> u8 {
        let of = |(body, table, state): (usize, &Table, u32)| {
            let dense = table.dense();
            let after = if blank { dense.step(state, b' ') } else { Some(state) };
            let alphabet = self.alphabets[body].as_ref();
            after.zip(alphabet).map_or(0, |(after, alphabet)| dense.whole_kinds(alphabet, after, false, |_| true).kinds)
        };
        let kinds = self.machine.in_tables(places).map(of).max_by_key(|kinds| kinds.count_ones());
        self.tokens.best_slice(blank, kinds.unwrap_or(0))
    }
}

impl Walker<Places> for MachineWalk {
    fn tokens(&self, places: &Places, words: &mut [u32]) {
        let kinds = [false, true].map(|blank| self.whole_kinds(places, blank));
        if kinds == [0, 0] {
            return self.lazy.tokens(places, words);
        }
        for (blank, kinds) in [false, true].into_iter().zip(kinds) {
            if kinds != 0 {
                add(words, self.tokens.slice_mask(blank, kinds, MOST_CHARS));
            }
            self.lazy.walk_some(places, self.tokens.remaining_tokens(blank, kinds), words);
        }
    }

    fn nbytes(&self) -> usize {
        self.lazy.nbytes() + self.alphabets.iter().flatten().map(Alphabet::nbytes).sum::<usize>()
    }

    fn limit(&self, bytes: usize) {
        self.lazy.limit(bytes);
    }

    fn forget(&self) {
        self.lazy.forget();
    }
}
