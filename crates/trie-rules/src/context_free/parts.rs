//! Syntax tree of a context-free grammar in any notation: rules, and the parts that they are made of.

use super::embedded::EmbeddedRule;
use crate::grammar::{GrammarError, GrammarProblem, Place};
use regex_syntax::hir::{ClassUnicode, Hir};
use std::collections::HashMap;
use std::ops::Range;
use trie_core::work::LimitExceeded;

/// Largest number of repetitions.
const MOST_TIMES: u32 = 100_000;

/// Rules over one list of parts.
#[derive(Debug, Default)]
pub(super) struct RuleSet<'t> {
    /// The text, for places.
    pub(super) text: &'t str,
    pub(super) rules: Vec<NamedRule>,
    /// Parts of all rules, each behind its own parts.
    pub(super) parts: Vec<Part>,
    /// The rule that all texts follow.
    pub(super) root: usize,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
pub(super) struct NamedRule {
    pub(super) name: String,
    /// The byte where it is defined, else where it is used first.
    pub(super) at: usize,
    /// Its parts, the last of which is all of it; none before it is defined.
    pub(super) parts: Range<usize>,
}

#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    Class(ClassUnicode),
    Pattern(Hir),
    Embedded(EmbeddedRule),
    /// A rule, by its number.
    Rule(usize),
    Sequence(Vec<usize>),
    Either(Vec<usize>),
    Repeat {
        part: usize,
        least: u32,
        most: Option<u32>,
    },
}

impl<'t> RuleSet<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, ..Self::default() }
    }

    pub(super) fn push(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// Returns the number of a rule, which may be defined later.
    pub(super) fn rule_number(&mut self, name: &str, at: usize) -> usize {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        self.rules.push(NamedRule { name: name.to_owned(), at, parts: 0..0 });
        self.by_name.insert(name.to_owned(), self.rules.len() - 1);
        self.rules.len() - 1
    }

    /// Begins the definition of a rule: its number, and its first part.
    pub(super) fn begin(&mut self, name: &str, at: usize) -> Result<(usize, usize), GrammarError> {
        let rule = self.rule_number(name, at);
        if !self.rules[rule].parts.is_empty() {
            let first = self.place(self.rules[rule].at);
            return Err(self.wrong(at, GrammarProblem::DefinedTwice { name: name.to_owned(), first }));
        }
        Ok((rule, self.parts.len()))
    }

    /// Ends the definition of a rule that begins at a byte of the text, and with a part.
    pub(super) fn end(&mut self, rule: usize, at: usize, first: usize) {
        let end = self.parts.len();
        let defined = &mut self.rules[rule];
        (defined.at, defined.parts) = (at, first..end);
    }

    /// Sets the root, and looks for rules that nothing defines.
    pub(super) fn with_root(mut self, root: &'static str) -> Result<Self, GrammarError> {
        match self.by_name.get(root) {
            Some(&rule) if !self.rules[rule].parts.is_empty() => self.root = rule,
            _ => return Err(self.wrong(self.text.len(), GrammarProblem::NoRoot { root })),
        }
        match self.rules.iter().find(|rule| rule.parts.is_empty()) {
            Some(rule) => Err(self.wrong(rule.at, GrammarProblem::UnknownName { name: rule.name.clone() })),
            None => Ok(self),
        }
    }

    /// The error of a rule.
    pub(super) fn wrong_with(&self, rule: usize, problem: GrammarProblem) -> GrammarError {
        self.wrong(self.rules[rule].at, problem)
    }

    pub(super) fn wrong(&self, at: usize, problem: GrammarProblem) -> GrammarError {
        problem.into_error(self.place(at))
    }

    pub(super) fn place(&self, at: usize) -> Place {
        let before = &self.text[..at];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        Place { line: before.matches('\n').count() + 1, column: before[line..].chars().count() + 1 }
    }

    fn sequence(&mut self, parts: Vec<usize>) -> usize {
        match parts[..] {
            [one] => one,
            _ => self.push(Part::Sequence(parts)),
        }
    }
}

/// Checks that the budget suffices to read a text.
pub(super) fn check_budget(text: &str, most: usize, limit: usize) -> Result<(), GrammarError> {
    if text.len() <= most {
        return Ok(());
    }
    Err(GrammarProblem::TooMuch { over: LimitExceeded::Bytes(limit) }.into_error(Place { line: 1, column: 1 }))
}

/// The body of a rule while it is read. Groups inside groups are kept in a list and not on the stack: there may be as
/// many as the text is long.
pub(super) struct Groups {
    open: Vec<Group>,
}

/// A group that is not closed yet, or all of a rule.
#[derive(Default)]
struct Group {
    at: usize,
    is_optional: bool,
    alternatives: Vec<usize>,
    sequence: Vec<usize>,
}

impl Groups {
    pub(super) fn new() -> Self {
        Self { open: vec![Group::default()] }
    }

    pub(super) fn is_nested(&self) -> bool {
        self.open.len() > 1
    }

    /// The byte at which the innermost group begins, and whether it is optional.
    pub(super) fn innermost(&self) -> (usize, bool) {
        self.open.last().map_or((0, false), |group| (group.at, group.is_optional))
    }

    pub(super) fn open(&mut self, at: usize, is_optional: bool) {
        self.open.push(Group { at, is_optional, ..Group::default() });
    }

    pub(super) fn part(&mut self, part: usize) {
        if let Some(group) = self.open.last_mut() {
            group.sequence.push(part);
        }
    }

    /// Takes back the part that came last in this sequence.
    pub(super) fn take_last(&mut self) -> Option<usize> {
        self.open.last_mut()?.sequence.pop()
    }

    /// Begins the next alternative.
    pub(super) fn alternative(&mut self, rules: &mut RuleSet<'_>) {
        if let Some(group) = self.open.last_mut() {
            let sequence = std::mem::take(&mut group.sequence);
            group.alternatives.push(rules.sequence(sequence));
        }
    }

    /// Closes the innermost group: it becomes a part of the one around it.
    pub(super) fn close(&mut self, rules: &mut RuleSet<'_>) {
        let Some(mut group) = self.open.pop() else { return };
        let last = rules.sequence(group.sequence);
        let mut whole = if group.alternatives.is_empty() && !self.open.is_empty() {
            last
        } else {
            group.alternatives.push(last);
            rules.push(Part::Either(group.alternatives))
        };
        if group.is_optional {
            whole = rules.push(Part::Repeat { part: whole, least: 0, most: Some(1) });
        }
        self.part(whole);
    }
}

/// Returns a number of repetitions that was written in digits.
pub(super) fn times(digits: &str) -> Result<u32, GrammarProblem> {
    let fits = digits.parse().ok().filter(|&number: &u32| number <= MOST_TIMES);
    fits.ok_or_else(|| GrammarProblem::TooOften { times: digits.chars().take(20).collect(), limit: MOST_TIMES })
}
