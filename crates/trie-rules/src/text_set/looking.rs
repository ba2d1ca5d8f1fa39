//! Deterministic automata of patterns with look-arounds.
//!
//! A text matches if a formula about what follows holds before its first character. Its variables are states of the
//! automaton: "from here on, this state leads to its end". Each character turns the formula into one about the rest.
//! Look-behinds are followed from the first character on: each of their states has the formula under which it was
//! reached. Formulas are decision diagrams, so that equal ones are one number, and there are finitely many.

use super::nfa::{Nfa, State};
use super::raw::Raw;
use crate::automaton::table::DEAD;
use crate::automaton::{AutomatonError, AutomatonLimits};
use std::collections::HashMap;
use std::rc::Rc;
use trie_core::work::spend;

/// A formula: the number of a node.
type Formula = u32;
const FALSE: Formula = 0;
const TRUE: Formula = 1;
/// The variable that is true at the end of the text.
const END: u32 = 0;

/// Bytes of a node, and of a place, about.
const NODE: usize = 96;
const PLACE: usize = 200;

/// Decision diagrams: each node is a variable, and what holds if it is false and if it is true.
struct Formulas {
    nodes: Vec<(u32, Formula, Formula)>,
    known: HashMap<(u32, Formula, Formula), Formula>,
    made: HashMap<(Formula, Formula, Formula), Formula>,
    limits: AutomatonLimits,
}

impl Formulas {
    fn new(limits: AutomatonLimits) -> Self {
        let ends = vec![(u32::MAX, FALSE, FALSE), (u32::MAX, TRUE, TRUE)];
        Self { nodes: ends, known: HashMap::new(), made: HashMap::new(), limits }
    }

    fn node(&mut self, var: u32, no: Formula, yes: Formula) -> Result<Formula, AutomatonError> {
        if no == yes {
            return Ok(no);
        }
        if let Some(&known) = self.known.get(&(var, no, yes)) {
            return Ok(known);
        }
        spend(1)?;
        if NODE * (self.nodes.len() + self.made.len()) > self.limits.bytes {
            return Err(AutomatonError::TooLarge { limit: self.limits.bytes });
        }
        let number = self.nodes.len() as Formula;
        self.nodes.push((var, no, yes));
        self.known.insert((var, no, yes), number);
        Ok(number)
    }

    /// `yes` where the condition holds, `no` where it does not.
    fn choose(&mut self, when: Formula, yes: Formula, no: Formula) -> Result<Formula, AutomatonError> {
        match (when, yes, no) {
            (TRUE, ..) => return Ok(yes),
            (FALSE, ..) => return Ok(no),
            (_, TRUE, FALSE) => return Ok(when),
            _ if yes == no => return Ok(yes),
            _ => {}
        }
        if let Some(&made) = self.made.get(&(when, yes, no)) {
            return Ok(made);
        }
        let var = [when, yes, no].map(|formula| self.nodes[formula as usize].0).into_iter().min().unwrap_or(u32::MAX);
        let side = |formulas: &Self, formula: Formula, holds: bool| {
            let (of, no, yes) = formulas.nodes[formula as usize];
            if of != var {
                formula
            } else if holds {
                yes
            } else {
                no
            }
        };
        let [falsely, truly] = [false, true].map(|holds| [when, yes, no].map(|formula| side(self, formula, holds)));
        let falsely = self.choose(falsely[0], falsely[1], falsely[2])?;
        let truly = self.choose(truly[0], truly[1], truly[2])?;
        let made = self.node(var, falsely, truly)?;
        self.made.insert((when, yes, no), made);
        Ok(made)
    }

    fn and(&mut self, one: Formula, other: Formula) -> Result<Formula, AutomatonError> {
        self.choose(one, other, FALSE)
    }

    fn or(&mut self, one: Formula, other: Formula) -> Result<Formula, AutomatonError> {
        self.choose(one, TRUE, other)
    }

    fn not(&mut self, one: Formula) -> Result<Formula, AutomatonError> {
        self.choose(one, FALSE, TRUE)
    }

    /// Behind the last character.
    fn at_end(&self, mut formula: Formula) -> bool {
        while formula > TRUE {
            let (var, no, yes) = self.nodes[formula as usize];
            formula = if var == END { yes } else { no };
        }
        formula == TRUE
    }
}

/// A state of the deterministic automaton.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    /// Formula over the remaining text.
    rest: Formula,
    /// For each body that looks behind, in order: under what its states were reached that read, and its end.
    behind: Rc<[Vec<(u32, Formula)>]>,
}

struct Machine<'n> {
    nfa: &'n Nfa,
    formulas: Formulas,
    /// For each set of characters, the classes that it contains.
    has: Vec<Vec<bool>>,
    /// Index of each state in its body.
    local: Vec<u32>,
    /// Body of each state.
    owner: Vec<u32>,
    /// Formulas over the remaining text, of the states of a body: by body, by whether the text begins here, and by the
    /// results of lookbehinds.
    known: HashMap<(u32, bool, Vec<Formula>), Rc<[Formula]>>,
}

/// Facts about one position of the text.
struct PlaceFacts {
    is_start: bool,
    /// For each lookahead body, the formulas that its states need to reach the end; empty for lookbehinds.
    ahead: Vec<Rc<[Formula]>>,
    /// For each lookbehind body, whether it has matched.
    values: Vec<Formula>,
    behind: Vec<Vec<(u32, Formula)>>,
}

/// All states of the texts that match.
pub(super) fn determinise(
    nfa: &Nfa,
    has: Vec<Vec<bool>>,
    width: usize,
    limits: AutomatonLimits,
) -> Result<Raw, AutomatonError> {
    let (mut local, mut owner) = (vec![0; nfa.states.len()], vec![0; nfa.states.len()]);
    for (number, body) in nfa.bodies.iter().enumerate() {
        for (at, &state) in body.states.iter().enumerate() {
            local[state as usize] = at as u32;
            owner[state as usize] = number as u32;
        }
    }
    let mut machine = Machine { nfa, formulas: Formulas::new(limits), has, local, owner, known: HashMap::new() };
    let start = machine.start()?;
    let mut known = HashMap::from([(start.clone(), 0u32)]);
    let mut order = vec![start];
    let (mut next, mut ends) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(place) = order.get(at).cloned() {
        at += 1;
        spend(width)?;
        ends.push(machine.formulas.at_end(place.rest));
        for class in 0..width {
            let after = machine.derive_place(&place, class)?;
            next.push(if after.rest == FALSE {
                DEAD
            } else {
                *known.entry(after).or_insert_with_key(|after| {
                    order.push(after.clone());
                    order.len() as u32 - 1
                })
            });
        }
        if size_of::<u32>() * next.len() + PLACE * order.len() > limits.bytes {
            return Err(AutomatonError::TooLarge { limit: limits.bytes });
        }
    }
    Ok(Raw { next, ends, width })
}

impl Machine<'_> {
    fn start(&mut self) -> Result<Place, AutomatonError> {
        let here = self.facts_at(true, |_, _| Ok(Vec::new()))?;
        let main = self.nfa.main();
        let rest = here.ahead[self.nfa.bodies.len() - 1][self.local[main.entry as usize] as usize];
        Ok(Self::place(rest, here.behind))
    }

    fn place(rest: Formula, behind: Vec<Vec<(u32, Formula)>>) -> Place {
        // Where nothing more must hold, nothing is looked for.
        let behind = if rest > TRUE { behind.into() } else { Rc::from([]) };
        Place { rest, behind }
    }

    fn derive_place(&mut self, place: &Place, class: usize) -> Result<Place, AutomatonError> {
        if place.rest <= TRUE {
            return Ok(place.clone());
        }
        let mut made = HashMap::new();
        let mut number = 0;
        let here = self.facts_at(false, |machine, here| {
            let reached = &place.behind[number];
            number += 1;
            let mut seeds = Vec::new();
            for &(state, under) in reached {
                if let State::Set { set, next } = machine.nfa.states[state as usize]
                    && machine.has[set as usize][class]
                {
                    let under = machine.derive(under, class, here, &mut made)?;
                    seeds.push((next, under));
                }
            }
            Ok(seeds)
        })?;
        let rest = self.derive(place.rest, class, &here, &mut made)?;
        Ok(Self::place(rest, here.behind))
    }

    /// Computes the derivative of a formula by a character. Only bodies that were decided may be in it.
    fn derive(
        &mut self,
        formula: Formula,
        class: usize,
        here: &PlaceFacts,
        made: &mut HashMap<Formula, Formula>,
    ) -> Result<Formula, AutomatonError> {
        if formula <= TRUE {
            return Ok(formula);
        }
        if let Some(&made) = made.get(&formula) {
            return Ok(made);
        }
        let (var, no, yes) = self.formulas.nodes[formula as usize];
        let when = self.variable_after(var, class, here);
        let yes = self.derive(yes, class, here, made)?;
        let no = self.derive(no, class, here, made)?;
        let after = self.formulas.choose(when, yes, no)?;
        made.insert(formula, after);
        Ok(after)
    }

    fn variable_after(&self, var: u32, class: usize, here: &PlaceFacts) -> Formula {
        if var == END {
            return FALSE;
        }
        let state = var - 1;
        match self.nfa.states[state as usize] {
            State::Set { set, next } if self.has[set as usize][class] => {
                here.ahead[self.owner[state as usize] as usize][self.local[next as usize] as usize]
            }
            _ => FALSE,
        }
    }

    /// Computes the facts about a position; `seeds` are the states of each lookbehind body, in order, reached by a
    /// character.
    fn facts_at(
        &mut self,
        is_start: bool,
        mut seeds: impl FnMut(&mut Self, &PlaceFacts) -> Result<Vec<(u32, Formula)>, AutomatonError>,
    ) -> Result<PlaceFacts, AutomatonError> {
        let mut here = PlaceFacts { is_start, ahead: Vec::new(), values: Vec::new(), behind: Vec::new() };
        for body in 0..self.nfa.bodies.len() as u32 {
            if self.nfa.bodies[body as usize].is_ahead {
                let ahead = self.ahead(body, &here)?;
                here.ahead.push(ahead);
                here.values.push(FALSE);
            } else {
                let seeds = seeds(self, &here)?;
                let (reached, value) = self.reach_in_body(body, seeds, &here)?;
                here.ahead.push(Rc::from([]));
                here.values.push(value);
                here.behind.push(reached);
            }
        }
        Ok(here)
    }

    /// Returns whether the assertion of a body holds.
    fn holds(&mut self, body: u32, negative: bool, here: &PlaceFacts) -> Result<Formula, AutomatonError> {
        let of = &self.nfa.bodies[body as usize];
        let holds = if of.is_ahead {
            here.ahead[body as usize][self.local[of.entry as usize] as usize]
        } else {
            here.values[body as usize]
        };
        if negative { self.formulas.not(holds) } else { Ok(holds) }
    }

    fn ahead(&mut self, body: u32, here: &PlaceFacts) -> Result<Rc<[Formula]>, AutomatonError> {
        let key = (body, here.is_start, here.values.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(Rc::clone(known));
        }
        let nfa = self.nfa;
        let states = &nfa.bodies[body as usize].states;
        let mut found = vec![FALSE; states.len()];
        // The least solution: what only leads back to itself leads nowhere.
        loop {
            let mut changed = false;
            spend(states.len())?;
            for (at, &state) in states.iter().enumerate() {
                let next = |found: &[Formula], to: u32| found[self.local[to as usize] as usize];
                let formula = match &nfa.states[state as usize] {
                    State::Accept => {
                        // The pattern itself ends with the text there; what is looked for ends anywhere.
                        if body as usize + 1 == nfa.bodies.len() { self.end()? } else { TRUE }
                    }
                    State::All => TRUE,
                    State::Set { .. } => self.formulas.node(state + 1, FALSE, TRUE)?,
                    State::Split(ways) => {
                        let mut either = FALSE;
                        for &way in ways {
                            let way = next(&found, way);
                            either = self.formulas.or(either, way)?;
                        }
                        either
                    }
                    &State::Look { body, negative, next: to } => {
                        let to = next(&found, to);
                        let holds = self.holds(body, negative, here)?;
                        self.formulas.and(holds, to)?
                    }
                    &State::Start(to) => {
                        if here.is_start {
                            next(&found, to)
                        } else {
                            FALSE
                        }
                    }
                    &State::End(to) => {
                        let to = next(&found, to);
                        let end = self.end()?;
                        self.formulas.and(end, to)?
                    }
                };
                changed |= found[at] != formula;
                found[at] = formula;
            }
            if !changed {
                break;
            }
        }
        let found: Rc<[Formula]> = found.into();
        self.known.insert(key, Rc::clone(&found));
        Ok(found)
    }

    fn end(&mut self) -> Result<Formula, AutomatonError> {
        self.formulas.node(END, FALSE, TRUE)
    }

    /// The states of a body that were reached, those that read, each with the condition; and that of its end.
    fn reach_in_body(
        &mut self,
        body: u32,
        mut queue: Vec<(u32, Formula)>,
        here: &PlaceFacts,
    ) -> Result<(Vec<(u32, Formula)>, Formula), AutomatonError> {
        let nfa = self.nfa;
        let of = &nfa.bodies[body as usize];
        let mut found = vec![FALSE; of.states.len()];
        // It may begin anywhere.
        queue.push((of.entry, TRUE));
        while let Some((state, under)) = queue.pop() {
            spend(1)?;
            let local = self.local[state as usize] as usize;
            let either = self.formulas.or(found[local], under)?;
            if std::mem::replace(&mut found[local], either) == either {
                continue;
            }
            match &nfa.states[state as usize] {
                State::Split(ways) => queue.extend(ways.iter().map(|&way| (way, either))),
                &State::Look { body, negative, next } => {
                    let holds = self.holds(body, negative, here)?;
                    queue.push((next, self.formulas.and(holds, either)?));
                }
                &State::Start(next) if here.is_start => queue.push((next, either)),
                &State::End(next) => {
                    let end = self.end()?;
                    queue.push((next, self.formulas.and(end, either)?));
                }
                State::Set { .. } | State::Accept | State::All | State::Start(_) => {}
            }
        }
        let value = found[self.local[of.accept as usize] as usize];
        let reads = |state: u32| matches!(nfa.states[state as usize], State::Set { .. });
        let reached = of.states.iter().copied().zip(found).filter(|&(state, under)| under != FALSE && reads(state));
        Ok((reached.collect(), value))
    }
}
