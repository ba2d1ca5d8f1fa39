//! Lexer of a grammar: one automaton reads all terminals byte by byte. The longest match wins; among matches of equal
//! length keywords come before patterns, then the terminal that comes first in the grammar.

use super::bits::Bits;
use super::error::{GrammarError, GrammarProblem};
use super::names::{Pattern, ResolvedGrammar};
use super::sets::{EMPTY, SetTable, Sets};
use super::{GrammarOptions, TextOf};
use crate::automaton::dense::Dense;
use crate::automaton::regex::fits;
use crate::automaton::{AutomatonError, DEAD, Several};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use trie_core::work::{LimitExceeded, hold, spend};

pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lexer {
    classes: [u8; 256],
    width: usize,
    next: Vec<u32>,
    /// The terminal that each state reads, if the text of it ends there.
    reads: Vec<u32>,
    /// Accepting ends reachable from each state, by number of `sets`.
    reach: Vec<u32>,
    sets: SetTable,
}

impl Lexer {
    /// The lexer, and terminals that are never read.
    pub(super) fn build(
        grammar: &ResolvedGrammar,
        options: &GrammarOptions,
    ) -> Result<(Self, Vec<GrammarError>), GrammarError> {
        let mut patterns: Vec<(u32, &Pattern)> = Vec::new();
        for (number, terminal) in grammar.terminals.iter().enumerate() {
            patterns.extend(terminal.patterns.iter().map(|pattern| (number as u32, pattern)));
        }
        patterns.sort_by_key(|(_, pattern)| (!pattern.keyword, pattern.place));
        let room =
            fits(patterns.iter().filter(|(_, pattern)| !pattern.keyword).map(|(_, of)| &*of.text), options.automaton);
        room.map_err(|problem| {
            GrammarProblem::Terminals { problem }.into_error(grammar.rules[grammar.start as usize].place)
        })?;
        let hirs = patterns
            .iter()
            .map(|(terminal, pattern)| parse(pattern, &grammar.terminals[*terminal as usize].name, options.text_of));
        let hirs = hirs.collect::<Result<Vec<Hir>, _>>()?;
        let start_place = grammar.rules[grammar.start as usize].place;
        let utf8 = options.text_of == TextOf::Utf8;
        let several =
            Several::from_hirs(&hirs.iter().collect::<Vec<_>>(), utf8, options.automaton).map_err(|problem| {
                match problem {
                    AutomatonError::Nothing => GrammarProblem::NoText.into_error(start_place),
                    problem => GrammarProblem::Terminals { problem }.into_error(start_place),
                }
            })?;
        for &empty in &several.empty {
            let (terminal, pattern) = patterns[empty];
            // Between terminals nothing may stand, whether SKIP says so or not.
            if grammar.skip != Some(terminal) {
                let terminal = grammar.terminals[terminal as usize].name.clone();
                return Err(GrammarProblem::EmptyTerminal { terminal }.into_error(pattern.place));
            }
        }
        let mut warnings = Vec::new();
        let mut read_as: Vec<Vec<u32>> = vec![Vec::new(); grammar.terminals.len()];
        for (at, (of, _)) in patterns.iter().enumerate() {
            read_as[*of as usize].extend(several.read_as[at].map(|first| patterns[first].0));
        }
        for (number, terminal) in grammar.terminals.iter().enumerate() {
            let read = &read_as[number];
            let name = terminal.name.clone();
            match read.first() {
                None => return Err(GrammarProblem::NothingMatches { terminal: name }.into_error(terminal.place)),
                Some(&instead) if !read.contains(&(number as u32)) => {
                    let instead = grammar.terminals[instead as usize].name.clone();
                    warnings.push(GrammarProblem::NeverRead { terminal: name, instead }.into_error(terminal.place));
                }
                Some(_) => {}
            }
        }
        let table = several.table;
        let reads = table.ends.iter().map(|&end| end.checked_sub(1).map_or(NONE, |first| patterns[first as usize].0));
        let mut reads: Vec<u32> = reads.collect();
        let mut next = table.next;
        // Before the first byte of a terminal nothing is read, even where a terminal ends as it begins.
        let row = table.start as usize * table.width..(table.start as usize + 1) * table.width;
        next.extend_from_within(row);
        reads.push(NONE);
        let (classes, width, reach) = (table.classes, table.width, Vec::new());
        let mut lexer = Self { classes, width, next, reads, reach, sets: SetTable::default() };
        let kinds: Vec<u32> = lexer.reads.clone();
        lexer.name_ends(&kinds).map_err(|over| GrammarProblem::TooMuch { over }.into_error(start_place))?;
        Ok((lexer, warnings))
    }

    /// Says what kind of end each state is, and finds which kinds can be reached from each.
    pub(super) fn name_ends(&mut self, kinds: &[u32]) -> Result<(), LimitExceeded> {
        let mut sets = Sets::new();
        hold(kinds.len() * 4)?;
        let own = kinds.iter().map(|&kind| if kind == NONE { Ok(EMPTY) } else { sets.one(kind) });
        let mut reach: Vec<u32> = own.collect::<Result<_, _>>()?;
        let mut all = Vec::new();
        loop {
            let mut more = false;
            for state in (0..reach.len()).rev() {
                let row = &self.next[state * self.width..][..self.width];
                spend(self.width)?;
                all.clear();
                all.push(reach[state]);
                all.extend(row.iter().filter(|&&to| to != DEAD).map(|&to| reach[to as usize]));
                let here = sets.union_all(&mut all)?;
                more |= std::mem::replace(&mut reach[state], here) != here;
            }
            if !more {
                break;
            }
        }
        (self.reach, self.sets) = (reach, sets.finish());
        Ok(())
    }

    pub(super) fn start(&self) -> u32 {
        self.reads.len() as u32 - 1
    }

    /// Returns the initial state: after a line feed if there is a SKIP that takes it.
    pub(super) fn begin(&self, skip: Option<u32>) -> u32 {
        let after = self.step(self.start(), b'\n').filter(|&after| skip.is_some() && self.reads(after) == skip);
        after.unwrap_or(self.start())
    }

    pub(super) fn dense(&self) -> Dense<'_> {
        Dense { classes: &self.classes, width: self.width, next: &self.next }
    }

    pub(super) fn states(&self) -> usize {
        self.reads.len()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    #[inline]
    pub(super) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        self.step_class(state, usize::from(self.classes[usize::from(byte)]))
    }

    #[inline]
    pub(super) fn step_class(&self, state: u32, class: usize) -> Option<u32> {
        let next = *self.next.get(state as usize * self.width + class)?;
        (next != DEAD).then_some(next)
    }

    /// The terminal whose text ends at a state.
    #[inline]
    pub(super) fn reads(&self, state: u32) -> Option<u32> {
        self.reads.get(state as usize).copied().filter(|&terminal| terminal != NONE)
    }

    /// The number of the set of ends that can be reached from a state.
    #[inline]
    pub(super) fn reach(&self, state: u32) -> u32 {
        self.reach.get(state as usize).copied().unwrap_or(NONE)
    }

    /// Returns whether some of these ends are reachable from states with this number.
    #[inline]
    pub(super) fn meets(&self, reach: u32, ends: &Bits) -> bool {
        reach != NONE && self.sets.meets(reach, ends)
    }

    /// The ends that can be reached from states of this number.
    pub(super) fn ends(&self, reach: u32) -> impl Iterator<Item = usize> + '_ {
        (reach != NONE).then(|| self.sets.members(reach)).into_iter().flatten().map(|kind| kind as usize)
    }
}

fn parse(pattern: &Pattern, terminal: &str, text_of: TextOf) -> Result<Hir, GrammarError> {
    if pattern.keyword {
        return Ok(Hir::literal(pattern.text.as_bytes()));
    }
    let utf8 = text_of == TextOf::Utf8;
    let parsed = ParserBuilder::new().utf8(utf8).unicode(utf8).nest_limit(200).build().parse(&pattern.text);
    parsed.map_err(|error| {
        let (position, problem) = match &error {
            regex_syntax::Error::Parse(error) => (error.span().start.offset, error.kind().to_string()),
            regex_syntax::Error::Translate(error) => (error.span().start.offset, error.kind().to_string()),
            other => (0, other.to_string()),
        };
        let position = pattern.text.get(..position).map_or(0, |before| before.chars().count());
        // The opening quote and slash come before it.
        let place = super::Place { line: pattern.place.line, column: pattern.place.column + 2 + position };
        GrammarProblem::Pattern { terminal: terminal.to_owned(), position, problem }.into_error(place)
    })
}
