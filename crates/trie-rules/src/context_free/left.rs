//! Removal of left recursion: rules that begin with themselves, as in `sum : product | sum "+" product`.
//!
//! A machine must read a byte before it calls the same rule again. So rules that may call each other before any byte
//! are merged into one automaton, by their left corners. The automaton begins wherever one of these rules reads a byte.
//! At the end of a rule it continues behind every call of that rule that stands at the beginning of another one. `sum`
//! becomes `product ("+" product)*`. The language stays the same.

use super::machine::{Body, CALL, DIGITS};
use super::order::components;
use crate::automaton::table::Classes;
use crate::automaton::{AutomatonError, AutomatonLimits, Table};
use std::collections::{HashMap, HashSet};
use trie_core::work::{LimitExceeded, spend};

/// Position in the automaton of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Position {
    /// Before the first byte of this body: what it calls here is read as its left corner.
    Start { body: u32 },
    /// Behind the byte that begins a call at the start.
    Call { body: u32, state: u32 },
    /// Behind the first digit of that call.
    Digit { body: u32, state: u32, digit: u8 },
    /// At a state of the automaton of a body.
    In { body: u32, state: u32 },
}

/// Replaces bodies that may come again before any byte.
///
/// # Errors
/// The body whose automaton is too large, and the limit.
pub(super) fn without_left_recursion(
    bodies: &mut [Body],
    limits: AutomatonLimits,
) -> Result<(), (usize, AutomatonError)> {
    let begins_with = |body: usize| -> Result<Vec<usize>, LimitExceeded> {
        let calls = bodies[body].calls(bodies[body].start());
        spend(1 + calls.len())?;
        Ok(calls.iter().map(|&(called, _)| called as usize).collect())
    };
    let found = components(bodies.len(), 0..bodies.len(), begins_with).map_err(|over| (0, over.into()))?;
    let mut left = limits.bytes;
    for component in found.into_iter().filter(|component| component.is_cyclic) {
        let corners = Corners::new(bodies, &component.nodes);
        let mut made = Vec::new();
        for &body in &component.nodes {
            let table = corners.table(body, AutomatonLimits::bytes(left)).map_err(|error| (body, error))?;
            left = left.saturating_sub(size_of_val(&*table.next));
            made.push((body, Body::new(table)));
        }
        for (body, new) in made {
            bodies[body] = new;
        }
    }
    Ok(())
}

/// The automata of one component.
struct Corners<'b> {
    tables: HashMap<u32, &'b Table>,
    members: HashSet<u32>,
    /// Behind which states the text goes on where a member ends.
    behind: HashMap<u32, Vec<Position>>,
    classes: Classes,
}

impl<'b> Corners<'b> {
    fn new(bodies: &'b [Body], nodes: &[usize]) -> Self {
        let members: HashSet<u32> = nodes.iter().map(|&body| body as u32).collect();
        let tables: HashMap<u32, &Table> =
            nodes.iter().filter_map(|&body| Some((body as u32, bodies[body].table()?))).collect();
        let mut behind: HashMap<u32, Vec<Position>> = HashMap::new();
        for &body in nodes {
            for &(called, state) in bodies[body].calls(bodies[body].start()) {
                if members.contains(&called) {
                    behind.entry(called).or_default().push(Position::In { body: body as u32, state });
                }
            }
        }
        // What calls a member is told apart from other calls.
        let digits: HashSet<usize> = nodes.iter().flat_map(|&body| [body / DIGITS, body % DIGITS]).collect();
        let classes = Classes::from_key(|byte| {
            let of = |body: &usize| tables[&(*body as u32)].classes[usize::from(byte)];
            let alone = byte == CALL || digits.contains(&usize::from(byte));
            (alone.then_some(byte), nodes.iter().map(of).collect::<Vec<u8>>())
        });
        Self { tables, members, behind, classes }
    }

    fn table(&self, body: usize, limits: AutomatonLimits) -> Result<Table, AutomatonError> {
        let own = body as u32;
        let start: Vec<Position> = {
            let mut all: Vec<Position> = self.members.iter().map(|&body| Position::Start { body }).collect();
            all.sort_unstable();
            all
        };
        let is_empty = self.tables[&own].is_end(self.tables[&own].start);
        let ends = |set: &Vec<Position>| {
            let is_end = |at: &Position| match at {
                Position::In { body, state } => *body == own && self.tables[body].is_end(*state),
                _ => false,
            };
            u32::from(set.iter().any(is_end) || (is_empty && matches!(set[..], [Position::Start { .. }, ..])))
        };
        let weigh = |set: &Vec<Position>| size_of_val(&**set);
        let table = Table::explore(&self.classes, start, limits, weigh, |set, byte| self.step(set, byte), ends)?;
        Ok(table.without_dead_ends()?.minimal())
    }

    fn step(&self, set: &[Position], byte: u8) -> Option<Vec<Position>> {
        let mut next: Vec<Position> = set.iter().filter_map(|&at| self.advance(at, byte)).collect();
        if spend(set.len()).is_err() {
            return None;
        }
        let mut seen: HashSet<Position> = next.iter().copied().collect();
        let mut at = 0;
        while let Some(&one) = next.get(at) {
            at += 1;
            let Position::In { body, state } = one else { continue };
            if !self.tables[&body].is_end(state) {
                continue;
            }
            let behind = self.behind.get(&body).into_iter().flatten();
            next.extend(behind.copied().filter(|&more| seen.insert(more)));
        }
        next.sort_unstable();
        next.dedup();
        (!next.is_empty()).then_some(next)
    }

    fn advance(&self, at: Position, byte: u8) -> Option<Position> {
        Some(match at {
            Position::Start { body } => {
                let table = self.tables[&body];
                let state = table.step(table.start, byte)?;
                if byte == CALL { Position::Call { body, state } } else { Position::In { body, state } }
            }
            Position::Call { body, state } => {
                Position::Digit { body, state: self.tables[&body].step(state, byte)?, digit: byte }
            }
            Position::Digit { body, state, digit } => {
                let called = DIGITS * usize::from(digit) + usize::from(byte);
                if self.members.contains(&(called as u32)) {
                    return None;
                }
                Position::In { body, state: self.tables[&body].step(state, byte)? }
            }
            Position::In { body, state } => Position::In { body, state: self.tables[&body].step(state, byte)? },
        })
    }
}
