//! GBNF, the notation of llama.cpp.

use super::cursor::Cursor;
use super::parts::{Groups, Part, RuleSet};
use crate::grammar::{GrammarError, GrammarProblem};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use trie_core::work::spend;

fn in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-'
}

/// Reads a grammar whose texts follow the rule `root`.
pub(super) fn read(text: &str) -> Result<RuleSet<'_>, GrammarError> {
    let mut reader = Cursor::new(text);
    reader.space(true);
    while reader.peek().is_some() {
        reader.rule()?;
    }
    reader.rules.with_root("root")
}

impl Cursor<'_> {
    /// Passes over blanks and comments, and ends of lines where those mean nothing.
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
        let (rule, first) = self.rules.begin(name, at)?;
        self.space(true);
        self.body()?;
        self.rules.end(rule, at, first);
        match self.peek() {
            None | Some('\n' | '\r') => self.space(true),
            Some(')') => return self.wrong(self.at, "unmatched )"),
            Some(':') => return self.wrong(self.at, "a rule ends with its line, and not with |"),
            Some(other) => return self.wrong(self.at, format!("unexpected {other:?} in a rule")),
        }
        Ok(())
    }

    /// Reads all that stands behind `::=`.
    fn body(&mut self) -> Result<(), GrammarError> {
        let mut groups = Groups::new();
        loop {
            let at = self.at;
            if let Err(over) = spend(1) {
                return Err(self.rules.wrong(at, GrammarProblem::TooMuch { over }));
            }
            let nested = groups.is_nested();
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
                    return Err(self.rules.wrong(at, GrammarProblem::Unsupported { what: what.to_owned() }));
                }
                Some('(') => {
                    self.at += 1;
                    groups.open(at, false);
                    self.space(true);
                    continue;
                }
                Some('|') => {
                    self.at += 1;
                    groups.alternative(&mut self.rules);
                    self.space(true);
                    continue;
                }
                Some('*' | '+' | '?' | '{') => {
                    let Some(part) = groups.take_last() else {
                        return self.wrong(at, "there is nothing before it that could be repeated");
                    };
                    let (least, most) = self.quantifier(nested)?;
                    Part::Repeat { part, least, most }
                }
                Some(next) if in_name(next) => {
                    let name = self.while_is(in_name);
                    Part::Rule(self.rules.rule_number(name, at))
                }
                Some(')') if nested => {
                    self.at += 1;
                    groups.close(&mut self.rules);
                    self.space(groups.is_nested());
                    continue;
                }
                next if nested => {
                    let from = self.rules.place(groups.innermost().0);
                    let found = next.map_or("the text ends".to_owned(), |next| format!("here comes {next:?}"));
                    return self.wrong(at, format!("{found}, and the ( of {from} is not closed"));
                }
                _ => {
                    groups.close(&mut self.rules);
                    return Ok(());
                }
            };
            let part = self.rules.push(part);
            groups.part(part);
            self.space(nested);
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
            let rest = &self.rules.text[self.at..];
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
            let closing = if reader.rules.text[from..].starts_with('[') { ']' } else { '"' };
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
        self.code(at, digits)
    }

    /// Parses a quantifier: `*`, `+`, `?`, `{2}`, `{2,}` or `{2,5}`.
    fn quantifier(&mut self, lines: bool) -> Result<(u32, Option<u32>), GrammarError> {
        let from = self.at;
        match self.next() {
            Some('*') => return Ok((0, None)),
            Some('+') => return Ok((1, None)),
            Some('?') => return Ok((0, Some(1))),
            _ => self.space(lines),
        }
        let hint = "a number of times must come here: {2}, {2,} or {2,5}";
        let Some(least) = self.times()? else { return self.wrong(self.at, hint) };
        self.space(lines);
        let mut most = Some(least);
        if self.takes(",") {
            self.space(lines);
            most = self.times()?;
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
}
