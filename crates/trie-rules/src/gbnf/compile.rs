//! From the text of a grammar to automata that call each other.
//!
//! What a rule allows becomes one regular expression, in which a rule that comes again inside itself is called: a call
//! is written as three bytes that no text in UTF-8 has. A rule that does not is written out where it is used. So the
//! automata of regular expressions do the rest, and most grammars are one automaton, or a few.

use super::machine::{Body, CALL, DIGITS, Machine};
use super::order::{Productivity, Scc, find, knots};
use super::text::{ParsedGrammar, Part};
use crate::automaton::{AutomatonError, AutomatonLimits, Several, Table};
use crate::grammar::{GrammarError, GrammarProblem};
use regex_syntax::hir::{Class, Hir, Repetition};
use std::collections::VecDeque;
use trie_core::work::{Limits, Over, hold, spend};

/// Beyond this a rule is called, and not written out where it is used: bytes and states, about.
const MOST_WRITTEN: u64 = 2000;

/// Beyond this a part is called: compilers of regular expressions go down by recursion.
const MOST_DEEP: u32 = 40;

/// Bytes of memory for each byte or state of an expression, about.
const BYTES: u64 = 32;

/// Fraction of the memory limit for the automata; their construction may take as much again.
const PART: usize = 8;

/// A part of a rule as an expression.
#[derive(Clone)]
struct Piece {
    hir: Hir,
    size: u64,
    depth: u32,
}

struct Compiler<'w, 't> {
    written: &'w ParsedGrammar<'t>,
    can: Vec<Productivity>,
    /// Rules that are written out.
    pieces: Vec<Option<Piece>>,
    /// The numbers of rules that are called.
    numbers: Vec<Option<usize>>,
    /// Referenced rules, and the rule that each one is called for.
    called: Vec<(Hir, usize)>,
}

pub(super) fn compile(written: &ParsedGrammar<'_>, limits: Limits) -> Result<Machine, GrammarError> {
    let (root, rules) = (written.root(), written.rules.len());
    let too_much = |over| written.wrong_with(root, GrammarProblem::TooMuch { over });
    let mut compiler = Compiler {
        written,
        can: vec![Productivity::default(); rules],
        pieces: vec![None; rules],
        numbers: vec![None; rules],
        called: Vec::new(),
    };
    for knot in knots(written).map_err(too_much)? {
        find(written, &knot, &mut compiler.can).map_err(too_much)?;
        if let Some(&endless) = knot.rules.iter().find(|&&rule| !compiler.can[rule].end) {
            let name = written.rules[endless].name.to_owned();
            return Err(written.wrong_with(endless, GrammarProblem::Endless { name }));
        }
        compiler.knot(&knot).map_err(too_much)?;
    }
    let root_number = match (compiler.numbers[root], compiler.pieces[root].take()) {
        (None, Some(piece)) => compiler.call(piece.hir, root),
        (number, _) => number.unwrap_or_default(),
    };
    let limit = DIGITS * DIGITS;
    if compiler.called.len() > limit {
        let problem = GrammarProblem::TooLarge { what: "rules that come again inside themselves", limit };
        return Err(written.wrong_with(root, problem));
    }
    let mut bodies = Vec::new();
    let mut left = limits.bytes / PART;
    for (hir, rule) in &compiler.called {
        let made = automaton(hir, AutomatonLimits::bytes(left)).map_err(|problem| match problem {
            AutomatonError::TooMuch { over } => GrammarProblem::TooMuch { over },
            AutomatonError::TooLarge { .. } => GrammarProblem::TooMuch { over: Over::Bytes(limits.bytes) },
            // No part of a rule looks around.
            AutomatonError::Nothing | AutomatonError::Unsupported { .. } => {
                GrammarProblem::Endless { name: written.rules[*rule].name.to_owned() }
            }
        });
        let table = made.map_err(|problem| written.wrong_with(*rule, problem))?;
        left = left.saturating_sub(size_of_val(&*table.next));
        bodies.push(Body::of(table));
    }
    let order = callers_first(&bodies).map_err(|number| {
        let rule = compiler.called[number].1;
        let name = written.rules[rule].name.to_owned();
        written.wrong_with(rule, GrammarProblem::LeftRecursive { name })
    })?;
    Ok(Machine::new(bodies, &order, root_number))
}

fn automaton(hir: &Hir, limits: AutomatonLimits) -> Result<Table, AutomatonError> {
    Several::of(&[hir], false, limits).map(|several| several.table)
}

impl Compiler<'_, '_> {
    fn knot(&mut self, knot: &Scc) -> Result<(), Over> {
        if !knot.recursive {
            for &rule in &knot.rules {
                self.pieces[rule] = Some(self.rule(rule)?);
            }
            return Ok(());
        }
        for &rule in &knot.rules {
            self.numbers[rule] = Some(self.call(Hir::empty(), rule));
        }
        for &rule in &knot.rules {
            let Some(number) = self.numbers[rule] else { continue };
            self.called[number].0 = self.rule(rule)?.hir;
        }
        Ok(())
    }

    /// The number of something of a rule that is called.
    fn call(&mut self, hir: Hir, rule: usize) -> usize {
        self.called.push((hir, rule));
        self.called.len() - 1
    }

    fn rule(&mut self, rule: usize) -> Result<Piece, Over> {
        let written = self.written;
        let range = written.rules[rule].parts.clone();
        let mut made: Vec<Option<Piece>> = Vec::with_capacity(range.len());
        for part in &written.parts[range.clone()] {
            let mut take = |at: &usize| made[at - range.start].take();
            let piece = match part {
                Part::Text(text) => {
                    let (hir, size) = (Hir::literal(text.as_bytes()), text.len() as u64);
                    Piece { hir, size, depth: 1 }
                }
                Part::Class(class) => {
                    let size = 4 * class.ranges().len() as u64;
                    Piece { hir: Hir::class(Class::Unicode(class.clone())), size, depth: 1 }
                }
                Part::Rule(rule) => self.used(*rule)?,
                Part::Sequence(inner) => join_pieces(inner.iter().filter_map(take), Hir::concat),
                Part::Either(inner) => join_pieces(inner.iter().filter_map(take), Hir::alternation),
                Part::Repeat { part, least, most } => {
                    let Some(Piece { hir, size, depth }) = take(part) else { continue };
                    let times = u64::from(most.unwrap_or(*least)).max(1);
                    let sub = Box::new(hir);
                    let hir = Hir::repetition(Repetition { min: *least, max: *most, greedy: true, sub });
                    Piece { hir, size: size.saturating_mul(times), depth: depth + 1 }
                }
            };
            spend(1)?;
            made.push(Some(self.not_deep(piece, rule)));
        }
        Ok(made.pop().flatten().unwrap_or_else(|| Piece { hir: Hir::empty(), size: 0, depth: 1 }))
    }

    /// A rule where it is used.
    fn used(&mut self, rule: usize) -> Result<Piece, Over> {
        let called = match (self.numbers[rule], &self.pieces[rule]) {
            (None, Some(piece)) if piece.size <= MOST_WRITTEN => {
                hold((BYTES * piece.size) as usize)?;
                return Ok(piece.clone());
            }
            (None, Some(piece)) => {
                let hir = piece.hir.clone();
                let number = self.call(hir, rule);
                *self.numbers[rule].insert(number)
            }
            (number, _) => number.unwrap_or_default(),
        };
        Ok(call(called, self.can[rule].be_empty))
    }

    fn not_deep(&mut self, piece: Piece, rule: usize) -> Piece {
        if piece.depth < MOST_DEEP {
            return piece;
        }
        let may_be_empty = piece.hir.properties().minimum_len() == Some(0);
        call(self.call(piece.hir, rule), may_be_empty)
    }
}

fn join_pieces(pieces: impl Iterator<Item = Piece>, join: impl FnOnce(Vec<Hir>) -> Hir) -> Piece {
    let (mut size, mut depth) = (1u64, 0);
    let inner = pieces.map(|piece| {
        size = size.saturating_add(piece.size);
        depth = depth.max(piece.depth);
        piece.hir
    });
    let hir = join(inner.collect());
    Piece { hir, size, depth: depth + 1 }
}

/// A call, which is never made for the empty text: that needs none.
fn call(number: usize, may_be_empty: bool) -> Piece {
    // More numbers are refused in the end.
    let (high, low) = (number / DIGITS % DIGITS, number % DIGITS);
    let hir = Hir::literal([CALL, high as u8, low as u8]);
    let sub = Box::new(hir.clone());
    let optional = || Hir::repetition(Repetition { min: 0, max: Some(1), greedy: true, sub });
    Piece { hir: if may_be_empty { optional() } else { hir }, size: 3, depth: 2 }
}

/// An order in which what is called before any byte comes behind what calls it.
///
/// # Errors
/// One that comes again before any byte.
fn callers_first(bodies: &[Body]) -> Result<Vec<usize>, usize> {
    let begins_with = |body: usize| bodies[body].calls(bodies[body].start()).iter().map(|&(called, _)| called as usize);
    let mut callers = vec![0; bodies.len()];
    (0..bodies.len()).flat_map(begins_with).for_each(|called| callers[called] += 1);
    let mut free: VecDeque<usize> = (0..bodies.len()).filter(|&body| callers[body] == 0).collect();
    let mut order = Vec::with_capacity(bodies.len());
    while let Some(body) = free.pop_front() {
        order.push(body);
        for called in begins_with(body) {
            callers[called] -= 1;
            if callers[called] == 0 {
                free.push_back(called);
            }
        }
    }
    // Of those that are left each is called by one of them, so going back ends in a circle.
    let Some(mut body) = callers.iter().position(|&callers| callers > 0) else { return Ok(order) };
    let mut caller = vec![0; bodies.len()];
    for other in (0..bodies.len()).filter(|&other| callers[other] > 0) {
        begins_with(other).for_each(|called| caller[called] = other);
    }
    for _ in 0..bodies.len() {
        body = caller[body];
    }
    Err(body)
}
