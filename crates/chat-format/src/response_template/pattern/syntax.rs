//! Syntax of the patterns of response templates: regular expressions as the Python module `regex` writes them.

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// One character of a set.
    One(Set),
    /// Parts one after the other.
    Sequence(Vec<Node>),
    /// One of these parts; the first that leads to a match.
    Either(Vec<Node>),
    /// Repetitions of a part. `most` is `None` without a limit.
    Repeat {
        /// The part that is repeated.
        node: Box<Node>,
        /// The fewest repetitions of it.
        least: u32,
        /// The most repetitions of it.
        most: Option<u32>,
        /// True if it takes as many as it can.
        greedy: bool,
    },
    /// A group with a name.
    Named(String, Box<Node>),
    /// A look at what follows: `(?=...)`, or `(?!...)` if it must not follow.
    Ahead {
        /// The part that follows, or must not.
        node: Box<Node>,
        /// True if the part must not follow.
        not: bool,
    },
    /// A condition on a position.
    Place(Place),
}

/// A condition on a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The beginning of the text.
    Start,
    /// The end of the text, or the end of a line right before it.
    LineEnd,
    /// The end of the text.
    End,
    /// The border of a word.
    Border,
    /// A position inside or outside of a word, not at its border.
    NoBorder,
}

/// A set of characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Set {
    /// First and last characters.
    pub(crate) ranges: Vec<(char, char)>,
    /// Classes, and whether each is negated.
    pub(crate) classes: Vec<(Class, bool)>,
    /// True if the set holds all other characters.
    pub(crate) negated: bool,
}

/// A class of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The digits of any script, `\d`.
    Digit,
    /// White space of any kind, `\s`.
    Space,
    /// The characters of words, `\w`.
    Word,
}

impl Class {
    pub(crate) fn has(self, sign: char) -> bool {
        match self {
            Self::Digit => sign.is_ascii_digit() || (!sign.is_ascii() && sign.is_numeric() && !sign.is_alphabetic()),
            Self::Space => sign.is_whitespace(),
            Self::Word => sign.is_alphanumeric() || sign == '_',
        }
    }
}

impl Set {
    pub(crate) fn of(sign: char) -> Self {
        Self { ranges: vec![(sign, sign)], ..Self::default() }
    }

    fn all() -> Self {
        Self { negated: true, ..Self::default() }
    }

    fn class(class: Class, not: bool) -> Self {
        Self { classes: vec![(class, not)], ..Self::default() }
    }

    pub(crate) fn has(&self, sign: char) -> bool {
        let found = self.ranges.iter().any(|&(first, last)| (first..=last).contains(&sign))
            || self.classes.iter().any(|&(class, not)| class.has(sign) != not);
        found != self.negated
    }

    /// The only character of the set, if it is written as one.
    pub(crate) fn single(&self) -> Option<char> {
        match (&self.ranges[..], self.classes.is_empty(), self.negated) {
            ([(first, last)], true, false) if first == last => Some(*first),
            _ => None,
        }
    }

    /// Returns whether it holds nothing but white space.
    pub(crate) fn is_blank(&self) -> bool {
        !self.negated
            && self.classes.iter().all(|&(class, not)| class == Class::Space && !not)
            && self.ranges.iter().all(|&(first, last)| first == last && first.is_whitespace())
    }

    /// Returns whether it holds every character, as `.` and `[\s\S]` do.
    pub(crate) fn is_all(&self) -> bool {
        let both = |class: Class| self.classes.contains(&(class, false)) && self.classes.contains(&(class, true));
        if self.negated {
            self.ranges.is_empty() && self.classes.is_empty()
        } else {
            [Class::Digit, Class::Space, Class::Word].into_iter().any(both)
        }
    }
}

/// Limit on the length of a pattern.
pub(super) const MOST_SIGNS: usize = 10_000;
/// Limit on groups inside each other.
const MOST_DEPTH: usize = 100;
/// Limit on a number of repetitions.
const MOST_REPEATS: u32 = 1000;

/// Reads a pattern.
///
/// # Errors
/// The reason why it cannot be read, with the place.
pub(crate) fn parse(pattern: &str) -> Result<Node, String> {
    let signs: Vec<char> = pattern.chars().collect();
    if signs.len() > MOST_SIGNS {
        return Err(format!("it has {} characters; at most {MOST_SIGNS} are read", signs.len()));
    }
    let mut reader = Reader { signs, at: 0, depth: 0 };
    let node = reader.either()?;
    if reader.at < reader.signs.len() {
        return Err(reader.wrong("a ) without ("));
    }
    Ok(node)
}

struct Reader {
    signs: Vec<char>,
    at: usize,
    depth: usize,
}

impl Reader {
    fn wrong(&self, what: &str) -> String {
        format!("at character {}: {what}", self.at)
    }

    fn peek(&self) -> Option<char> {
        self.signs.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.peek()?;
        self.at += 1;
        Some(sign)
    }

    fn take(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(by, sign)| self.signs.get(self.at + by) == Some(&sign));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn either(&mut self) -> Result<Node, String> {
        let mut ways = vec![self.sequence()?];
        while self.take("|") {
            ways.push(self.sequence()?);
        }
        Ok(if ways.len() == 1 { ways.remove(0) } else { Node::Either(ways) })
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        while let Some(sign) = self.peek().filter(|&sign| sign != '|' && sign != ')') {
            self.at += 1;
            let atom = self.atom(sign)?;
            nodes.extend(self.repeated(atom)?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Sequence(nodes) })
    }

    /// The part that begins with this character, which was read; `None` for flags.
    fn atom(&mut self, sign: char) -> Result<Option<Node>, String> {
        Ok(Some(match sign {
            '(' => return self.group(),
            '[' => Node::One(self.set()?),
            '.' => Node::One(Set::all()),
            '^' => Node::Place(Place::Start),
            '$' => Node::Place(Place::LineEnd),
            '\\' => self.escape()?,
            '*' | '+' | '?' => return Err(self.wrong(&format!("nothing to repeat before {sign:?}"))),
            _ => Node::One(Set::of(sign)),
        }))
    }

    fn group(&mut self) -> Result<Option<Node>, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.wrong(&format!("more than {MOST_DEPTH} groups inside each other")));
        }
        let node = if self.take("?P<")
            || (self.signs.get(self.at + 2).is_none_or(|s| !"=!".contains(*s)) && self.take("?<"))
        {
            let mut name = String::new();
            loop {
                match self.next() {
                    Some('>') => break,
                    Some(sign) if sign.is_alphanumeric() || sign == '_' => name.push(sign),
                    _ => return Err(self.wrong("a name of a group is letters, digits and _, then >")),
                }
            }
            if name.is_empty() || name.starts_with(|sign: char| sign.is_numeric()) {
                return Err(self.wrong("a name of a group begins with a letter or _"));
            }
            Some(Node::Named(name, Box::new(self.either()?)))
        } else if self.take("?:") {
            Some(self.either()?)
        } else if self.take("?=") {
            Some(Node::Ahead { node: Box::new(self.either()?), not: false })
        } else if self.take("?!") {
            Some(Node::Ahead { node: Box::new(self.either()?), not: true })
        } else if self.take("?s)") || self.take("?u)") {
            // What all patterns have anyway.
            self.depth -= 1;
            return Ok(None);
        } else if self.peek() == Some('?') {
            let kind: String = self.signs[self.at..].iter().take(3).collect();
            return Err(self.wrong(&format!("the group ({kind}... is not supported")));
        } else {
            Some(self.either()?)
        };
        if !self.take(")") {
            return Err(self.wrong("a ( without )"));
        }
        self.depth -= 1;
        Ok(node)
    }

    fn repeated(&mut self, atom: Option<Node>) -> Result<Option<Node>, String> {
        let Some(mut node) = atom else { return Ok(None) };
        loop {
            let (least, most) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => match self.counts()? {
                    Some(counts) => counts,
                    None => return Ok(Some(node)),
                },
                _ => return Ok(Some(node)),
            };
            self.at += 1;
            if matches!(node, Node::Place(_)) {
                return Err(self.wrong("a repeated position is not supported"));
            }
            let greedy = !self.take("?");
            if greedy && self.peek() == Some('+') {
                return Err(self.wrong("a possessive repetition is not supported"));
            }
            node = Node::Repeat { node: Box::new(node), least, most, greedy };
        }
    }

    /// The counts in braces, up to the closing one; `None` if the brace is a character like others.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let Some(length) = self.signs[self.at..].iter().take(14).position(|&sign| sign == '}') else { return Ok(None) };
        let text: String = self.signs[self.at + 1..self.at + length].iter().collect();
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok());
        let counts = match text.split_once(',') {
            None => number(&text).flatten().map(|count| (count, Some(count))),
            Some((least, most)) => match (number(least), number(most)) {
                (Some(least), Some(most)) if text != "," => Some((least.unwrap_or(0), most)),
                _ => None,
            },
        };
        let Some((least, most)) = counts else {
            let fuzzy = text.contains(['=', '<']) || matches!(&text[..], "e" | "i" | "d" | "s");
            return if fuzzy { Err(self.wrong("a fuzzy match is not supported")) } else { Ok(None) };
        };
        if least.max(most.unwrap_or(0)) > MOST_REPEATS || most.is_some_and(|most| most < least) {
            return Err(self.wrong(&format!("repetitions are at most {MOST_REPEATS}, the fewest first")));
        }
        self.at += length;
        Ok(Some((least, most)))
    }

    fn escape(&mut self) -> Result<Node, String> {
        let sign = self.next().ok_or_else(|| self.wrong("nothing after \\"))?;
        Ok(match sign {
            'A' => Node::Place(Place::Start),
            'Z' | 'z' => Node::Place(Place::End),
            'b' => Node::Place(Place::Border),
            'B' => Node::Place(Place::NoBorder),
            _ => Node::One(self.escaped(sign)?),
        })
    }

    /// The set that an escape stands for.
    fn escaped(&mut self, sign: char) -> Result<Set, String> {
        let of = |class, not| Ok(Set::class(class, not));
        match sign {
            'd' => of(Class::Digit, false),
            'D' => of(Class::Digit, true),
            's' => of(Class::Space, false),
            'S' => of(Class::Space, true),
            'w' => of(Class::Word, false),
            'W' => of(Class::Word, true),
            'n' => Ok(Set::of('\n')),
            'r' => Ok(Set::of('\r')),
            't' => Ok(Set::of('\t')),
            'f' => Ok(Set::of('\u{c}')),
            'v' => Ok(Set::of('\u{b}')),
            'a' => Ok(Set::of('\u{7}')),
            'x' => self.code(2),
            'u' => self.code(4),
            'U' => self.code(8),
            _ if sign.is_ascii_alphanumeric() => Err(self.wrong(&format!("\\{sign} is not supported"))),
            _ => Ok(Set::of(sign)),
        }
    }

    fn code(&mut self, digits: usize) -> Result<Set, String> {
        let text: String = self.signs[self.at..].iter().take(digits).collect();
        let code =
            (text.len() == digits).then(|| u32::from_str_radix(&text, 16).ok()).flatten().and_then(char::from_u32);
        let Some(sign) = code else { return Err(self.wrong("an escape with a wrong code")) };
        self.at += digits;
        Ok(Set::of(sign))
    }

    /// A set in brackets, whose first bracket was read.
    fn set(&mut self) -> Result<Set, String> {
        let mut set = Set { negated: self.take("^"), ..Set::default() };
        let mut first = true;
        loop {
            let Some(sign) = self.next() else { return Err(self.wrong("a [ without ]")) };
            match sign {
                ']' if !first => return Ok(set),
                '[' if self.peek() == Some(':') => return Err(self.wrong("a class in [: :] is not supported")),
                _ => {}
            }
            first = false;
            let one = self.member(sign)?;
            let from = one.single();
            // A range, unless the sign is the last of the set.
            if self.peek() == Some('-') && self.signs.get(self.at + 1).is_some_and(|&next| next != ']') {
                self.at += 1;
                let last = self.next().ok_or_else(|| self.wrong("a [ without ]"))?;
                let last = self.member(last)?.single();
                match from.zip(last) {
                    Some((from, last)) if from <= last => set.ranges.push((from, last)),
                    _ => return Err(self.wrong("a range of characters is from the first to the last")),
                }
                continue;
            }
            set.ranges.extend(one.ranges);
            set.classes.extend(one.classes);
        }
    }

    fn member(&mut self, sign: char) -> Result<Set, String> {
        if sign != '\\' {
            return Ok(Set::of(sign));
        }
        let escaped = self.next().ok_or_else(|| self.wrong("nothing after \\"))?;
        if escaped == 'b' { Ok(Set::of('\u{8}')) } else { self.escaped(escaped) }
    }
}

/// A text as a pattern that matches it alone.
pub(crate) fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' => pattern.push_str("\\n"),
            '\t' => pattern.push_str("\\t"),
            '\r' => pattern.push_str("\\r"),
            _ => {
                if r"\.+*?()|[]{}^$".contains(sign) {
                    pattern.push('\\');
                }
                pattern.push(sign);
            }
        }
    }
    pattern
}
