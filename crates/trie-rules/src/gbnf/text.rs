//! The text of a grammar in GBNF, as llama.cpp reads it: rules, and the parts that they are made of.

use crate::grammar::{GrammarError, GrammarProblem, Place};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::collections::HashMap;
use std::ops::Range;
use trie_core::work::{Over, spend};

/// Largest number of repetitions.
const MOST_TIMES: u32 = 100_000;

/// A grammar as it was written.
#[derive(Debug, Default)]
pub(super) struct ParsedGrammar<'t> {
    text: &'t str,
    pub(super) rules: Vec<WrittenRule<'t>>,
    /// Parts of all rules, each behind its own parts.
    pub(super) parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) struct WrittenRule<'t> {
    pub(super) name: &'t str,
    /// Offset of the definition, or else of the first use, in bytes.
    at: usize,
    /// Its parts, the last of which is all of it; none before it is defined.
    pub(super) parts: Range<usize>,
}

#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    Class(ClassUnicode),
    /// Number of a rule.
    Rule(usize),
    Sequence(Vec<usize>),
    Either(Vec<usize>),
    Repeat {
        part: usize,
        least: u32,
        most: Option<u32>,
    },
}

/// A group that is not closed yet, or all of a rule.
#[derive(Default)]
struct Open {
    at: usize,
    done: Vec<usize>,
    sequence: Vec<usize>,
}

fn in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-'
}

struct Reader<'t> {
    written: ParsedGrammar<'t>,
    known: HashMap<&'t str, usize>,
    at: usize,
}

/// Checks that the budget suffices to read a text.
pub(super) fn check_budget(text: &str, most: usize, limit: usize) -> Result<(), GrammarError> {
    if text.len() <= most {
        return Ok(());
    }
    Err(GrammarProblem::TooMuch { over: Over::Bytes(limit) }.at(Place { line: 1, column: 1 }))
}

impl<'t> ParsedGrammar<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, GrammarError> {
        let written = ParsedGrammar { text, ..ParsedGrammar::default() };
        let mut reader = Reader { written, known: HashMap::new(), at: 0 };
        reader.space(true);
        while reader.peek().is_some() {
            reader.rule()?;
        }
        let written = reader.written;
        if !reader.known.contains_key("root") {
            return Err(written.wrong(text.len(), GrammarProblem::NoRoot));
        }
        match written.rules.iter().find(|rule| rule.parts.is_empty()) {
            Some(rule) => Err(written.wrong(rule.at, GrammarProblem::UnknownName { name: rule.name.to_owned() })),
            None => Ok(written),
        }
    }

    /// The rule that all texts follow.
    pub(super) fn root(&self) -> usize {
        self.rules.iter().position(|rule| rule.name == "root").unwrap_or_default()
    }

    /// Returns an error about a rule.
    pub(super) fn wrong_with(&self, rule: usize, problem: GrammarProblem) -> GrammarError {
        self.wrong(self.rules[rule].at, problem)
    }

    fn wrong(&self, at: usize, problem: GrammarProblem) -> GrammarError {
        problem.at(self.place(at))
    }

    fn place(&self, at: usize) -> Place {
        let before = &self.text[..at];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        Place { line: before.matches('\n').count() + 1, column: before[line..].chars().count() + 1 }
    }
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<char> {
        self.written.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn takes(&mut self, text: &str) -> bool {
        let found = self.written.text[self.at..].starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn while_is(&mut self, is: impl Fn(char) -> bool) -> &'t str {
        let rest = &self.written.text[self.at..];
        let taken = &rest[..rest.find(|character| !is(character)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn wrong<T>(&self, at: usize, problem: impl Into<String>) -> Result<T, GrammarError> {
        Err(self.written.wrong(at, GrammarProblem::Syntax { problem: problem.into() }))
    }

    /// Blanks and comments, and ends of lines where those mean nothing.
    fn space(&mut self, lines: bool) {
        loop {
            let blanks = self.while_is(|next| matches!(next, ' ' | '\t') || (lines && matches!(next, '\r' | '\n')));
            if self.peek() == Some('#') {
                self.while_is(|next| !matches!(next, '\r' | '\n'));
            } else if blanks.is_empty() {
                return;
            }
        }
    }

    fn push(&mut self, part: Part) -> usize {
        self.written.parts.push(part);
        self.written.parts.len() - 1
    }

    /// The number of a rule, which may be defined later.
    fn rule_number(&mut self, name: &'t str, at: usize) -> usize {
        *self.known.entry(name).or_insert_with(|| {
            self.written.rules.push(WrittenRule { name, at, parts: 0..0 });
            self.written.rules.len() - 1
        })
    }

    fn rule(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        let name = self.while_is(in_name);
        if name.is_empty() {
            let hint = "a rule begins with its name, of a-z, A-Z, 0-9 and -, and ends with its line: to go on in the \
                        next, end the line with | or put it all in parentheses";
            return self.wrong(at, hint);
        }
        self.space(false);
        if !self.takes("::=") {
            return self.wrong(self.at, format!("::= must follow {name}"));
        }
        let rule = self.rule_number(name, at);
        if !self.written.rules[rule].parts.is_empty() {
            let first = self.written.place(self.written.rules[rule].at);
            return Err(self.written.wrong(at, GrammarProblem::DefinedTwice { name: name.to_owned(), first }));
        }
        self.space(true);
        let first = self.written.parts.len();
        self.body()?;
        let defined = &mut self.written.rules[rule];
        (defined.at, defined.parts) = (at, first..self.written.parts.len());
        match self.peek() {
            None | Some('\n' | '\r') => self.space(true),
            Some(')') => return self.wrong(self.at, "unmatched )"),
            Some(':') => return self.wrong(self.at, "a rule ends with its line, and not with |"),
            Some(other) => return self.wrong(self.at, format!("unexpected {other:?} in a rule")),
        }
        Ok(())
    }

    /// Parses the body behind `::=`. Groups inside groups are kept in a list: there may be as many as the text is long.
    fn body(&mut self) -> Result<(), GrammarError> {
        let mut open = vec![Open::default()];
        loop {
            let at = self.at;
            if let Err(over) = spend(1) {
                return Err(self.written.wrong(at, GrammarProblem::TooMuch { over }));
            }
            let nested = open.len() > 1;
            let Some(group) = open.last_mut() else { return Ok(()) };
            let part = match self.peek() {
                Some('"') => self.literal()?,
                Some('[') => self.class()?,
                Some('.') => {
                    self.at += 1;
                    Part::Class(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]))
                }
                Some('<' | '!') => {
                    let what =
                        "a token, such as <name> or <[7]>: it is about tokens, and a constraint is a set of texts";
                    return Err(self.written.wrong(at, GrammarProblem::Unsupported { what: what.to_owned() }));
                }
                Some('(') => {
                    self.at += 1;
                    open.push(Open { at, ..Open::default() });
                    self.space(true);
                    continue;
                }
                Some('|') => {
                    self.at += 1;
                    let sequence = std::mem::take(&mut group.sequence);
                    group.done.push(self.sequence(sequence));
                    self.space(true);
                    continue;
                }
                Some('*' | '+' | '?' | '{') => {
                    let Some(part) = group.sequence.pop() else {
                        return self.wrong(at, "there is nothing before it that could be repeated");
                    };
                    let (least, most) = self.times(nested)?;
                    Part::Repeat { part, least, most }
                }
                Some(next) if in_name(next) => {
                    let name = self.while_is(in_name);
                    Part::Rule(self.rule_number(name, at))
                }
                Some(')') if nested => {
                    self.at += 1;
                    Self::close(self, &mut open);
                    self.space(open.len() > 1);
                    continue;
                }
                next if nested => {
                    let from = self.written.place(group.at);
                    let found = next.map_or("the text ends".to_owned(), |next| format!("here comes {next:?}"));
                    return self.wrong(at, format!("{found}, and the ( of {from} is not closed"));
                }
                _ => {
                    Self::close(self, &mut open);
                    return Ok(());
                }
            };
            group.sequence.push(self.push(part));
            self.space(nested);
        }
    }

    fn sequence(&mut self, parts: Vec<usize>) -> usize {
        match parts[..] {
            [one] => one,
            _ => self.push(Part::Sequence(parts)),
        }
    }

    /// Closes the innermost group: it is a part of the one around it.
    fn close(&mut self, open: &mut Vec<Open>) {
        let Some(mut group) = open.pop() else { return };
        let last = self.sequence(group.sequence);
        let whole = if group.done.is_empty() && open.last().is_some() {
            last
        } else {
            group.done.push(last);
            self.push(Part::Either(group.done))
        };
        if let Some(around) = open.last_mut() {
            around.sequence.push(whole);
        }
    }

    fn literal(&mut self) -> Result<Part, GrammarError> {
        let from = self.at;
        self.at += 1;
        let mut text = String::new();
        while !self.takes("\"") {
            text.push(self.character(from)?);
        }
        Ok(Part::Text(text))
    }

    fn class(&mut self) -> Result<Part, GrammarError> {
        let from = self.at;
        self.at += 1;
        let negated = self.takes("^");
        let mut ranges = Vec::new();
        while !self.takes("]") {
            let at = self.at;
            let first = self.character(from)?;
            let rest = &self.written.text[self.at..];
            let last = if rest.starts_with('-') && !rest.starts_with("-]") {
                self.at += 1;
                self.character(from)?
            } else {
                first
            };
            if last < first {
                return self.wrong(at, format!("no character is from {first:?} to {last:?}"));
            }
            ranges.push(ClassUnicodeRange::new(first, last));
        }
        if ranges.is_empty() {
            return self.wrong(from, "the class is empty: for any character write . and for no text \"\"");
        }
        let mut class = ClassUnicode::new(ranges);
        if negated {
            class.negate();
        }
        if class.ranges().is_empty() {
            return self.wrong(from, "no character is left in this class");
        }
        Ok(Part::Class(class))
    }

    /// A character as itself or escaped, of what begins at `from`.
    fn character(&mut self, from: usize) -> Result<char, GrammarError> {
        let at = self.at;
        let unclosed = |reader: &Self| {
            let closing = if reader.written.text[from..].starts_with('[') { ']' } else { '"' };
            reader.wrong(from, format!("the closing {closing} is missing"))
        };
        let digits = match self.next() {
            None => return unclosed(self),
            Some('\\') => match self.next() {
                None => return unclosed(self),
                Some('n') => return Ok('\n'),
                Some('r') => return Ok('\r'),
                Some('t') => return Ok('\t'),
                Some(itself @ ('\\' | '"' | '[' | ']' | '-')) => return Ok(itself),
                Some('x') => 2,
                Some('u') => 4,
                Some('U') => 8,
                Some(other) => {
                    let known = r#"\n, \r, \t, \\, \", \[, \], \-, \xNN, \uNNNN and \UNNNNNNNN"#;
                    return self.wrong(at, format!("{other:?} cannot be escaped: there are {known}"));
                }
            },
            Some(other) => return Ok(other),
        };
        let hex = self.written.text.get(self.at..self.at + digits);
        let Some(hex) = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit())) else {
            return self.wrong(at, format!("{digits} digits of 0-9, a-f, A-F must follow"));
        };
        self.at += digits;
        match u32::from_str_radix(hex, 16).ok().and_then(char::from_u32) {
            Some(character) => Ok(character),
            None => self.wrong(at, format!("{hex} is the number of no character")),
        }
    }

    /// Parses a quantifier: `*`, `+`, `?`, `{2}`, `{2,}` or `{2,5}`.
    fn times(&mut self, lines: bool) -> Result<(u32, Option<u32>), GrammarError> {
        let from = self.at;
        match self.next() {
            Some('*') => return Ok((0, None)),
            Some('+') => return Ok((1, None)),
            Some('?') => return Ok((0, Some(1))),
            _ => self.space(lines),
        }
        let (at, digits) = (self.at, self.while_is(|next| next.is_ascii_digit()));
        let least = self.number(at, digits)?;
        self.space(lines);
        let mut most = Some(least);
        if self.takes(",") {
            self.space(lines);
            let (at, digits) = (self.at, self.while_is(|next| next.is_ascii_digit()));
            most = if digits.is_empty() { None } else { Some(self.number(at, digits)?) };
            self.space(lines);
        }
        if !self.takes("}") {
            return self.wrong(self.at, "the closing } of a number of times is missing: {2}, {2,} or {2,5}");
        }
        if let Some(most) = most.filter(|&most| most < least) {
            return self.wrong(from, format!("from {least} to {most} times is never"));
        }
        Ok((least, most))
    }

    fn number(&self, at: usize, digits: &str) -> Result<u32, GrammarError> {
        if digits.is_empty() {
            return self.wrong(at, "a number of times must come here: {2}, {2,} or {2,5}");
        }
        let fits = digits.parse().ok().filter(|&number: &u32| number <= MOST_TIMES);
        let times = || digits.chars().take(20).collect();
        fits.ok_or_else(|| self.written.wrong(at, GrammarProblem::TooOften { times: times(), limit: MOST_TIMES }))
    }
}
