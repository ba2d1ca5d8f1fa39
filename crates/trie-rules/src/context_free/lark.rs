//! Lark, the notation of the Python library of that name, of llguidance and of custom tools.

use super::cursor::Cursor;
use super::embedded::EmbeddedRule;
use super::parts::{Groups, Part, RuleSet};
use super::substrings::Substrings;
use crate::automaton::regex::{fits, parse};
use crate::automaton::{AutomatonError, AutomatonLimits};
use crate::grammar::{GrammarError, GrammarProblem};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Hir};
use serde_json::Value;
use std::collections::HashSet;
use trie_core::work::{LimitExceeded, spend};

/// Reads the JSON text of a schema inside a grammar as a rule over its documents.
pub type SchemaReader<'s> = &'s dyn Fn(&str) -> Result<EmbeddedRule, String>;

/// The terminals that come with Lark.
const COMMON: &[(&str, &str)] = &[
    ("DIGIT", "[0-9]"),
    ("HEXDIGIT", "[a-fA-F0-9]"),
    ("INT", "[0-9]+"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", "[eE][+-]?[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SIGNED_FLOAT", r"[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)"),
    ("NUMBER", r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""([^"\\\n]|\\[^\n])*""#),
    ("LCASE_LETTER", "[a-z]"),
    ("UCASE_LETTER", "[A-Z]"),
    ("LETTER", "[A-Za-z]"),
    ("WORD", "[A-Za-z]+"),
    ("CNAME", "[_A-Za-z][_A-Za-z0-9]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    ("C_COMMENT", r"/\*([^*]|\*+[^*/])*\*+/"),
    ("SQL_COMMENT", r"--[^\n]*"),
];

/// The rule of all that may stand between terminals. No name of a grammar is like it.
const IGNORED: &str = "%ignore";

const SUBSTRINGS: [&str; 3] = ["substring_words", "substring_chars", "substring_chunks"];

/// Reads a grammar whose texts follow the rule `start`.
pub(super) fn read<'t>(
    text: &'t str,
    limits: AutomatonLimits,
    schemas: Option<SchemaReader<'_>>,
) -> Result<RuleSet<'t>, GrammarError> {
    let ignores = text.lines().any(|line| line.trim_start().starts_with("%ignore"));
    let mut reader = Reader {
        cursor: Cursor::new(text),
        schemas,
        limits,
        ignored: None,
        between: Vec::new(),
        in_rule: false,
        imported: HashSet::new(),
    };
    if ignores {
        reader.ignored = Some(reader.cursor.rules.rule_number(IGNORED, 0));
    }
    reader.lines();
    while reader.cursor.peek().is_some() {
        reader.statement()?;
        reader.lines();
    }
    reader.end()?;
    reader.cursor.rules.with_root("start")
}

struct Reader<'t, 's> {
    cursor: Cursor<'t>,
    schemas: Option<SchemaReader<'s>>,
    limits: AutomatonLimits,
    /// Rule of ignored text, if the grammar ignores any.
    ignored: Option<usize>,
    /// Rules of the `%ignore` statements.
    between: Vec<usize>,
    /// True in a rule, false in a terminal: blanks stand between the parts of rules.
    in_rule: bool,
    imported: HashSet<String>,
}

fn in_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

impl<'t> Reader<'t, '_> {
    fn refuse<T>(&self, at: usize, feature: &str, reason: &str) -> Result<T, GrammarError> {
        let what = format!("{feature} is not supported: {reason}");
        Err(self.cursor.rules.wrong(at, GrammarProblem::Unsupported { what }))
    }

    /// Passes over blanks and comments of a line.
    fn blanks(&mut self) {
        self.cursor.while_is(|next| matches!(next, ' ' | '\t' | '\u{c}'));
        if self.cursor.unread().starts_with("//") || self.cursor.peek() == Some('#') {
            self.cursor.while_is(|next| next != '\n');
        }
    }

    /// Passes over blanks, comments and ends of lines.
    fn lines(&mut self) {
        loop {
            let from = self.cursor.at;
            self.blanks();
            self.cursor.while_is(|next| matches!(next, '\r' | '\n'));
            if self.cursor.at == from {
                return;
            }
        }
    }

    /// Moves to the next line if it goes on with `|`.
    fn goes_on(&mut self) -> bool {
        let from = self.cursor.at;
        self.lines();
        if self.cursor.peek() != Some('|') {
            self.cursor.at = from;
        }
        self.cursor.at != from
    }

    fn statement(&mut self) -> Result<(), GrammarError> {
        let at = self.cursor.at;
        if self.cursor.takes("%") {
            let name = self.cursor.while_is(in_name);
            self.blanks();
            return match name {
                "ignore" => self.ignore(at),
                "import" => self.import(at),
                "llguidance" => self.settings(at),
                "declare" | "override" | "extend" => {
                    self.refuse(at, &format!("%{name}"), "a grammar is one text; write the terminals out")
                }
                _ => self.cursor.wrong(at, format!("unknown directive %{name}: expected %ignore or %import")),
            };
        }
        self.cursor.while_is(|next| matches!(next, '?' | '!'));
        let name = self.name("a rule begins with its name, in small letters, and a terminal in capitals")?;
        self.blanks();
        match self.cursor.peek() {
            Some('{') => return self.refuse(at, "a template", "write a rule out for each of its uses"),
            Some('[') => self.attributes()?,
            Some('.') => {
                self.cursor.at += 1;
                self.cursor.while_is(|next| next.is_ascii_digit() || next == '-');
            }
            _ => {}
        }
        self.blanks();
        if !self.cursor.takes(":") {
            return self.cursor.wrong(self.cursor.at, format!(": must follow {name}"));
        }
        self.in_rule = is_rule(name);
        let (rule, first) = self.cursor.rules.begin(name, at)?;
        if name == "start"
            && let Some(ignored) = self.ignored
        {
            // Also before the first terminal.
            self.cursor.rules.push(Part::Rule(ignored));
        }
        self.body()?;
        if name == "start" && self.ignored.is_some() {
            let whole = self.cursor.rules.parts.len() - 1;
            self.cursor.rules.push(Part::Sequence(vec![first, whole]));
        }
        self.cursor.rules.end(rule, at, first);
        self.line_end()
    }

    fn line_end(&mut self) -> Result<(), GrammarError> {
        self.blanks();
        match self.cursor.peek() {
            None | Some('\n' | '\r') => Ok(()),
            Some(')' | ']') => self.cursor.wrong(self.cursor.at, "unmatched closing bracket"),
            Some(':') => self.cursor.wrong(self.cursor.at, "a rule ends with its line: go on in the next with |"),
            Some(other) => self
                .cursor
                .wrong(self.cursor.at, format!("unexpected {other:?}: expected a part of a rule or a new line")),
        }
    }

    fn name(&mut self, hint: &str) -> Result<&'t str, GrammarError> {
        let at = self.cursor.at;
        let name = self.cursor.while_is(in_name);
        if name.is_empty() || name.starts_with(|first: char| first.is_numeric()) {
            return self.cursor.wrong(at, hint);
        }
        Ok(name)
    }

    /// Reads `[capture, max_tokens=3]` behind a name.
    fn attributes(&mut self) -> Result<(), GrammarError> {
        self.cursor.at += 1;
        loop {
            self.lines();
            let at = self.cursor.at;
            match self.cursor.while_is(|next| in_name(next) || next == '-') {
                "" => {}
                // A name for what was read: it says nothing about texts.
                "capture" => {
                    self.blanks();
                    if self.cursor.takes("=") {
                        self.blanks();
                        self.string(self.cursor.at)?;
                    }
                }
                "max_tokens" | "stop" | "suffix" | "temperature" => {
                    let reason = "a constraint is a set of texts; bound the pattern, or use Text(stop=, max_tokens=)";
                    return self.refuse(at, "max_tokens=, stop=, suffix= or temperature=", reason);
                }
                "lazy" => {
                    let reason = "write a pattern that does not go on behind its end";
                    return self.refuse(at, "lazy", reason);
                }
                other => return self.cursor.wrong(at, format!("unknown attribute {other}: expected capture")),
            }
            self.lines();
            if self.cursor.takes("]") {
                return Ok(());
            }
            if !self.cursor.takes(",") {
                return self.cursor.wrong(self.cursor.at, "the closing ] of the attributes is missing");
            }
        }
    }

    /// Reads the settings of llguidance, which say nothing about texts.
    fn settings(&mut self, at: usize) -> Result<(), GrammarError> {
        let settings = self.json(at)?;
        let all = settings.as_object().into_iter().flatten();
        match all.into_iter().find(|(name, value)| value.as_bool() == Some(true) && *name != "allow_invalid_utf8") {
            Some((name, _)) => self.refuse(at, &format!("the setting {name}"), "leave it out"),
            None => self.line_end(),
        }
    }

    fn ignore(&mut self, at: usize) -> Result<(), GrammarError> {
        let (rule, first) = self.cursor.rules.begin(&format!("{IGNORED} {}", self.between.len()), at)?;
        self.in_rule = false;
        self.body()?;
        self.cursor.rules.end(rule, at, first);
        self.between.push(rule);
        self.line_end()
    }

    /// Reads `%import common.INT -> NUM` or `%import common (INT, WS)`.
    fn import(&mut self, at: usize) -> Result<(), GrammarError> {
        let from = self.cursor.while_is(|next| in_name(next) || next == '.');
        let Some(path) = from.strip_prefix("common") else {
            return self.refuse(at, &format!("an import from {from:?}"), "only those of common come with it");
        };
        self.blanks();
        if path.is_empty() && self.cursor.takes("(") {
            loop {
                self.lines();
                let at = self.cursor.at;
                let name = self.name("expected the name of a terminal of common")?;
                self.common(at, name, name)?;
                self.lines();
                if self.cursor.takes(")") {
                    return self.line_end();
                }
                if !self.cursor.takes(",") {
                    return self.cursor.wrong(self.cursor.at, "the closing ) of the names is missing");
                }
            }
        }
        let Some(name) = path.strip_prefix('.').filter(|name| !name.is_empty()) else {
            return self.cursor.wrong(self.cursor.at, "expected %import common.NAME or %import common (NAME, NAME)");
        };
        let mut own = name;
        if self.cursor.takes("->") {
            self.blanks();
            own = self.name("expected a name behind ->")?;
        }
        self.common(at, name, own)?;
        self.line_end()
    }

    fn common(&mut self, at: usize, name: &str, own: &str) -> Result<(), GrammarError> {
        let Some((_, pattern)) = COMMON.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = COMMON.iter().map(|(name, _)| *name).collect();
            return self
                .cursor
                .wrong(at, format!("unknown name {name} of common: expected one of {}", known.join(", ")));
        };
        // Lark allows importing twice.
        if !self.imported.insert(own.to_owned()) {
            return Ok(());
        }
        let hir = self.pattern(at, pattern, "")?;
        let (rule, first) = self.cursor.rules.begin(own, at)?;
        self.cursor.rules.push(Part::Pattern(hir));
        self.cursor.rules.end(rule, at, first);
        Ok(())
    }

    /// Defines the rule of what is ignored.
    fn end(&mut self) -> Result<(), GrammarError> {
        let Some(ignored) = self.ignored else { return Ok(()) };
        let (_, first) = self.cursor.rules.begin(IGNORED, 0)?;
        let parts = self.between.iter().map(|&rule| self.cursor.rules.push(Part::Rule(rule))).collect();
        let part = self.cursor.rules.push(Part::Either(parts));
        self.cursor.rules.push(Part::Repeat { part, least: 0, most: None });
        self.cursor.rules.end(ignored, 0, first);
        Ok(())
    }

    /// Reads all that stands behind the colon.
    fn body(&mut self) -> Result<(), GrammarError> {
        let mut groups = Groups::new();
        loop {
            let nested = groups.is_nested();
            if nested {
                self.lines();
            } else {
                self.blanks();
            }
            let at = self.cursor.at;
            if let Err(over) = spend(1) {
                return Err(self.cursor.rules.wrong(at, GrammarProblem::TooMuch { over }));
            }
            match self.cursor.peek() {
                Some(bracket @ ('(' | '[')) => {
                    self.cursor.at += 1;
                    groups.open(at, bracket == '[');
                }
                Some(bracket @ (')' | ']')) if nested => {
                    if groups.innermost().1 != (bracket == ']') {
                        let from = self.cursor.rules.place(groups.innermost().0);
                        return self.cursor.wrong(at, format!("{bracket} does not close the bracket of {from}"));
                    }
                    self.cursor.at += 1;
                    groups.close(&mut self.cursor.rules);
                }
                Some('|') => {
                    self.cursor.at += 1;
                    groups.alternative(&mut self.cursor.rules);
                    self.lines();
                }
                Some('-') if self.cursor.takes("->") => {
                    self.blanks();
                    self.name("expected the name of the alternative behind ->")?;
                }
                Some('?' | '*' | '+' | '~' | '{') => {
                    let Some(part) = groups.take_last() else { return self.nothing_to_repeat(at) };
                    let (least, most) = self.times()?;
                    groups.part(self.cursor.rules.push(Part::Repeat { part, least, most }));
                }
                Some('&') => {
                    let reason = "write one regular expression, or use the And of two rules";
                    return self.refuse(at, "& between terminals", reason);
                }
                Some('"') => {
                    let part = self.text()?;
                    self.terminal(&mut groups, part);
                }
                Some('/') => {
                    let part = self.regex()?;
                    self.terminal(&mut groups, part);
                }
                Some('%') => {
                    let part = self.read_embedded()?;
                    self.terminal(&mut groups, part);
                }
                Some('<') => {
                    let reason = "it is about tokens, and a constraint is a set of texts";
                    return self.refuse(at, "a special token", reason);
                }
                Some(next) if in_name(next) => {
                    let name = self.name("a name does not begin with a digit")?;
                    if self.cursor.peek() == Some('{')
                        && !self.cursor.unread()[1..]
                            .trim_start()
                            .starts_with(|next: char| next.is_ascii_digit() || next == ',')
                    {
                        return self.refuse(at, "a template", "write a rule out for each of its uses");
                    }
                    let part = Part::Rule(self.cursor.rules.rule_number(name, at));
                    if is_rule(name) {
                        if !self.in_rule {
                            return self
                                .cursor
                                .wrong(at, format!("a terminal cannot use the rule {name}: write it in capitals"));
                        }
                        groups.part(self.cursor.rules.push(part));
                    } else {
                        self.terminal(&mut groups, part);
                    }
                }
                next if nested => {
                    let from = self.cursor.rules.place(groups.innermost().0);
                    let found = next.map_or("the text ends".to_owned(), |next| format!("here comes {next:?}"));
                    return self.cursor.wrong(at, format!("{found}, and the bracket of {from} is not closed"));
                }
                _ if self.goes_on() => {}
                _ => {
                    groups.close(&mut self.cursor.rules);
                    return Ok(());
                }
            }
        }
    }

    /// Adds a terminal, and in a rule what is ignored behind it.
    fn terminal(&mut self, groups: &mut Groups, part: Part) {
        let mut part = self.cursor.rules.push(part);
        if let Some(ignored) = self.ignored.filter(|_| self.in_rule) {
            let behind = self.cursor.rules.push(Part::Rule(ignored));
            part = self.cursor.rules.push(Part::Sequence(vec![part, behind]));
        }
        groups.part(part);
    }

    fn nothing_to_repeat<T>(&self, at: usize) -> Result<T, GrammarError> {
        if self.cursor.peek() == Some('~') {
            let reason = "write the regular expression of what may come";
            return self.refuse(at, "~ before a terminal", reason);
        }
        self.cursor.wrong(at, "there is nothing before it that could be repeated")
    }

    /// Reads how often: `?`, `*`, `+`, `~2`, `~2..5`, `{2}`, `{2,}`, `{,5}` or `{2,5}`.
    fn times(&mut self) -> Result<(u32, Option<u32>), GrammarError> {
        let from = self.cursor.at;
        for (mark, times) in [("?", (0, Some(1))), ("*", (0, None)), ("+", (1, None))] {
            if self.cursor.takes(mark) {
                return Ok(times);
            }
        }
        let is_braced = self.cursor.takes("{");
        self.cursor.at += usize::from(!is_braced);
        self.blanks();
        let (mark, hint) = if is_braced { (",", "{2}, {2,} or {2,5}") } else { ("..", "~2 or ~2..5") };
        let least = self.cursor.times()?;
        self.blanks();
        let most = if self.cursor.takes(mark) {
            self.blanks();
            self.cursor.times()?
        } else {
            least
        };
        self.blanks();
        if (least.is_none() && most.is_none()) || (!is_braced && most.is_none()) {
            return self.cursor.wrong(self.cursor.at, format!("a number of times must come here: {hint}"));
        }
        if is_braced && !self.cursor.takes("}") {
            return self
                .cursor
                .wrong(self.cursor.at, format!("the closing }} of a number of times is missing: {hint}"));
        }
        let least = least.unwrap_or_default();
        if let Some(most) = most.filter(|&most| most < least) {
            return self.cursor.wrong(from, format!("from {least} to {most} times is never"));
        }
        Ok((least, most))
    }

    /// Reads a string in quotes, from which `from` is where messages point.
    fn string(&mut self, from: usize) -> Result<String, GrammarError> {
        if !self.cursor.takes("\"") {
            return self.cursor.wrong(self.cursor.at, "expected a string in double quotes");
        }
        let mut text = String::new();
        loop {
            let at = self.cursor.at;
            let Some(next) = self.cursor.peek().filter(|&next| next != '\n') else {
                return self.cursor.wrong(from, "the closing \" is missing");
            };
            self.cursor.at += next.len_utf8();
            match next {
                '"' => return Ok(text),
                '\\' => {}
                other => {
                    text.push(other);
                    continue;
                }
            }
            let Some(escaped) = self.cursor.peek() else { return self.cursor.wrong(from, "the closing \" is missing") };
            self.cursor.at += escaped.len_utf8();
            let digits = match escaped {
                'n' => Ok('\n'),
                'r' => Ok('\r'),
                't' => Ok('\t'),
                'f' => Ok('\u{c}'),
                'v' => Ok('\u{b}'),
                '0' => Ok('\0'),
                'x' => Err(2),
                'u' => Err(4),
                'U' => Err(8),
                '\\' | '"' | '\'' | '/' => Ok(escaped),
                other => {
                    let known = r#"\n, \r, \t, \f, \v, \0, \\, \", \xNN, \uNNNN and \UNNNNNNNN"#;
                    return self.cursor.wrong(at, format!("{other:?} cannot be escaped: there are {known}"));
                }
            };
            match digits {
                Ok(character) => text.push(character),
                Err(count) => text.push(self.cursor.code(self.cursor.at, count)?),
            }
        }
    }

    /// Reads a string: `"a"`, `"a"i` or `"a".."z"`.
    fn text(&mut self) -> Result<Part, GrammarError> {
        let at = self.cursor.at;
        let text = self.string(at)?;
        if self.cursor.unread().starts_with('i') && !self.cursor.unread()[1..].starts_with(in_name) {
            self.cursor.at += 1;
            return Ok(Part::Pattern(self.pattern(at, &regex_syntax::escape(&text), "i")?));
        }
        let end = self.cursor.at;
        self.blanks();
        if !self.cursor.takes("..") {
            self.cursor.at = end;
            return Ok(Part::Text(text));
        }
        self.blanks();
        let last = self.string(at)?;
        let ends = (text.chars().next(), last.chars().next(), text.chars().nth(1), last.chars().nth(1));
        match ends {
            (Some(first), Some(last), None, None) if first <= last => {
                Ok(Part::Class(ClassUnicode::new([ClassUnicodeRange::new(first, last)])))
            }
            (Some(first), Some(last), None, None) => {
                self.cursor.wrong(at, format!("no character is from {first:?} to {last:?}"))
            }
            _ => self.cursor.wrong(at, "a range has one character at each end: \"a\"..\"z\""),
        }
    }

    /// Reads a regular expression, written as `/pattern/flags`.
    fn regex(&mut self) -> Result<Part, GrammarError> {
        let at = self.cursor.at;
        self.cursor.at += 1;
        let mut pattern = String::new();
        loop {
            let Some(next) = self.cursor.peek().filter(|&next| next != '\n') else {
                return self.cursor.wrong(at, "the closing / is missing");
            };
            self.cursor.at += next.len_utf8();
            match next {
                '/' => break,
                '\\' if self.cursor.takes("/") => pattern.push('/'),
                '\\' => {
                    pattern.push('\\');
                    let escaped = self.cursor.peek().filter(|&next| next != '\n');
                    let Some(escaped) = escaped else { return self.cursor.wrong(at, "the closing / is missing") };
                    self.cursor.at += escaped.len_utf8();
                    pattern.push(escaped);
                }
                other => pattern.push(other),
            }
        }
        let flags = self.cursor.while_is(|next| next.is_ascii_alphabetic());
        Ok(Part::Pattern(self.pattern(at, &pattern, flags)?))
    }

    fn pattern(&self, at: usize, pattern: &str, flags: &str) -> Result<Hir, GrammarError> {
        let has = |flag| flags.contains(flag);
        if let Some(flag) = flags.chars().find(|&flag| !"imsxu".contains(flag)) {
            return self.cursor.wrong(at, format!("unknown flag {flag}: expected some of i, m, s, x, u"));
        }
        if let Err(AutomatonError::TooLarge { limit }) = fits([pattern], self.limits) {
            return Err(self.cursor.rules.wrong(at, GrammarProblem::TooMuch { over: LimitExceeded::Bytes(limit) }));
        }
        let mut builder = ParserBuilder::new();
        builder.case_insensitive(has('i')).multi_line(has('m')).dot_matches_new_line(has('s'));
        builder.ignore_whitespace(has('x'));
        let hir = parse(&builder, pattern).map_err(|(position, problem)| {
            let terminal = format!("/{pattern}/");
            self.cursor.rules.wrong(at, GrammarProblem::Pattern { terminal, position, problem })
        })?;
        if !hir.properties().look_set().is_empty() {
            let reason = "a terminal is a set of texts; leave out ^, $ and \\b";
            return self.refuse(at, &format!("what looks around in /{pattern}/"), reason);
        }
        Ok(hir)
    }

    /// Reads `%json {...}` and `%regex {...}`.
    fn read_embedded(&mut self) -> Result<Part, GrammarError> {
        let at = self.cursor.at;
        self.cursor.at += 1;
        let name = self.cursor.while_is(in_name);
        self.lines();
        let from = self.cursor.at;
        match name {
            "json" => {
                self.json(at)?;
                let Some(schemas) = self.schemas else {
                    return self.refuse(at, "%json", "nothing here reads JSON Schema; use a form with a JsonSchema");
                };
                match schemas(&self.cursor.rules.text[from..self.cursor.at]) {
                    Ok(rule) => Ok(Part::Embedded(rule)),
                    Err(problem) => self.cursor.wrong(at, format!("%json: {problem}")),
                }
            }
            "regex" => {
                let options = self.json(at)?;
                let named = options.as_object().into_iter().flatten().next();
                let Some((name, value)) = named.filter(|(name, _)| SUBSTRINGS.contains(&name.as_str())) else {
                    let known = SUBSTRINGS.join(", ");
                    return self.cursor.wrong(at, format!("unknown option of %regex: expected one of {known}"));
                };
                let chunks = match (name.as_str(), value) {
                    ("substring_chunks", Value::Array(chunks)) => {
                        chunks.iter().map(|chunk| chunk.as_str().map(str::to_owned)).collect()
                    }
                    ("substring_words", Value::String(text)) => Some(words(text)),
                    ("substring_chars", Value::String(text)) => Some(text.chars().map(String::from).collect()),
                    _ => None,
                };
                match chunks {
                    Some(chunks) => Ok(Part::Embedded(EmbeddedRule::new(Substrings::new(&chunks)))),
                    None => self
                        .cursor
                        .wrong(at, format!("invalid {name}: expected a string, or of substring_chunks a list")),
                }
            }
            other => self.cursor.wrong(at, format!("unknown %{other} in a rule: expected %json or %regex")),
        }
    }

    /// Reads a value in JSON.
    fn json(&mut self, at: usize) -> Result<Value, GrammarError> {
        let mut values = serde_json::Deserializer::from_str(self.cursor.unread()).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.cursor.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => self.cursor.wrong(at, format!("invalid JSON: {error}")),
            None => self.cursor.wrong(at, "a value in JSON must follow"),
        }
    }
}

/// Returns true for the name of a rule: its first letter is small.
fn is_rule(name: &str) -> bool {
    name.chars().find(|&next| next != '_').is_none_or(char::is_lowercase)
}

/// Returns the words of a text, and what stands between them, piece by piece.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for next in text.chars() {
        let is_word = next.is_alphanumeric() || next == '_';
        match found.last_mut() {
            Some(last) if is_word && inside => last.push(next),
            _ => found.push(next.into()),
        }
        inside = is_word;
    }
    found
}
