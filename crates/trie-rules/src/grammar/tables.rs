//! LR(1) tables: made by `lrtable`, copied into arrays.

use super::error::{GrammarError, GrammarProblem, Place};
use super::names::{Part, Resolved};
use cfgrammar::yacc::{YaccGrammar, YaccKind, YaccOriginalActionKind};
use cfgrammar::{PIdx, RIdx, Symbol, TIdx};
use lrtable::{Action, Minimiser, StIdx, StateGraph, StateTable, from_yacc};
use std::collections::HashMap;
use std::fmt::Write as _;

const NONE: u32 = u32::MAX;

/// What a terminal does in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Shift(u32),
    Reduce(u32),
    Accept,
}

/// An alternative of a rule, or the whole grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Production {
    /// Column of the rule in the table of gotos; `None` for the whole grammar.
    pub(super) rule: Option<u32>,
    pub(super) parts: Vec<Part>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tables {
    /// Terminals and the end.
    columns: usize,
    rules: usize,
    /// By state and terminal: 0 for nothing, the state after + 1, below 0 the production, the greatest for the end.
    actions: Vec<i32>,
    /// By state and rule.
    gotos: Vec<u32>,
    pub(super) productions: Vec<Production>,
    /// The alternatives that each state stands in, and how many of their parts are behind it.
    pub(super) kernels: Vec<Vec<(u32, u32)>>,
    pub(super) start: u32,
}

impl Tables {
    /// What a terminal does in a state; the column after the last is the end of the text.
    #[inline]
    pub(super) fn does(&self, state: u32, terminal: u32) -> Option<Does> {
        match *self.actions.get(state as usize * self.columns + terminal as usize)? {
            0 => None,
            i32::MAX => Some(Does::Accept),
            shift @ 1.. => Some(Does::Shift(shift as u32 - 1)),
            reduce => Some(Does::Reduce((-reduce) as u32 - 1)),
        }
    }

    #[inline]
    pub(super) fn goto(&self, state: u32, rule: u32) -> Option<u32> {
        let &after = self.gotos.get(state as usize * self.rules + rule as usize)?;
        (after != NONE).then_some(after)
    }

    pub(super) fn rules(&self) -> usize {
        self.rules
    }

    /// The column of the end of the text.
    pub(super) fn end(&self) -> u32 {
        self.columns as u32 - 1
    }

    pub(super) fn states(&self) -> usize {
        self.kernels.len()
    }

    /// Tables, and the conflicts that were decided as yacc does: shift, or the rule that comes first.
    pub(super) fn of(grammar: &Resolved) -> Result<(Self, Vec<GrammarError>), GrammarError> {
        let start = &grammar.rules[grammar.start as usize];
        let internal = |problem: String| GrammarProblem::Syntax { problem }.at(start.place);
        let kind = YaccKind::Original(YaccOriginalActionKind::NoAction);
        let yacc = YaccGrammar::<u32>::new(kind, &plain(grammar))
            .map_err(|errors| internal(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        let made = from_yacc(&yacc, Minimiser::Pager);
        let names = Names::of(grammar, &yacc);
        let (graph, table) = made.map_err(|error| {
            let lrtable::statetable::StateTableErrorKind::AcceptReduceConflict(other) = error.kind else {
                return internal(error.to_string());
            };
            let (rule, alternative) = other.map_or((grammar.start, 0), |other| names.written(&yacc, other));
            let place = grammar.rules[rule as usize].place;
            GrammarProblem::Conflict {
                terminal: "the end".to_owned(),
                one: "the text ends".to_owned(),
                other: shown(grammar, rule, alternative, None),
                other_place: place,
            }
            .at(place)
        })?;
        let conflicts = names.conflicts(grammar, &yacc, &graph, &table);
        Ok((names.copy(grammar, &yacc, &graph, &table), conflicts))
    }
}

/// The grammar with numbers for names, so that none of them means anything to the library.
fn plain(grammar: &Resolved) -> String {
    let mut text = format!("%start r{}\n%%\n", grammar.start);
    let unused: Vec<_> = grammar.warnings.iter().map(|warning| warning.place).collect();
    for (number, rule) in grammar.rules.iter().enumerate().filter(|(_, rule)| !unused.contains(&rule.place)) {
        let alternatives = rule.alternatives.iter().map(|parts| {
            let parts = parts.iter().map(|part| match part {
                Part::Terminal(terminal) => format!("'t{terminal}'"),
                Part::Rule(rule) => format!("r{rule}"),
            });
            parts.collect::<Vec<_>>().join(" ")
        });
        let _ = writeln!(text, "r{number}: {} ;", alternatives.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// An alternative as it was written, with a dot where the text stands.
fn shown(grammar: &Resolved, rule: u32, alternative: usize, dot: Option<usize>) -> String {
    let rule = &grammar.rules[rule as usize];
    let parts = rule.alternatives.get(alternative).map_or(&[][..], Vec::as_slice);
    let mut text = format!("{} :", rule.name);
    for (at, part) in parts.iter().enumerate() {
        let name = match *part {
            Part::Terminal(terminal) => &grammar.terminals[terminal as usize].name,
            Part::Rule(rule) => &grammar.rules[rule as usize].name,
        };
        let _ = write!(text, "{} {name}", if dot == Some(at) { " ·" } else { "" });
    }
    if dot.is_none_or(|dot| dot >= parts.len()) {
        text.push_str(" ·");
    }
    text
}

/// Whose numbers are whose.
struct Names {
    /// Our terminal of each of the library's; `None` is the end.
    terminals: Vec<Option<u32>>,
    /// Our rule and alternative of each of the library's alternatives.
    productions: HashMap<PIdx<u32>, (u32, usize)>,
    rules: HashMap<RIdx<u32>, u32>,
}

impl Names {
    fn of(grammar: &Resolved, yacc: &YaccGrammar<u32>) -> Self {
        let number = |name: Option<&str>| name.and_then(|name| name[1..].parse().ok());
        let terminals = yacc.iter_tidxs().map(|terminal| number(yacc.token_name(terminal))).collect();
        let (mut productions, mut rules) = (HashMap::new(), HashMap::new());
        for ours in 0..grammar.rules.len() as u32 {
            let Some(theirs) = yacc.rule_idx(&format!("r{ours}")) else { continue };
            rules.insert(theirs, ours);
            productions.extend(yacc.rule_to_prods(theirs).iter().enumerate().map(|(at, &theirs)| (theirs, (ours, at))));
        }
        Self { terminals, productions, rules }
    }

    fn written(&self, _yacc: &YaccGrammar<u32>, theirs: PIdx<u32>) -> (u32, usize) {
        self.productions.get(&theirs).copied().unwrap_or_default()
    }

    fn terminal(&self, theirs: TIdx<u32>) -> Option<u32> {
        self.terminals.get(usize::from(theirs)).copied().flatten()
    }

    fn conflicts(
        &self,
        grammar: &Resolved,
        yacc: &YaccGrammar<u32>,
        graph: &StateGraph<u32>,
        table: &StateTable<u32>,
    ) -> Vec<GrammarError> {
        let Some(conflicts) = table.conflicts() else { return Vec::new() };
        let name = |terminal: TIdx<u32>| {
            let ours = self.terminal(terminal);
            ours.map_or("the end".to_owned(), |ours| grammar.terminals[ours as usize].name.clone())
        };
        let whole = |theirs: PIdx<u32>| {
            let (rule, alternative) = self.written(yacc, theirs);
            (shown(grammar, rule, alternative, None), place(grammar, rule))
        };
        let shifts = conflicts.sr_conflicts().map(|&(terminal, reduced, state)| {
            let mut items: Vec<_> = graph.closed_state(state).items.keys().copied().collect();
            items.sort_unstable();
            let shifted = items
                .into_iter()
                .find(|&(theirs, dot)| yacc.prod(theirs).get(usize::from(dot)) == Some(&Symbol::Token(terminal)));
            let (one, at) = whole(reduced);
            let (other, other_place) = shifted.map_or_else(
                || (String::new(), at),
                |(theirs, dot)| {
                    let (rule, alternative) = self.written(yacc, theirs);
                    (shown(grammar, rule, alternative, Some(usize::from(dot))), place(grammar, rule))
                },
            );
            GrammarProblem::Conflict { terminal: name(terminal), one, other, other_place }.at(at)
        });
        let reductions = conflicts.rr_conflicts().map(|&(terminal, first, second, _)| {
            let ((one, at), (other, other_place)) = (whole(first), whole(second));
            GrammarProblem::Conflict { terminal: name(terminal), one, other, other_place }.at(at)
        });
        let mut all: Vec<GrammarError> = shifts.chain(reductions).collect();
        all.sort_by_key(|error| error.place);
        all.dedup();
        all
    }

    fn copy(
        &self,
        grammar: &Resolved,
        yacc: &YaccGrammar<u32>,
        graph: &StateGraph<u32>,
        table: &StateTable<u32>,
    ) -> Tables {
        let columns = grammar.terminals.len() + 1;
        let (rules, states) = (grammar.rules.len(), usize::from(graph.all_states_len()));
        let mut actions = vec![0; states * columns];
        let mut gotos = vec![NONE; states * rules];
        let mut kernels = Vec::with_capacity(states);
        for state in 0..states {
            let at = StIdx(state as u32);
            for terminal in table.state_actions(at) {
                let column = self.terminal(terminal).map_or(columns - 1, |ours| ours as usize);
                actions[state * columns + column] = match table.action(at, terminal) {
                    Action::Shift(after) => u32::from(after) as i32 + 1,
                    Action::Reduce(production) => -(u32::from(production) as i32) - 1,
                    Action::Accept => i32::MAX,
                    Action::Error => 0,
                };
            }
            for (&theirs, &ours) in &self.rules {
                if let Some(after) = table.goto(at, theirs) {
                    gotos[state * rules + ours as usize] = u32::from(after);
                }
            }
            let items = graph.core_state(at).items.keys();
            let mut kernel: Vec<_> = items.map(|&(theirs, dot)| (u32::from(theirs), usize::from(dot) as u32)).collect();
            kernel.sort_unstable();
            kernels.push(kernel);
        }
        let production = |theirs: u32| {
            let theirs = PIdx(theirs);
            let parts = yacc.prod(theirs).iter().map(|part| match part {
                Symbol::Rule(rule) => Part::Rule(self.rules[rule]),
                Symbol::Token(terminal) => Part::Terminal(self.terminal(*terminal).unwrap_or_default()),
            });
            Production { rule: self.rules.get(&yacc.prod_to_rule(theirs)).copied(), parts: parts.collect() }
        };
        let productions = (0..u32::from(yacc.prods_len())).map(production).collect();
        Tables { columns, rules, actions, gotos, productions, kernels, start: u32::from(table.start_state()) }
    }
}

fn place(grammar: &Resolved, rule: u32) -> Place {
    grammar.rules[rule as usize].place
}
