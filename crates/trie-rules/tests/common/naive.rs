//! Grammars without tables: terminals one by one, and Earley's recogniser. Slow, and nothing in common with the crate
//! but the automata of single patterns.

use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use std::collections::{HashMap, HashSet};
use trie_rules::{Regex, Rule};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    Rule(String),
    Terminal(usize),
}

pub struct Terminal {
    keyword: bool,
    pub pattern: String,
    regex: Regex,
}

pub struct Naive {
    /// Patterns, and the terminal that each belongs to. SKIP is 0.
    pub patterns: Vec<(usize, Terminal)>,
    pub rules: HashMap<String, Vec<Vec<Part>>>,
    pub start: String,
    skips: bool,
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut left = text.trim_start();
    while let Some(first) = left.chars().next() {
        let length = match first {
            '"' | '\'' => left[1..].find(first).unwrap() + 2,
            '/' => left.find('\n').unwrap_or(left.len()),
            ':' | '|' | ';' => 1,
            _ => left.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '%').unwrap_or(left.len()),
        };
        if first != '/' {
            words.push(left[..length].to_owned());
        }
        left = left[length..].trim_start();
    }
    words
}

impl Naive {
    /// A grammar without errors, `//` its only comments, whose first rule or `%start` is the start.
    pub fn new(text: &str) -> Self {
        let words = words(text);
        let mut rules: Vec<(String, Vec<Vec<String>>)> = Vec::new();
        let mut start = None;
        let mut left = words.into_iter().peekable();
        while let Some(name) = left.next() {
            if name == "%start" {
                start = left.next();
                continue;
            }
            assert_eq!(left.next().as_deref(), Some(":"));
            let mut alternatives = vec![Vec::new()];
            for word in left.by_ref().take_while(|word| word != ";") {
                match &*word {
                    "|" => alternatives.push(Vec::new()),
                    _ => alternatives.last_mut().unwrap().push(word),
                }
            }
            rules.push((name, alternatives));
        }
        let is_quoted = |word: &String| word.starts_with(['"', '\'']);
        let defines = |(name, alternatives): &(String, Vec<Vec<String>>)| {
            *name == name.to_uppercase() && alternatives.iter().all(|parts| parts.len() == 1 && is_quoted(&parts[0]))
        };
        let mut made = Self { patterns: Vec::new(), rules: HashMap::new(), start: String::new(), skips: false };
        let mut terminals: HashMap<String, usize> = HashMap::from([("SKIP".to_owned(), 0)]);
        for rule in &rules {
            let mut number = |word: &String| {
                let next = terminals.len();
                *terminals.entry(word.clone()).or_insert(next)
            };
            if defines(rule) {
                let of = number(&rule.0);
                made.skips |= rule.0 == "SKIP";
                rule.1.iter().for_each(|parts| made.patterns.push((of, Terminal::new(&parts[0]))));
                continue;
            }
            for word in rule.1.iter().flatten().filter(|word| is_quoted(word)) {
                let of = number(word);
                if !made.patterns.iter().any(|(known, _)| *known == of) {
                    made.patterns.push((of, Terminal::new(word)));
                }
            }
        }
        for rule in rules.iter().filter(|rule| !defines(rule)) {
            start.get_or_insert(rule.0.clone());
            let part = |word: &String| terminals.get(word).map_or(Part::Rule(word.clone()), |&of| Part::Terminal(of));
            let alternatives = rule.1.iter().map(|parts| parts.iter().map(part).collect()).collect();
            made.rules.insert(rule.0.clone(), alternatives);
        }
        made.start = start.unwrap();
        made
    }

    /// The terminals of a text; `None` where it is none.
    fn lexed(&self, text: &[u8]) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        let takes_newline = self.patterns.iter().filter(|(of, _)| *of == 0).any(|(_, skip)| skip.is(b"\n"));
        let text = if takes_newline { [b"\n", text].concat() } else { text.to_vec() };
        let mut left = &text[..];
        while !left.is_empty() {
            // All bytes with which some terminal goes on.
            let length = self.patterns.iter().map(|(_, terminal)| terminal.begun(left)).max()?;
            let matching = self.patterns.iter().filter(|(_, terminal)| length > 0 && terminal.is(&left[..length]));
            let mut matching: Vec<_> = matching.collect();
            matching.sort_by_key(|(_, terminal)| !terminal.keyword);
            let (of, _) = matching.first()?;
            if *of != 0 || !self.skips {
                found.push(*of);
            }
            left = &left[length..];
        }
        Some(found)
    }

    /// Whether a text is one of the grammar.
    pub fn accepts(&self, text: &[u8]) -> bool {
        self.lexed(text).is_some_and(|terminals| self.derives(&terminals))
    }

    fn derives(&self, terminals: &[usize]) -> bool {
        type Item<'g> = (&'g str, &'g [Part], usize, usize);
        let mut chart: Vec<HashSet<Item<'_>>> = vec![HashSet::new(); terminals.len() + 1];
        let begin = |name: &str, at: usize| {
            let (name, alternatives) = self.rules.get_key_value(name).unwrap();
            alternatives.iter().map(|parts| (&**name, &**parts, 0, at)).collect::<Vec<Item<'_>>>()
        };
        chart[0].extend(begin(&self.start, 0));
        for at in 0..=terminals.len() {
            // Until nothing is added: simple, and right for empty rules.
            loop {
                let mut more: Vec<Item<'_>> = Vec::new();
                for &(name, parts, dot, from) in &chart[at] {
                    match parts.get(dot) {
                        Some(Part::Rule(rule)) => more.extend(begin(rule, at)),
                        Some(Part::Terminal(_)) => {}
                        None => more.extend(chart[from].iter().filter_map(|&(other, parts, dot, from)| {
                            let waits = matches!(parts.get(dot), Some(Part::Rule(rule)) if rule == name);
                            waits.then_some((other, parts, dot + 1, from))
                        })),
                    }
                }
                let before = chart[at].len();
                chart[at].extend(more);
                if chart[at].len() == before {
                    break;
                }
            }
            if let Some(&next) = terminals.get(at) {
                let shifted: Vec<Item<'_>> = chart[at]
                    .iter()
                    .filter(|(_, parts, dot, _)| parts.get(*dot) == Some(&Part::Terminal(next)))
                    .map(|&(name, parts, dot, from)| (name, parts, dot + 1, from))
                    .collect();
                chart[at + 1].extend(shifted);
            }
        }
        let done = |&(name, parts, dot, from): &Item<'_>| name == self.start && dot == parts.len() && from == 0;
        chart[terminals.len()].iter().any(done)
    }

    /// A text of the grammar, with a blank between terminals.
    pub fn generate(&self, runner: &mut TestRunner, size: usize) -> String {
        let shortest = self.shortest();
        let mut text = String::new();
        let mut todo = vec![Part::Rule(self.start.clone())];
        let mut budget = size;
        while let Some(part) = todo.pop() {
            match part {
                Part::Terminal(of) => {
                    let own: Vec<_> = self.patterns.iter().filter(|(known, _)| *known == of).collect();
                    let one = proptest::sample::select((0..own.len()).collect::<Vec<_>>()).new_tree(runner);
                    text.push_str(&own[one.unwrap().current()].1.sample(runner));
                    text.push(' ');
                }
                Part::Rule(rule) => {
                    let alternatives = &self.rules[&rule];
                    let cost = |parts: &&Vec<Part>| parts.iter().map(|part| cost_of(part, &shortest)).sum::<usize>();
                    let some: Vec<&Vec<Part>> = if budget == 0 {
                        vec![alternatives.iter().min_by_key(|parts| cost(parts)).unwrap()]
                    } else {
                        budget -= 1;
                        alternatives.iter().collect()
                    };
                    let at = proptest::sample::select((0..some.len()).collect::<Vec<_>>())
                        .new_tree(runner)
                        .unwrap()
                        .current();
                    todo.extend(some[at].iter().rev().cloned());
                }
            }
        }
        text
    }

    /// How many steps each rule needs at least.
    fn shortest(&self) -> HashMap<String, usize> {
        let mut shortest = HashMap::new();
        loop {
            let before = shortest.clone();
            for (name, alternatives) in &self.rules {
                let cost =
                    |parts: &Vec<Part>| parts.iter().map(|part| cost_of(part, &before)).fold(1, usize::saturating_add);
                let least = alternatives.iter().map(cost).min().unwrap();
                if least < usize::MAX {
                    shortest.insert(name.clone(), least);
                }
            }
            if shortest == before {
                return shortest;
            }
        }
    }
}

fn cost_of(part: &Part, shortest: &HashMap<String, usize>) -> usize {
    match part {
        Part::Terminal(_) => 1,
        Part::Rule(rule) => shortest.get(rule).copied().unwrap_or(usize::MAX / 64),
    }
}

impl Terminal {
    fn new(word: &str) -> Self {
        let inner = &word[1..word.len() - 1];
        let between =
            inner.strip_prefix('/').and_then(|inner| inner.strip_suffix('/')).filter(|inner| !inner.is_empty());
        let pattern = between.map_or_else(|| regex_syntax::escape(inner), str::to_owned);
        Self { keyword: between.is_none(), regex: Regex::new(&pattern).unwrap(), pattern }
    }

    fn is(&self, text: &[u8]) -> bool {
        let end = text.iter().try_fold(self.regex.start(), |state, &byte| self.regex.step(&state, byte));
        !text.is_empty() && end.is_some_and(|end| self.regex.is_end(&end))
    }

    /// How many bytes begin a text of the terminal.
    fn begun(&self, text: &[u8]) -> usize {
        let mut state = self.regex.start();
        let goes_on = |&byte: &u8| self.regex.step(&state, byte).inspect(|&next| state = next).is_some();
        text.iter().copied().take_while(goes_on).count()
    }

    pub fn sample(&self, runner: &mut TestRunner) -> String {
        string_regex(&self.pattern).unwrap().new_tree(runner).unwrap().current()
    }
}
