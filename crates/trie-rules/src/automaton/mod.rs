//! Finite automata over bytes: minimal, and trimmed, so that no state is a dead end.

pub(crate) mod dense;
pub(crate) mod regex;
pub(crate) mod subsets;
pub(crate) mod table;

use crate::automaton::dense::{Alphabet, Dense};
use crate::automaton::subsets::Subsets;
use crate::automaton::table::Classes;
pub use crate::automaton::table::{AutomatonError, AutomatonLimits};
pub(crate) use crate::automaton::table::{DEAD, Table};
use crate::rule::{Rule, Walker};
use crate::tokens::slices::add;
use crate::tokens::token_bytes::TokenBytes;
use regex_automata::dfa::{Automaton as _, StartKind, dense as dfa};
use regex_automata::nfa::thompson;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::Hir;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A finite automaton: states are numbers, and a step is one look-up. A clone costs one reference count.
#[derive(Clone, PartialEq, Eq)]
pub struct Automaton(pub(crate) Arc<Table>);

/// An automaton of several patterns, and what else is to be known of them.
pub(crate) struct Several {
    pub(crate) table: Table,
    /// The patterns that match the empty text.
    pub(crate) empty: Vec<usize>,
    /// For each pattern that some text matches: a pattern that comes first wherever it matches, or itself.
    pub(crate) read_as: Vec<Option<usize>>,
}

impl fmt::Debug for Automaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Automaton").field("states", &self.states()).field("classes", &self.0.width).finish()
    }
}

impl Rule for Automaton {
    type State = u32;

    #[inline]
    fn start(&self) -> u32 {
        self.0.start
    }

    #[inline]
    fn step(&self, state: &u32, byte: u8) -> Option<u32> {
        self.0.step(*state, byte)
    }

    #[inline]
    fn is_end(&self, state: &u32) -> bool {
        self.0.is_end(*state)
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<u32>>> {
        Some(Arc::new(AutomatonWalk::new(self.clone(), Arc::clone(tokens))))
    }
}

impl Automaton {
    /// Returns the number of states.
    pub fn states(&self) -> usize {
        self.0.ends.len()
    }

    /// Bytes of its table.
    pub(crate) fn nbytes(&self) -> usize {
        size_of::<u32>() * (self.0.next.len() + self.0.ends.len())
    }

    /// Trimmed and made minimal.
    pub(crate) fn of_table(table: Table) -> Result<Self, AutomatonError> {
        Ok(Self::of_exact(table.without_dead_ends()?.minimal()))
    }

    /// Wraps a minimal table: no dead ends, no equivalent states.
    pub(crate) fn of_exact(table: Table) -> Self {
        Self(Arc::new(table))
    }

    /// Returns the class of a byte: no state distinguishes bytes of one class.
    pub(crate) fn class(&self, byte: u8) -> u8 {
        self.0.classes[usize::from(byte)]
    }

    /// The whole texts of a regular expression that was parsed.
    pub(crate) fn from_hir(hir: &Hir, limits: AutomatonLimits) -> Result<Self, AutomatonError> {
        Several::from_hirs(&[hir], true, limits).map(|several| Self(Arc::new(several.table)))
    }
}

impl Several {
    /// The whole texts of each pattern. Where several match, the first of them counts. `utf8`: whether the empty text
    /// may only match between characters.
    pub(crate) fn from_hirs(hirs: &[&Hir], utf8: bool, limits: AutomatonLimits) -> Result<Self, AutomatonError> {
        let too_large = AutomatonError::TooLarge { limit: limits.bytes };
        let config = thompson::Config::new().which_captures(thompson::WhichCaptures::None);
        let config = config.nfa_size_limit(Some(limits.bytes)).utf8(utf8);
        let nfa =
            thompson::Compiler::new().configure(config).build_many_from_hir(hirs).map_err(|_| too_large.clone())?;
        if let Some(subsets) = Subsets::from_nfa(&nfa, limits) {
            return Self::of_subsets(subsets?, hirs.len());
        }
        // All ways to match: the first alternative must not hide the others.
        let config = dfa::Config::new().match_kind(MatchKind::All).start_kind(StartKind::Anchored).accelerate(false);
        let config = config.dfa_size_limit(Some(limits.bytes)).determinize_size_limit(Some(limits.bytes));
        let dfa = dfa::Builder::new().configure(config).build_from_nfa(&nfa).map_err(|error| {
            if error.to_string().contains("Unicode word boundar") {
                let what = "a word boundary of Unicode (\\b, for ASCII: (?-u:\\b))";
                return AutomatonError::Unsupported { what: what.to_owned() };
            }
            too_large.clone()
        })?;
        Self::of_subsets(looking_around(&dfa)?, hirs.len())
    }

    fn of_subsets(subsets: Subsets, patterns: usize) -> Result<Self, AutomatonError> {
        let Subsets { table, matched } = subsets;
        let empty = matched[table.start as usize].iter().map(|&pattern| pattern as usize).collect();
        let mut read_as = vec![None; patterns];
        for matched in matched {
            let first = matched.first().map(|&first| first as usize);
            for pattern in matched.iter().map(|&pattern| pattern as usize) {
                if first == Some(pattern) || read_as[pattern].is_none() {
                    read_as[pattern] = first;
                }
            }
        }
        table.without_dead_ends().map(|table| Self { table: table.minimal(), empty, read_as })
    }
}

/// The states of an automaton that looks around: anchors, word boundaries.
fn looking_around(dfa: &dfa::DFA<Vec<u32>>) -> Result<Subsets, AutomatonError> {
    let start = start::Config::new().anchored(Anchored::Yes);
    let unsupported = |what: &str| AutomatonError::Unsupported { what: what.to_owned() };
    let start = dfa.start_state(&start).map_err(|_| unsupported("where it begins"))?;
    let byte_classes = dfa.byte_classes();
    let classes = Classes::from_key(|byte| byte_classes.get(byte));
    let mut known = HashMap::from([(start, 0u32)]);
    let (mut order, mut next, mut ends, mut matched) = (vec![start], Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(&state) = order.get(at) {
        at += 1;
        // A match is seen one byte late: at the end of the text.
        let end = dfa.next_eoi_state(state);
        let count = if dfa.is_match_state(end) { dfa.match_len(end) } else { 0 };
        let mut patterns: Vec<u32> = (0..count).map(|at| dfa.match_pattern(end, at).as_u32()).collect();
        patterns.sort_unstable();
        ends.push(patterns.first().map_or(0, |first| first + 1));
        matched.push(patterns.into());
        for &byte in &classes.bytes {
            let after = dfa.next_state(state, byte);
            if dfa.is_quit_state(after) {
                return Err(unsupported("what this pattern looks at"));
            }
            next.push(if dfa.is_dead_state(after) {
                DEAD
            } else {
                *known.entry(after).or_insert_with(|| {
                    order.push(after);
                    order.len() as u32 - 1
                })
            });
        }
    }
    Ok(Subsets { table: Table { classes: classes.of, width: classes.bytes.len(), next, ends, start: 0 }, matched })
}

#[derive(Debug)]
pub(crate) struct AutomatonWalk {
    automaton: Automaton,
    alphabet: Alphabet,
    tokens: Arc<TokenBytes>,
    /// Memory of walks that are over.
    spare: Mutex<Vec<Vec<u32>>>,
}

impl Table {
    pub(crate) fn dense(&self) -> Dense<'_> {
        Dense { classes: &self.classes, width: self.width, next: &self.next }
    }
}

impl AutomatonWalk {
    pub(crate) fn new(automaton: Automaton, tokens: Arc<TokenBytes>) -> Self {
        let alphabet = Alphabet::new(&automaton.0.classes);
        Self { automaton, alphabet, tokens, spare: Mutex::default() }
    }
}

impl Walker<u32> for AutomatonWalk {
    fn tokens(&self, &state: &u32, words: &mut [u32]) {
        let dense = self.automaton.0.dense();
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut path = spare().pop().unwrap_or_else(|| vec![0; self.tokens.longest() + 1]);
        for blank in [false, true] {
            let after = if blank { dense.step(state, b' ') } else { Some(state) };
            let Some(after) = after else { continue };
            let whole = dense.whole_kinds(&self.alphabet, after, true, |_| true);
            let kinds = self.tokens.best_slice(blank, whole.kinds);
            if kinds != 0 {
                add(words, self.tokens.slice_mask(blank, kinds, whole.chars));
            }
            for others in self.tokens.remaining_tokens(blank, kinds) {
                dense.scan(others, state, &mut path, words);
            }
        }
        spare().push(path);
    }

    fn nbytes(&self) -> usize {
        self.alphabet.nbytes()
    }
}
