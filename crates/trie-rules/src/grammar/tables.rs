//! LR(1) tables: the action of each terminal in each state, and the conflicts between actions.

use super::error::{GrammarError, GrammarProblem, Place};
use super::names::{Part, ResolvedGrammar};
use super::sets::Sets;
use super::states::{Item, Plan, Production, States};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use trie_core::work::{LimitExceeded, hold, spend};

/// Conflicts that are told; there may be as many as pairs of alternatives.
const MOST_CONFLICTS: usize = 1000;

/// Action of the parser on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Shift(u32),
    Reduce(u32),
    Accept,
}

/// Rows of a table that is mostly empty: keys, ascending, and what stands there.
#[derive(Debug, PartialEq, Eq)]
struct Rows<T> {
    begins: Vec<u32>,
    entries: Vec<(u32, T)>,
}

impl<T: Copy> Rows<T> {
    fn new() -> Self {
        Self { begins: vec![0], entries: Vec::new() }
    }

    fn push(&mut self, row: impl IntoIterator<Item = (u32, T)>) -> Result<(), LimitExceeded> {
        let before = self.entries.len();
        self.entries.extend(row);
        self.begins.push(self.entries.len() as u32);
        hold((self.entries.len() - before) * size_of::<(u32, T)>())
    }

    #[inline]
    fn row(&self, state: u32) -> &[(u32, T)] {
        let ends = self.begins.get(state as usize..).unwrap_or_default();
        if let [from, to, ..] = *ends { &self.entries[from as usize..to as usize] } else { &[] }
    }

    #[inline]
    fn get(&self, state: u32, key: u32) -> Option<T> {
        let row = self.row(state);
        row.binary_search_by_key(&key, |&(key, _)| key).ok().map(|at| row[at].1)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tables {
    /// The column of the end of the text.
    end: u32,
    /// By state and terminal.
    actions: Rows<Action>,
    /// By state and rule.
    gotos: Rows<u32>,
    pub(super) productions: Vec<Production>,
    /// The alternatives that each state stands in, and how many of their parts are behind it.
    pub(super) kernels: Vec<Vec<(u32, u32)>>,
    pub(super) start: u32,
}

impl Tables {
    /// Returns the action on a terminal in a state; the column after the last is the end of the text.
    #[inline]
    pub(super) fn action(&self, state: u32, terminal: u32) -> Option<Action> {
        self.actions.get(state, terminal)
    }

    /// The terminals, and the end, that do something in a state; ascending.
    pub(super) fn columns(&self, state: u32) -> impl Iterator<Item = u32> + '_ {
        self.actions.row(state).iter().map(|&(column, _)| column)
    }

    #[inline]
    pub(super) fn goto(&self, state: u32, rule: u32) -> Option<u32> {
        self.gotos.get(state, rule)
    }

    /// Rules that lead on from a state, and where to.
    pub(super) fn gotos(&self, state: u32) -> &[(u32, u32)] {
        self.gotos.row(state)
    }

    /// The column of the end of the text.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    pub(super) fn states(&self) -> usize {
        self.kernels.len()
    }

    /// Tables, and the conflicts that were decided as yacc does: shift, or the rule that comes first.
    pub(super) fn build(grammar: &ResolvedGrammar) -> Result<(Self, Vec<GrammarError>), GrammarError> {
        let start = grammar.rules[grammar.start as usize].place;
        let too_much = |over: LimitExceeded| GrammarProblem::TooMuch { over }.into_error(start);
        let of_rule = |(number, rule): (usize, &super::names::RuleOf)| {
            let made = |parts: &Vec<Part>| Production { rule: Some(number as u32), parts: parts.clone() };
            rule.alternatives.iter().map(made).collect::<Vec<_>>()
        };
        let mut productions: Vec<Production> = grammar.rules.iter().enumerate().flat_map(of_rule).collect();
        let whole = productions.len() as u32;
        productions.push(Production { rule: None, parts: vec![Part::Rule(grammar.start)] });
        let (end, mut sets) = (grammar.terminals.len() as u32, Sets::new());
        let plan = Plan::build(grammar, &productions, &mut sets).map_err(too_much)?;
        let mut states = plan.states(whole, end, sets).map_err(too_much)?;
        let (mut actions, mut gotos, mut conflicts) = (Rows::new(), Rows::new(), Vec::new());
        for state in 0..states.kernels.len() {
            let row = Row { grammar, plan: &plan, whole }.build_row(&mut states, state, &mut conflicts);
            let row = row.map_err(too_much)??;
            actions.push(row).map_err(too_much)?;
            let rules = states.edges[state].iter().filter_map(|&(part, to)| match part {
                Part::Rule(rule) => Some((rule, to)),
                Part::Terminal(_) => None,
            });
            gotos.push(rules).map_err(too_much)?;
        }
        conflicts.sort_by_key(|error: &GrammarError| error.place);
        conflicts.dedup();
        let kernels = states.kernels.iter().map(|kernel| kernel.iter().map(|&(item, _)| item).collect()).collect();
        Ok((Self { end, actions, gotos, productions, kernels, start: 0 }, conflicts))
    }
}

/// Builder of a row of the action table.
struct Row<'g> {
    grammar: &'g ResolvedGrammar,
    plan: &'g Plan<'g>,
    whole: u32,
}

impl Row<'_> {
    fn build_row(
        &self,
        states: &mut States,
        state: usize,
        conflicts: &mut Vec<GrammarError>,
    ) -> Result<Result<BTreeMap<u32, Action>, GrammarError>, LimitExceeded> {
        let kernel = &states.kernels[state];
        let closure = self.plan.closure(kernel, &mut states.sets)?;
        let mut row = BTreeMap::new();
        for &(part, to) in &states.edges[state] {
            if let Part::Terminal(terminal) = part {
                row.insert(terminal, Action::Shift(to));
            }
        }
        let begun =
            closure.iter().flat_map(|(&rule, &follows)| self.plan.numbers(rule).map(move |of| ((of, 0), follows)));
        let mut items: Vec<(Item, u32)> = kernel.iter().copied().chain(begun).collect();
        items.sort_unstable();
        // Each terminal's first item that shifts it.
        let mut shifts: BTreeMap<u32, Item> = BTreeMap::new();
        for &((production, dot), _) in &items {
            if let Some(&Part::Terminal(next)) = self.plan.productions[production as usize].parts.get(dot as usize) {
                shifts.entry(next).or_insert((production, dot));
            }
        }
        for &((production, dot), follows) in &items {
            if (dot as usize) < self.plan.productions[production as usize].parts.len() {
                continue;
            }
            for terminal in states.sets.table().members(follows) {
                spend(4)?;
                let does = if production == self.whole { Action::Accept } else { Action::Reduce(production) };
                let known = *row.entry(terminal).or_insert(does);
                if known == does {
                    continue;
                }
                let conflict = match known {
                    Action::Accept => return Ok(Err(self.endless(production))),
                    // The whole grammar comes last of all alternatives.
                    Action::Reduce(first) if production == self.whole => return Ok(Err(self.endless(first))),
                    Action::Reduce(first) => self.conflict(terminal, (first, None), (production, None)),
                    Action::Shift(_) => {
                        let (shifted, dot) = shifts.get(&terminal).copied().unwrap_or_default();
                        self.conflict(terminal, (production, None), (shifted, Some(dot)))
                    }
                };
                if conflicts.len() < MOST_CONFLICTS {
                    conflicts.push(conflict);
                }
            }
        }
        Ok(Ok(row))
    }

    fn conflict(&self, terminal: u32, one: (u32, Option<u32>), other: (u32, Option<u32>)) -> GrammarError {
        let name = self.grammar.terminals.get(terminal as usize).map(|terminal| terminal.name.clone());
        let terminal = name.unwrap_or("the end".to_owned());
        let ((one, at), (other, other_place)) =
            (self.show_alternative(one.0, one.1), self.show_alternative(other.0, other.1));
        GrammarProblem::Conflict { terminal, one, other, other_place }.into_error(at)
    }

    /// Returns the error of a cycle: the text may end and continue without a terminal.
    fn endless(&self, other: u32) -> GrammarError {
        let (other, place) = self.show_alternative(other, None);
        let (terminal, one) = ("the end".to_owned(), "the text ends".to_owned());
        GrammarProblem::Conflict { terminal, one, other, other_place: place }.into_error(place)
    }

    /// An alternative as it was written, with a dot where the text stands, and its place.
    fn show_alternative(&self, production: u32, dot: Option<u32>) -> (String, Place) {
        const SHOWN: usize = 20;
        let Production { rule, parts } = &self.plan.productions[production as usize];
        let rule = &self.grammar.rules[rule.unwrap_or(self.grammar.start) as usize];
        let mut text = format!("{} :", rule.name);
        let dot = dot.map(|dot| dot as usize);
        let skipped = dot.unwrap_or(parts.len()).saturating_sub(SHOWN);
        text.push_str(if skipped > 0 { " ..." } else { "" });
        for (at, part) in parts.iter().enumerate().skip(skipped).take(2 * SHOWN) {
            let name = match *part {
                Part::Terminal(terminal) => &self.grammar.terminals[terminal as usize].name,
                Part::Rule(rule) => &self.grammar.rules[rule as usize].name,
            };
            let _ = write!(text, "{} {name}", if dot == Some(at) { " ·" } else { "" });
        }
        if dot.is_none_or(|dot| dot >= parts.len()) {
            text.push_str(" ·");
        }
        (text, rule.place)
    }
}
