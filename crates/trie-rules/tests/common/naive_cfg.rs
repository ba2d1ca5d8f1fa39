//! Grammars as they are drawn, and Earley's parser over their characters, step by step as in the book.

use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
pub enum Expression {
    Text(String),
    /// Whether it is negated, and its ranges.
    Class(bool, Vec<(char, char)>),
    Rule(usize),
    Sequence(Vec<Self>),
    Either(Vec<Self>),
    Repeat(Box<Self>, usize, Option<usize>),
}

/// Names that differ by case and dashes alone.
const NAMES: [&str; 5] = ["root", "a-B", "A-b", "ab", "a-b"];

/// Some rules; the first is the root.
pub fn written() -> impl Strategy<Value = Vec<Expression>> {
    (1..NAMES.len()).prop_flat_map(|count| prop::collection::vec(expression(count), count))
}

fn expression(rules: usize) -> impl Strategy<Value = Expression> {
    let character = prop::sample::select(Expression::ALPHABET.to_vec());
    let range = (character.clone(), character.clone()).prop_map(|(one, other)| (one.min(other), one.max(other)));
    let leaf = prop_oneof![
        4 => prop::collection::vec(character, 0..3).prop_map(|text| Expression::Text(text.into_iter().collect())),
        2 => (any::<bool>(), prop::collection::vec(range, 1..3))
            .prop_map(|(not, ranges)| Expression::Class(not, ranges)),
        1 => Just(Expression::Class(false, vec![('\0', char::MAX)])),
        4 => (0..rules).prop_map(Expression::Rule),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 0..4).prop_map(Expression::Sequence),
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Expression::Either),
            2 => (inner, 0..3usize, prop::option::of(0..3usize))
                .prop_map(|(inner, least, more)| Expression::Repeat(inner.into(), least, more.map(|n| least + n))),
        ]
    })
}

fn lark_name(rule: usize) -> String {
    if rule == 0 { "start".to_owned() } else { format!("rule_{rule}") }
}

impl Expression {
    pub const ALPHABET: [char; 9] = ['a', 'b', 'c', '"', ']', '\\', '\n', 'é', '🦀'];

    pub fn text(rules: &[Self]) -> String {
        let rule = |(rule, name): (&Self, &str)| name.to_owned() + " ::= " + &rule.shown() + "\n";
        rules.iter().zip(NAMES).rev().map(rule).collect()
    }

    /// The same rules in Lark, classes as regular expressions.
    pub fn lark(rules: &[Self]) -> String {
        let rule = |(number, rule): (usize, &Self)| format!("{}: {}\n", lark_name(number), rule.shown_in_lark());
        rules.iter().enumerate().rev().map(rule).collect()
    }

    fn shown_in_lark(&self) -> String {
        let inside = |inner: &Self| match inner {
            Self::Sequence(_) | Self::Either(_) | Self::Repeat(..) => {
                format!("( // group\n {})", inner.shown_in_lark())
            }
            _ => inner.shown_in_lark(),
        };
        match self {
            Self::Text(text) => format!("{text:?}").replace("\\u{1f980}", "🦀"),
            Self::Class(not, ranges) => {
                let one = |&(first, last): &(char, char)| format!("\\x{{{:x}}}-\\x{{{:x}}}", first as u32, last as u32);
                format!("/[{}{}]/", if *not { "^" } else { "" }, ranges.iter().map(one).collect::<String>())
            }
            Self::Rule(rule) => lark_name(*rule),
            Self::Sequence(inner) if inner.is_empty() => "\"\"".to_owned(),
            Self::Sequence(inner) => inner.iter().map(inside).collect::<Vec<_>>().join(" "),
            Self::Either(inner) => inner.iter().map(inside).collect::<Vec<_>>().join("\n  | "),
            Self::Repeat(inner, least, most) => {
                let times = match (least, most) {
                    (0, None) => "*".to_owned(),
                    (least, None) => format!("{{{least},}}"),
                    (least, Some(most)) => format!("~{least}..{most}"),
                };
                format!("{}{times}", inside(inner))
            }
        }
    }

    /// The rules with `c` and `bb` as often as one likes before the first terminal and behind each.
    pub fn with_blanks(rules: &[Self]) -> Vec<Self> {
        fn spaced(from: &Expression, blanks: &dyn Fn() -> Expression) -> Expression {
            let all = |inner: &[Expression]| inner.iter().map(|inner| spaced(inner, blanks)).collect();
            match from {
                Expression::Text(_) | Expression::Class(..) => Expression::Sequence(vec![from.clone(), blanks()]),
                Expression::Rule(_) => from.clone(),
                Expression::Sequence(inner) if inner.is_empty() => Expression::Sequence(vec![blanks()]),
                Expression::Sequence(inner) => Expression::Sequence(all(inner)),
                Expression::Either(inner) => Expression::Either(all(inner)),
                Expression::Repeat(inner, least, most) => {
                    Expression::Repeat(spaced(inner, blanks).into(), *least, *most)
                }
            }
        }
        let blank = |text: &str| Self::Text(text.to_owned());
        let blanks = || Self::Repeat(Self::Either(vec![blank("c"), blank("bb")]).into(), 0, None);
        let mut all: Vec<Self> = rules.iter().map(|rule| spaced(rule, &blanks)).collect();
        all[0] = Self::Sequence(vec![blanks(), all[0].clone()]);
        all
    }

    fn shown(&self) -> String {
        let inside = |inner: &Self| match inner {
            Self::Sequence(_) | Self::Either(_) | Self::Repeat(..) => format!("( # group\n {})", inner.shown()),
            _ => inner.shown(),
        };
        let escaped = |character: char| match character {
            '"' | ']' | '\\' => format!("\\{character}"),
            '\n' => "\\n".to_owned(),
            '\0' => "\\x00".to_owned(),
            'é' => "\\u00E9".to_owned(),
            char::MAX => "\\U0010ffff".to_owned(),
            other => other.to_string(),
        };
        match self {
            Self::Text(text) => format!("\"{}\"", text.chars().map(escaped).collect::<String>()),
            Self::Class(false, ranges) if ranges[..] == [('\0', char::MAX)] => ".".to_owned(),
            Self::Class(not, ranges) => {
                let range = |&(one, other): &(char, char)| {
                    if one == other { escaped(one) } else { format!("{}-{}", escaped(one), escaped(other)) }
                };
                format!("[{}{}]", if *not { "^" } else { "" }, ranges.iter().map(range).collect::<String>())
            }
            Self::Rule(rule) => NAMES[*rule].to_owned(),
            Self::Sequence(inner) if inner.is_empty() => "\"\"".to_owned(),
            Self::Sequence(inner) => inner.iter().map(inside).collect::<Vec<_>>().join(" "),
            Self::Either(inner) => inner.iter().map(inside).collect::<Vec<_>>().join(" |\n  "),
            Self::Repeat(inner, least, most) => {
                let times = match (least, most) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (least, Some(most)) if least == most => format!("{{{least}}}"),
                    (least, most) => format!("{{{least},{}}}", most.map_or(String::new(), |most| most.to_string())),
                };
                format!("{}{times}", inside(inner))
            }
        }
    }

    fn each<'e>(&'e self, found: &mut Vec<&'e Self>) {
        found.push(self);
        match self {
            Self::Sequence(inner) | Self::Either(inner) => inner.iter().for_each(|inner| inner.each(found)),
            Self::Repeat(inner, ..) => inner.each(found),
            _ => {}
        }
    }

    fn mentioned(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.each(&mut found);
        found.iter().filter_map(|inner| if let Self::Rule(rule) = inner { Some(*rule) } else { None }).collect()
    }

    fn reached(rules: &[Self]) -> Vec<usize> {
        let mut reached = vec![0];
        let mut at = 0;
        while at < reached.len() {
            let more = rules[reached[at]].mentioned();
            for rule in more {
                if !reached.contains(&rule) {
                    reached.push(rule);
                }
            }
            at += 1;
        }
        reached
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Symbol {
    Rule(usize),
    Character(bool, Vec<(char, char)>),
}

/// Rules as alternatives of symbols.
#[derive(Debug)]
pub struct Cfg {
    rules: Vec<Vec<Vec<Symbol>>>,
    reached: Vec<usize>,
}

/// Rule, alternative, symbols of it that were read, where it began.
type Item = (usize, usize, usize, usize);

#[derive(Debug, Clone)]
pub struct Earley<'c> {
    cfg: &'c Cfg,
    sets: Vec<BTreeSet<Item>>,
}

impl Cfg {
    pub fn of(rules: &[Expression]) -> Self {
        let mut cfg = Self { rules: vec![Vec::new(); rules.len()], reached: Expression::reached(rules) };
        for (at, rule) in rules.iter().enumerate() {
            let symbols = cfg.symbols(rule);
            cfg.rules[at].push(symbols);
        }
        cfg
    }

    fn new_rule(&mut self, alternatives: Vec<Vec<Symbol>>) -> Symbol {
        self.rules.push(alternatives);
        Symbol::Rule(self.rules.len() - 1)
    }

    fn symbols(&mut self, from: &Expression) -> Vec<Symbol> {
        match from {
            Expression::Text(text) => text.chars().map(|c| Symbol::Character(false, vec![(c, c)])).collect(),
            Expression::Class(not, ranges) => vec![Symbol::Character(*not, ranges.clone())],
            Expression::Rule(rule) => vec![Symbol::Rule(*rule)],
            Expression::Sequence(inner) => inner.iter().flat_map(|inner| self.symbols(inner)).collect(),
            Expression::Either(inner) => {
                let alternatives = inner.iter().map(|inner| self.symbols(inner)).collect();
                vec![self.new_rule(alternatives)]
            }
            Expression::Repeat(inner, least, most) => {
                let one = self.symbols(inner);
                let mut all = Vec::new();
                (0..*least).for_each(|_| all.extend(one.iter().cloned()));
                if let Some(most) = most {
                    for _ in *least..*most {
                        all.push(self.new_rule(vec![one.clone(), Vec::new()]));
                    }
                } else {
                    let again = Symbol::Rule(self.rules.len());
                    let more = [one.as_slice(), &[again]].concat();
                    all.push(self.new_rule(vec![more, Vec::new()]));
                }
                all
            }
        }
    }

    /// Whether there is a rule that no text completes, of those that the root needs.
    pub fn has_endless(&self) -> bool {
        let mut ends = vec![false; self.rules.len()];
        for _ in &self.rules {
            for (at, rule) in self.rules.iter().enumerate() {
                let done = |symbol: &Symbol| if let Symbol::Rule(rule) = symbol { ends[*rule] } else { true };
                ends[at] = rule.iter().any(|symbols| symbols.iter().all(done));
            }
        }
        self.reached.iter().any(|&rule| !ends[rule])
    }

    pub fn parser(&self) -> Earley<'_> {
        Earley { cfg: self, sets: Vec::new() }.with((0..self.rules[0].len()).map(|nth| (0, nth, 0, 0)).collect())
    }
}

impl Earley<'_> {
    /// One set more, with all that follows from it.
    fn with(mut self, set: BTreeSet<Item>) -> Self {
        let now = self.sets.len();
        self.sets.push(set);
        loop {
            let mut more = Vec::new();
            for &(rule, nth, read, from) in &self.sets[now] {
                match self.cfg.rules[rule][nth].get(read) {
                    Some(&Symbol::Rule(next)) => {
                        more.extend((0..self.cfg.rules[next].len()).map(|nth| (next, nth, 0, now)));
                    }
                    Some(Symbol::Character(..)) => {}
                    None => more.extend(self.sets[from].iter().filter_map(|&(other, nth, read, from)| {
                        let waits = self.cfg.rules[other][nth].get(read) == Some(&Symbol::Rule(rule));
                        waits.then_some((other, nth, read + 1, from))
                    })),
                }
            }
            let before = self.sets[now].len();
            self.sets[now].extend(more);
            if self.sets[now].len() == before {
                return self;
            }
        }
    }

    /// After one character more, if some text begins so.
    pub fn read(&self, character: char) -> Option<Self> {
        let takes = |&(rule, nth, read, from): &Item| match self.cfg.rules[rule][nth].get(read)? {
            Symbol::Character(not, ranges) => {
                let within = ranges.iter().any(|&(first, last)| (first..=last).contains(&character));
                (within != *not).then_some((rule, nth, read + 1, from))
            }
            Symbol::Rule(_) => None,
        };
        let set: BTreeSet<Item> = self.sets.last()?.iter().filter_map(takes).collect();
        (!set.is_empty()).then(|| self.clone().with(set))
    }

    pub fn is_end(&self) -> bool {
        let ended = |&(rule, nth, read, from): &Item| (rule, from) == (0, 0) && read == self.cfg.rules[0][nth].len();
        self.sets.last().is_some_and(|set| set.iter().any(ended))
    }
}
