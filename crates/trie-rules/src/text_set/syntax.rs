//! The syntax of patterns: ECMA-262 with the flag `u`.
//!
//! JSON Schema requires this language, but most patterns are written for others. A construct that ECMA-262 does not
//! allow is accepted if Annex B or common usage gives it one clear meaning: `\-` and `\@` are characters, and so are
//! single `]` and `{`; `(?i)` at the beginning and `(?i:…)` set the flag. Everything else is an error.

use super::char_set::{CharSet, LAST};

/// Syntax tree of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Empty,
    /// One character of a set.
    Set(CharSet),
    Concat(Vec<Node>),
    Either(Vec<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
    },
    /// The beginning of the text.
    Start,
    /// End of the text.
    End,
    /// A lookahead or lookbehind assertion.
    Look {
        ahead: bool,
        negative: bool,
        node: Box<Node>,
    },
}

/// Syntax error of a pattern: its position, in characters, and its description.
pub(super) struct Problem {
    pub(super) position: usize,
    pub(super) text: String,
    /// True if ECMA-262 has it all the same.
    pub(super) is_unsupported: bool,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    flags: Flags,
    depth: usize,
    /// Groups that a back reference may name, each with its name, if it has one.
    groups: Vec<Option<String>>,
    /// Back references, each with its place: by number, or by name.
    back: Vec<(usize, Result<usize, String>)>,
}

/// Groups in each other.
const MOST_DEPTH: usize = 200;
const LINE_ENDS: [(u32, u32); 3] = [(0xA, 0xA), (0xD, 0xD), (0x2028, 0x2029)];
const DIGITS: [(u32, u32); 1] = [(0x30, 0x39)];
const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
/// White space and the ends of lines.
pub(super) const SPACE: [(u32, u32); 10] = [
    (0x9, 0xD),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];

/// A member of a class.
enum Member {
    Char(u32),
    Set(CharSet),
}

pub(super) fn parse(pattern: &str) -> Result<Node, Problem> {
    let (groups, back) = (Vec::new(), Vec::new());
    let mut parser =
        Parser { chars: pattern.chars().collect(), at: 0, flags: Flags::default(), depth: 0, groups, back };
    parser.flags_in_front();
    let node = parser.alternation()?;
    if parser.at < parser.chars.len() {
        return Err(problem_at(parser.at, "a ) that closes nothing: write \\) for the character"));
    }
    let is_there = |to: &Result<usize, String>| match to {
        Ok(number) => (1..=parser.groups.len()).contains(number),
        Err(name) => parser.groups.iter().flatten().any(|own| own == name),
    };
    if let Some((position, _)) = parser.back.iter().find(|(_, to)| !is_there(to)) {
        return Err(problem_at(*position, "a back reference to a group that is not there"));
    }
    if let Some(&(position, _)) = parser.back.first() {
        let problem = "a back reference is not supported: what it repeats cannot be counted by an automaton".to_owned();
        return Err(Problem { position, text: problem, is_unsupported: true });
    }
    Ok(node)
}

impl Node {
    fn look(ahead: bool, negative: bool, node: Self) -> Self {
        Self::Look { ahead, negative, node: Box::new(node) }
    }
}

fn problem_at(position: usize, text: impl Into<String>) -> Problem {
    Problem { position, text: text.into(), is_unsupported: false }
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_there = self.chars[self.at..].iter().copied().take(text.chars().count()).eq(text.chars());
        self.at += if is_there { text.chars().count() } else { 0 };
        is_there
    }

    /// `(?i)`, as other languages write the flag of a whole pattern.
    fn flags_in_front(&mut self) {
        if !self.takes("(?") {
            return;
        }
        let letters: String = self.chars[self.at..].iter().take_while(|char| "ims".contains(**char)).collect();
        let end = self.at + letters.len();
        if letters.is_empty() || self.chars.get(end) != Some(&')') {
            self.at -= 2;
            return;
        }
        self.at = end + 1;
        self.flags = self.flags.with(&letters, true);
    }

    fn alternation(&mut self) -> Result<Node, Problem> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(problem_at(self.at, format!("more than {MOST_DEPTH} groups in each other")));
        }
        let mut all = vec![self.sequence()?];
        while self.takes("|") {
            all.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Either(all) })
    }

    fn sequence(&mut self) -> Result<Node, Problem> {
        let mut all = Vec::new();
        while let Some(next) = self.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            let node = self.term()?;
            all.push(self.repetition(node)?);
        }
        Ok(match all.len() {
            0 => Node::Empty,
            1 => all.remove(0),
            _ => Node::Concat(all),
        })
    }

    fn term(&mut self) -> Result<Node, Problem> {
        let begin = self.at;
        let Some(next) = self.peek() else { return Ok(Node::Empty) };
        self.at += 1;
        Ok(match next {
            '^' if self.flags.multi_line => {
                let node = Node::Set(CharSet::ranges(LINE_ENDS).complement());
                Node::look(false, true, node)
            }
            '$' if self.flags.multi_line => {
                let node = Node::Set(CharSet::ranges(LINE_ENDS).complement());
                Node::look(true, true, node)
            }
            '^' => Node::Start,
            '$' => Node::End,
            '.' if self.flags.dot_all => Node::Set(CharSet::full()),
            '.' => Node::Set(CharSet::ranges(LINE_ENDS).complement()),
            '(' => self.group(begin)?,
            '[' => Node::Set(self.class(begin)?),
            '\\' => self.escape(begin)?,
            '*' | '+' | '?' => {
                return Err(problem_at(
                    begin,
                    format!("nothing to repeat before {next}: write \\{next} for the character"),
                ));
            }
            '{' if self.peek().is_some_and(|char| char.is_ascii_digit() || char == ',') => {
                return Err(problem_at(
                    begin,
                    "invalid quantifier: expected {n}, {n,} or {n,m} behind what is repeated",
                ));
            }
            char => Node::Set(self.apply_case(CharSet::one(u32::from(char)))),
        })
    }

    /// The characters of a set, with all their case variants if the pattern ignores case.
    fn apply_case(&self, set: CharSet) -> CharSet {
        if self.flags.ignore_case { set.fold_case() } else { set }
    }

    fn word(&self) -> CharSet {
        self.apply_case(CharSet::ranges(WORD))
    }

    fn group(&mut self, begin: usize) -> Result<Node, Problem> {
        let flags = self.flags;
        let mut look = None;
        if self.takes("?") {
            if self.takes("=") {
                look = Some((true, false));
            } else if self.takes("!") {
                look = Some((true, true));
            } else if self.takes("<=") {
                look = Some((false, false));
            } else if self.takes("<!") {
                look = Some((false, true));
            } else if self.takes("<") {
                let name: String = self.chars[self.at..].iter().take_while(|char| **char != '>').collect();
                let is_name = |(at, char): (usize, char)| {
                    char.is_alphanumeric() && (at > 0 || !char.is_numeric()) || "$_".contains(char)
                };
                if name.is_empty() || !name.chars().enumerate().all(is_name) || name.len() == self.chars.len() - self.at
                {
                    return Err(problem_at(begin, "invalid name of a group: expected (?<name>…)"));
                }
                self.at += name.chars().count() + 1;
                self.groups.push(Some(name));
            } else if !self.takes(":") {
                self.group_flags(begin)?;
            }
        } else {
            self.groups.push(None);
        }
        let node = self.alternation()?;
        self.flags = flags;
        if !self.takes(")") {
            return Err(problem_at(begin, "a group that nothing closes: write \\( for the character"));
        }
        Ok(match look {
            Some((ahead, negative)) => Node::look(ahead, negative, node),
            None => node,
        })
    }

    /// Parses the flags of a group, as `(?i-ms:`.
    fn group_flags(&mut self, begin: usize) -> Result<(), Problem> {
        let mut on = true;
        while let Some(next) = self.peek() {
            self.at += 1;
            match next {
                '-' if on => on = false,
                'i' | 'm' | 's' => self.flags = self.flags.with(&next.to_string(), on),
                ':' => return Ok(()),
                _ => break,
            }
        }
        Err(problem_at(
            begin,
            "unknown kind of group: expected one of (…), (?:…), (?<name>…), (?=…), (?!…), (?<=…), (?<!…), (?i:…)",
        ))
    }

    fn repetition(&mut self, node: Node) -> Result<Node, Problem> {
        let begin = self.at;
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.counts()? {
                Some(counts) => counts,
                None => return Ok(node),
            },
            _ => return Ok(node),
        };
        if self.at == begin {
            self.at += 1;
        }
        // Which match comes first does not matter.
        self.takes("?");
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            return Err(problem_at(self.at, "a quantifier behind a quantifier: put the first into a group"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(problem_at(begin, "invalid quantifier: expected the smaller count first"));
        }
        Ok(match node {
            // What looks around is the same each time.
            Node::Start | Node::End | Node::Look { .. } => {
                if min == 0 {
                    Node::Empty
                } else {
                    node
                }
            }
            node => Node::Repeat { node: Box::new(node), min, max },
        })
    }

    /// `{n}`, `{n,}`, `{n,m}`; `None` for a brace that is a character.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, Problem> {
        let begin = self.at;
        let digits = |parser: &mut Self| {
            let text: String = parser.chars[parser.at..].iter().take_while(|char| char.is_ascii_digit()).collect();
            parser.at += text.len();
            // What is more than that is too large anyhow.
            (!text.is_empty()).then(|| text.parse().unwrap_or(u32::MAX))
        };
        self.at += 1;
        let is_quantifier = self.peek().is_some_and(|char| char.is_ascii_digit() || char == ',');
        let min = digits(self);
        let max = if self.takes(",") { digits(self) } else { min };
        if let (Some(min), true) = (min, self.takes("}")) {
            return Ok(Some((min, max)));
        }
        self.at = begin;
        if is_quantifier {
            return Err(problem_at(begin, "invalid quantifier: expected {n}, {n,} or {n,m}"));
        }
        Ok(None)
    }

    /// Parses an escape behind a backslash.
    fn escape(&mut self, begin: usize) -> Result<Node, Problem> {
        let Some(next) = self.peek() else {
            return Err(problem_at(begin, "a \\ at the end: write \\\\ for the character"));
        };
        match next {
            'b' | 'B' => {
                self.at += 1;
                let word = || Node::Set(self.word());
                let pair = |before: bool, after: bool| {
                    Node::Concat(vec![Node::look(false, !before, word()), Node::look(true, !after, word())])
                };
                let is_edge = next == 'b';
                Ok(Node::Either(vec![pair(true, !is_edge), pair(false, is_edge)]))
            }
            '1'..='9' => {
                let digits: String = self.chars[self.at..].iter().take_while(|char| char.is_ascii_digit()).collect();
                self.at += digits.len();
                self.back.push((begin, Ok(digits.parse().unwrap_or(usize::MAX))));
                Ok(Node::Empty)
            }
            'k' => {
                self.at += 1;
                let name: String = self.chars[self.at..].iter().take_while(|char| **char != '>').collect();
                let end = self.at + name.chars().count();
                let Some(name) = name.strip_prefix('<').filter(|_| end < self.chars.len()) else {
                    return Err(problem_at(begin, "invalid back reference: expected \\k<name>"));
                };
                self.at = end + 1;
                self.back.push((begin, Err(name.to_owned())));
                Ok(Node::Empty)
            }
            _ => match self.member_escape(begin)? {
                Member::Char(char) => Ok(Node::Set(self.apply_case(CharSet::one(char)))),
                Member::Set(set) => Ok(Node::Set(set)),
            },
        }
    }

    /// Parses an escape behind a backslash, in a class or not.
    fn member_escape(&mut self, begin: usize) -> Result<Member, Problem> {
        let Some(next) = self.peek() else {
            return Err(problem_at(begin, "a \\ at the end: write \\\\ for the character"));
        };
        self.at += 1;
        let char = match next {
            'd' => return Ok(Member::Set(CharSet::ranges(DIGITS))),
            'D' => return Ok(Member::Set(CharSet::ranges(DIGITS).complement())),
            's' => return Ok(Member::Set(CharSet::ranges(SPACE))),
            'S' => return Ok(Member::Set(CharSet::ranges(SPACE).complement())),
            'w' => return Ok(Member::Set(self.word())),
            'W' => return Ok(Member::Set(self.word().complement())),
            'p' | 'P' => {
                let set = self.property(begin)?;
                let set = if next == 'P' { set.complement() } else { set };
                return Ok(Member::Set(self.apply_case(set)));
            }
            'f' => 0xC,
            'n' => 0xA,
            'r' => 0xD,
            't' => 0x9,
            'v' => 0xB,
            '0' if !self.peek().is_some_and(|char| char.is_ascii_digit()) => 0,
            'c' => match self.peek() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    u32::from(letter) % 32
                }
                _ => return Err(problem_at(begin, "invalid escape: expected a letter behind \\c")),
            },
            'x' => self.hex(2).ok_or_else(|| problem_at(begin, "invalid escape: expected \\xHH"))?,
            'u' => self.unicode(begin)?,
            other if !other.is_alphanumeric() => u32::from(other),
            other => return Err(problem_at(begin, format!("unknown escape \\{other}: ECMA-262 has none"))),
        };
        Ok(Member::Char(char))
    }

    /// So many hexadecimal digits.
    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.chars.get(self.at..self.at + digits)?.iter().collect();
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += digits;
        u32::from_str_radix(&text, 16).ok()
    }

    /// Parses the digits behind `\u`.
    fn unicode(&mut self, begin: usize) -> Result<u32, Problem> {
        if self.takes("{") {
            let text: String = self.chars[self.at..].iter().take_while(|char| char.is_ascii_hexdigit()).collect();
            self.at += text.len();
            let found = u32::from_str_radix(text.trim_start_matches('0'), 16).or_else(|error| {
                // Zeros alone.
                if text.contains('0') && text.bytes().all(|byte| byte == b'0') { Ok(0) } else { Err(error) }
            });
            let found = found.ok().filter(|&char| char <= LAST);
            return found
                .filter(|_| self.takes("}"))
                .ok_or_else(|| problem_at(begin, "invalid escape: expected \\u{H…} with a code point up to 10FFFF"));
        }
        let Some(high) = self.hex(4) else {
            return Err(problem_at(begin, "invalid escape: expected \\uHHHH or \\u{H…}"));
        };
        let behind = self.at;
        if (0xD800..0xDC00).contains(&high) && self.takes("\\u") {
            if let Some(low) = self.hex(4).filter(|low| (0xDC00..0xE000).contains(low)) {
                return Ok(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00));
            }
            self.at = behind;
        }
        Ok(high)
    }

    fn property(&mut self, begin: usize) -> Result<CharSet, Problem> {
        let text: String = self.chars[self.at..].iter().take_while(|char| **char != '}').collect();
        if !text.starts_with('{') || self.chars.len() == self.at + text.chars().count() {
            return Err(problem_at(begin, "invalid escape: expected \\p{…} with the name of a property"));
        }
        let name = &text[1..];
        self.at += text.chars().count() + 1;
        CharSet::property(name).ok_or_else(|| {
            problem_at(begin, format!("unknown property of characters {name:?}: expected one of Unicode"))
        })
    }

    fn class(&mut self, begin: usize) -> Result<CharSet, Problem> {
        let is_negative = self.takes("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        loop {
            let from = self.at;
            let Some(low) = self.member(begin)? else { break };
            let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|next| *next != ']');
            if !is_range {
                ranges.extend(low.ranges());
                continue;
            }
            self.at += 1;
            let Some(high) = self.member(begin)? else { break };
            match (low, high) {
                (Member::Char(low), Member::Char(high)) if low <= high => ranges.push((low, high)),
                (Member::Char(_), Member::Char(_)) => {
                    return Err(problem_at(from, "a range whose first character is behind its last"));
                }
                // No range: the hyphen is a character.
                (low, high) => {
                    ranges.extend(low.ranges());
                    ranges.extend(high.ranges());
                    ranges.push((0x2D, 0x2D));
                }
            }
        }
        let set = self.apply_case(CharSet::ranges(ranges));
        Ok(if is_negative { set.complement() } else { set })
    }

    /// A member of a class; `None` behind its end.
    fn member(&mut self, begin: usize) -> Result<Option<Member>, Problem> {
        let at = self.at;
        let Some(next) = self.peek() else {
            return Err(problem_at(begin, "a class that nothing closes: write \\[ for the character"));
        };
        self.at += 1;
        Ok(match next {
            ']' => None,
            '\\' if self.takes("b") => Some(Member::Char(8)),
            '\\' => Some(self.member_escape(at)?),
            char => Some(Member::Char(u32::from(char))),
        })
    }
}

impl Member {
    fn ranges(&self) -> Vec<(u32, u32)> {
        match self {
            Self::Char(char) => vec![(*char, *char)],
            Self::Set(set) => set.iter().collect(),
        }
    }
}

impl Flags {
    fn with(mut self, letters: &str, on: bool) -> Self {
        for letter in letters.chars() {
            match letter {
                'i' => self.ignore_case = on,
                'm' => self.multi_line = on,
                _ => self.dot_all = on,
            }
        }
        self
    }
}
