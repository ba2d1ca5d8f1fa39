//! Name resolution: names become numbers of terminals and rules, and unused or useless symbols are found.

use super::error::{GrammarError, GrammarProblem, Place};
use super::text::{Kind, ParsedGrammar, WrittenRule};
use std::collections::HashMap;

/// The rule for what may stand between terminals.
const SKIP: &str = "SKIP";

/// A part of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Part {
    Terminal(u32),
    Rule(u32),
}

#[derive(Debug)]
pub(super) struct Terminal {
    /// As it is written: a name, or with quotes.
    pub(super) name: String,
    pub(super) place: Place,
    /// Alternatives of the pattern.
    pub(super) patterns: Vec<Pattern>,
}

#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) place: Place,
    /// A keyword's text, or a regular expression.
    pub(super) text: String,
    pub(super) keyword: bool,
}

#[derive(Debug)]
pub(super) struct RuleOf {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) alternatives: Vec<Vec<Part>>,
}

/// A grammar whose names are resolved.
#[derive(Debug)]
pub(super) struct ResolvedGrammar {
    pub(super) terminals: Vec<Terminal>,
    pub(super) rules: Vec<RuleOf>,
    pub(super) start: u32,
    /// The terminal that may stand anywhere.
    pub(super) skip: Option<u32>,
    /// Unused symbols. Not an error for those who asked for warnings.
    pub(super) warnings: Vec<GrammarError>,
}

/// Returns the rules that have an alternative that consists of such rules alone; `terminals`: and of terminals.
/// `O(parts)`.
pub(super) fn made_of(rules: &[RuleOf], terminals: bool) -> Vec<bool> {
    let mut made = vec![false; rules.len()];
    // Of each alternative its rule, and how many of its parts are left; of each rule the alternatives that wait for it.
    let (mut left, mut waiting) = (Vec::new(), vec![Vec::new(); rules.len()]);
    let mut queue = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        for parts in &rule.alternatives {
            let mut count = 0u32;
            for part in parts {
                match *part {
                    Part::Rule(rule) => waiting[rule as usize].push(left.len()),
                    Part::Terminal(_) if terminals => continue,
                    Part::Terminal(_) => {}
                }
                count += 1;
            }
            left.push((number, count));
            if count == 0 && !std::mem::replace(&mut made[number], true) {
                queue.push(number);
            }
        }
    }
    while let Some(rule) = queue.pop() {
        for &alternative in &waiting[rule] {
            let (of, left) = &mut left[alternative];
            *left -= 1;
            if *left == 0 && !std::mem::replace(&mut made[*of], true) {
                queue.push(*of);
            }
        }
    }
    made
}

/// A text in quotes: between slashes it is a pattern.
fn pattern(text: &str, place: Place) -> Pattern {
    match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
        Some(inner) if !inner.is_empty() => Pattern { place, text: inner.to_owned(), keyword: false },
        _ => Pattern { place, text: text.to_owned(), keyword: true },
    }
}

fn in_quotes(text: &str) -> String {
    let quote = if text.contains('"') { '\'' } else { '"' };
    format!("{quote}{text}{quote}")
}

/// A name in capitals whose alternatives are one text in quotes each: a terminal, not a rule.
fn defines_terminal(rule: &WrittenRule) -> bool {
    let capitals = !rule.name.contains(|character: char| character.is_ascii_lowercase());
    let quoted = |symbols: &Vec<_>| matches!(&**symbols, [super::text::Symbol { what: Kind::Quoted(_), .. }]);
    capitals && rule.alternatives.iter().all(quoted)
}

impl ResolvedGrammar {
    pub(super) fn resolve(written: &ParsedGrammar) -> Result<Self, GrammarError> {
        let mut names: HashMap<String, (Part, Place)> = HashMap::new();
        let mut made = Self { terminals: Vec::new(), rules: Vec::new(), start: 0, skip: None, warnings: Vec::new() };
        let mut quoted: HashMap<String, u32> = HashMap::new();
        for rule in &written.rules {
            let part = if defines_terminal(rule) {
                let texts = rule.alternatives.iter().flatten();
                let texts = texts.map(|symbol| match &symbol.what {
                    Kind::Quoted(text) | Kind::Name(text) => pattern(text, symbol.place),
                });
                let number = made.terminals.len() as u32;
                let terminal = Terminal { name: rule.name.clone(), place: rule.place, patterns: texts.collect() };
                // The same text in quotes elsewhere means this terminal, if it is all that the terminal is.
                if let [[super::text::Symbol { what: Kind::Quoted(text), .. }]] =
                    rule.alternatives.iter().map(Vec::as_slice).collect::<Vec<_>>()[..]
                {
                    quoted.entry(text.clone()).or_insert(number);
                }
                if rule.name == SKIP {
                    made.skip = Some(number);
                }
                made.terminals.push(terminal);
                Part::Terminal(number)
            } else {
                if rule.name == SKIP {
                    let problem = "SKIP is made of terminals alone: SKIP : \"/[ \\n]+/\" | \"/#.*/\" ;".to_owned();
                    return Err(GrammarProblem::Syntax { problem }.into_error(rule.place));
                }
                let number = made.rules.len() as u32;
                made.rules.push(RuleOf { name: rule.name.clone(), place: rule.place, alternatives: Vec::new() });
                Part::Rule(number)
            };
            if let Some((_, first)) = names.insert(rule.name.clone(), (part, rule.place)) {
                return Err(GrammarProblem::DefinedTwice { name: rule.name.clone(), first }.into_error(rule.place));
            }
        }
        for rule in written.rules.iter().filter(|rule| !defines_terminal(rule)) {
            let alternatives = rule.alternatives.iter().map(|symbols| {
                symbols.iter().map(|symbol| made.part(&symbol.what, symbol.place, &names, &mut quoted)).collect()
            });
            let alternatives = alternatives.collect::<Result<Vec<Vec<Part>>, _>>()?;
            if let Some(&(Part::Rule(number), _)) = names.get(&rule.name) {
                made.rules[number as usize].alternatives = alternatives;
            }
        }
        made.start = match &written.start {
            None if made.rules.is_empty() => {
                return Err(GrammarProblem::NoRule.into_error(Place { line: 1, column: 1 }));
            }
            None => 0,
            Some((name, place)) => match names.get(name) {
                Some(&(Part::Rule(number), _)) => number,
                Some(_) => {
                    let problem = format!("%start needs a rule, and {name} is a terminal");
                    return Err(GrammarProblem::Syntax { problem }.into_error(*place));
                }
                None => return Err(GrammarProblem::UnknownName { name: name.clone() }.into_error(*place)),
            },
        };
        made.must_end()?;
        made.must_be_of_use();
        Ok(made)
    }

    fn part(
        &mut self,
        what: &Kind,
        place: Place,
        names: &HashMap<String, (Part, Place)>,
        quoted: &mut HashMap<String, u32>,
    ) -> Result<Part, GrammarError> {
        match what {
            Kind::Name(name) => match names.get(name) {
                Some(&(Part::Terminal(number), _)) if self.skip == Some(number) => {
                    let problem = "SKIP stands between all terminals and in no rule".to_owned();
                    Err(GrammarProblem::Syntax { problem }.into_error(place))
                }
                Some(&(part, _)) => Ok(part),
                None => Err(GrammarProblem::UnknownName { name: name.clone() }.into_error(place)),
            },
            Kind::Quoted(text) => Ok(Part::Terminal(*quoted.entry(text.clone()).or_insert_with(|| {
                let terminal = Terminal { name: in_quotes(text), place, patterns: vec![pattern(text, place)] };
                self.terminals.push(terminal);
                self.terminals.len() as u32 - 1
            }))),
        }
    }

    /// Every rule has a finite text.
    fn must_end(&self) -> Result<(), GrammarError> {
        let ends = made_of(&self.rules, true);
        match ends.iter().position(|&ends| !ends) {
            Some(endless) => {
                let rule = &self.rules[endless];
                Err(GrammarProblem::Endless { name: rule.name.clone() }.into_error(rule.place))
            }
            None => Ok(()),
        }
    }

    fn must_be_of_use(&mut self) {
        let mut rules = vec![false; self.rules.len()];
        let mut terminals = vec![false; self.terminals.len()];
        let mut queue = vec![self.start];
        while let Some(rule) = queue.pop() {
            if std::mem::replace(&mut rules[rule as usize], true) {
                continue;
            }
            for part in self.rules[rule as usize].alternatives.iter().flatten() {
                match *part {
                    Part::Terminal(terminal) => terminals[terminal as usize] = true,
                    Part::Rule(rule) => queue.push(rule),
                }
            }
        }
        if let Some(skip) = self.skip {
            terminals[skip as usize] = true;
        }
        let start = &self.rules[self.start as usize].name;
        let unused_rules = self.rules.iter().zip(&rules).filter(|(_, used)| !**used);
        let unused_rules = unused_rules.map(|(rule, _)| (rule.name.clone(), rule.place));
        let unused_terminals = self.terminals.iter().zip(&terminals).filter(|(_, used)| !**used);
        let unused_terminals = unused_terminals.map(|(terminal, _)| (terminal.name.clone(), terminal.place));
        let unused = unused_rules
            .chain(unused_terminals)
            .map(|(name, place)| GrammarProblem::Unreachable { name, start: start.clone() }.into_error(place));
        self.warnings = unused.collect();
    }
}
