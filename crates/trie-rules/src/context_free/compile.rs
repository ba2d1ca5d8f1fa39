//! Compiler from the rules of a grammar to automata that call each other.
//!
//! Each rule becomes a regular expression. A recursive rule is called: the expression has a call in its place, as three
//! bytes that never occur in UTF-8. Other rules are inlined. The expressions are then compiled as usual; most grammars
//! become one automaton, or a few.

use super::embedded::EmbeddedRule;
use super::left::without_left_recursion;
use super::machine::{Body, CALL, DIGITS, Machine};
use super::order::{Component, Productivity, find, rule_components};
use super::parts::{Part, RuleSet};
use crate::automaton::{AutomatonError, AutomatonLimits, Several, Table};
use crate::grammar::{GrammarError, GrammarProblem};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};
use std::collections::VecDeque;
use std::sync::Arc;
use trie_core::work::{LimitExceeded, Limits, hold, spend};

/// Largest size of a rule that is inlined, in bytes and states, about: a larger one is called.
const MOST_WRITTEN: u64 = 2000;

/// Largest depth of a part that is inlined: a deeper one is called, because compilers of regular expressions are
/// recursive.
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

/// A body that is called, before it is an automaton.
enum Callee {
    Pattern(Hir),
    Embedded(EmbeddedRule),
}

struct Compiler<'w, 't> {
    written: &'w RuleSet<'t>,
    can: Vec<Productivity>,
    /// Rules that are written out.
    pieces: Vec<Option<Piece>>,
    /// The numbers of rules that are called.
    numbers: Vec<Option<usize>>,
    /// Bodies, and the rules that they are of.
    called: Vec<(Callee, usize)>,
}

pub(super) fn compile(written: &RuleSet<'_>, limits: Limits) -> Result<Machine, GrammarError> {
    let (root, rules) = (written.root, written.rules.len());
    let too_much = |over| written.wrong_with(root, GrammarProblem::TooMuch { over });
    let mut compiler = Compiler {
        written,
        can: vec![Productivity::default(); rules],
        pieces: vec![None; rules],
        numbers: vec![None; rules],
        called: Vec::new(),
    };
    for component in rule_components(written).map_err(too_much)? {
        find(written, &component, &mut compiler.can).map_err(too_much)?;
        if let Some(&endless) = component.nodes.iter().find(|&&rule| !compiler.can[rule].end) {
            return Err(written.wrong_with(endless, endless_problem(written, endless)));
        }
        compiler.component(&component).map_err(too_much)?;
    }
    let root_number = match (compiler.numbers[root], compiler.pieces[root].take()) {
        (None, Some(piece)) => compiler.call(Callee::Pattern(piece.hir), root),
        (number, _) => number.unwrap_or_default(),
    };
    let limit = DIGITS * DIGITS;
    if compiler.called.len() > limit {
        let problem = GrammarProblem::TooLarge { what: "rules that come again inside themselves", limit };
        return Err(written.wrong_with(root, problem));
    }
    let too_large = |rule: usize, error: AutomatonError| {
        let problem = match error {
            AutomatonError::TooMuch { over } => GrammarProblem::TooMuch { over },
            AutomatonError::TooLarge { .. } => GrammarProblem::TooMuch { over: LimitExceeded::Bytes(limits.bytes) },
            // No part of a rule looks around.
            AutomatonError::Nothing | AutomatonError::Unsupported { .. } => endless_problem(written, rule),
        };
        written.wrong_with(rule, problem)
    };
    let mut bodies = Vec::new();
    let mut left = limits.bytes / PART;
    for (callee, rule) in &compiler.called {
        let table = match callee {
            Callee::Pattern(hir) => {
                automaton(hir, AutomatonLimits::bytes(left)).map_err(|error| too_large(*rule, error))?
            }
            Callee::Embedded(rule) => {
                bodies.push(Body::of_machine(Arc::clone(rule.machine())));
                continue;
            }
        };
        left = left.saturating_sub(size_of_val(&*table.next));
        bodies.push(Body::new(table));
    }
    without_left_recursion(&mut bodies, AutomatonLimits::bytes(left))
        .map_err(|(number, error)| too_large(compiler.called[number].1, error))?;
    let (bodies, root_number) = prune(bodies, root_number);
    let order = callers_first(&bodies);
    Ok(Machine::new(bodies, &order, root_number))
}

/// Returns the bodies that the root needs, and its number among them.
fn prune(bodies: Vec<Body>, root: usize) -> (Vec<Body>, usize) {
    let (mut number, mut queue) = (vec![None; bodies.len()], vec![root]);
    while let Some(body) = queue.pop() {
        if number[body].replace(0).is_none() {
            queue.extend(bodies[body].all_calls().map(|called| called as usize));
        }
    }
    number.iter_mut().flatten().zip(0u32..).for_each(|(number, next)| *number = next);
    let kept = bodies.into_iter().zip(&number).filter(|(_, number)| number.is_some());
    let kept = kept.map(|(body, _)| body.renumber(|called| number[called as usize].unwrap_or_default()));
    (kept.collect(), number[root].unwrap_or_default() as usize)
}

fn endless_problem(written: &RuleSet<'_>, rule: usize) -> GrammarProblem {
    GrammarProblem::Endless { name: written.rules[rule].name.clone() }
}

fn automaton(hir: &Hir, limits: AutomatonLimits) -> Result<Table, AutomatonError> {
    Several::from_hirs(&[hir], false, limits).map(|several| several.table)
}

impl Compiler<'_, '_> {
    fn component(&mut self, component: &Component) -> Result<(), LimitExceeded> {
        if !component.is_cyclic {
            for &rule in &component.nodes {
                self.pieces[rule] = Some(self.rule(rule)?);
            }
            return Ok(());
        }
        for &rule in &component.nodes {
            self.numbers[rule] = Some(self.call(Callee::Pattern(Hir::empty()), rule));
        }
        for &rule in &component.nodes {
            let Some(number) = self.numbers[rule] else { continue };
            self.called[number].0 = Callee::Pattern(self.rule(rule)?.hir);
        }
        Ok(())
    }

    /// Returns the number of a body that is called.
    fn call(&mut self, callee: Callee, rule: usize) -> usize {
        self.called.push((callee, rule));
        self.called.len() - 1
    }

    fn rule(&mut self, rule: usize) -> Result<Piece, LimitExceeded> {
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
                Part::Pattern(hir) => {
                    let (size, depth) = measure(hir);
                    Piece { hir: hir.clone(), size, depth }
                }
                Part::Embedded(embedded) => {
                    call(self.call(Callee::Embedded(embedded.clone()), rule), embedded.allows_empty())
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
    fn used(&mut self, rule: usize) -> Result<Piece, LimitExceeded> {
        let called = match (self.numbers[rule], &self.pieces[rule]) {
            (None, Some(piece)) if piece.size <= MOST_WRITTEN => {
                hold((BYTES * piece.size) as usize)?;
                return Ok(piece.clone());
            }
            (None, Some(piece)) => {
                let hir = piece.hir.clone();
                let number = self.call(Callee::Pattern(hir), rule);
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
        call(self.call(Callee::Pattern(piece.hir), rule), may_be_empty)
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

/// Returns the bytes and states of an expression, about, and how deep it is.
fn measure(hir: &Hir) -> (u64, u32) {
    let joined = |inner: &[Hir]| {
        let (sizes, depths): (Vec<u64>, Vec<u32>) = inner.iter().map(measure).unzip();
        let size = sizes.into_iter().fold(1u64, u64::saturating_add);
        (size, 1 + depths.into_iter().max().unwrap_or_default())
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, 1),
        HirKind::Literal(literal) => (literal.0.len() as u64, 1),
        HirKind::Class(Class::Unicode(class)) => (4 * class.ranges().len() as u64, 1),
        HirKind::Class(Class::Bytes(class)) => (class.ranges().len() as u64, 1),
        HirKind::Repetition(repetition) => {
            let (size, depth) = measure(&repetition.sub);
            let times = u64::from(repetition.max.unwrap_or(repetition.min)).max(1);
            (size.saturating_mul(times), depth + 1)
        }
        HirKind::Capture(capture) => measure(&capture.sub),
        HirKind::Concat(inner) | HirKind::Alternation(inner) => joined(inner),
    }
}

/// Returns an order in which bodies that are called before any byte come behind those that call them.
fn callers_first(bodies: &[Body]) -> Vec<usize> {
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
    order
}
