//! JSON values whose numbers keep every digit: float64 would change ids of 64 bits, and lose `1e400`.

use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use trie_rules::Decimal;

/// A JSON value. Two are equal where JSON Schema says so: numbers by value, objects in whatever order.
#[derive(Debug, Clone)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As it was written.
    Number(Arc<str>),
    String(Arc<str>),
    Array(Vec<Self>),
    /// Names once each, in the order in which they came.
    Object(Vec<(Arc<str>, Self)>),
}

/// Maximum nesting depth of text, the same as in `serde_json`.
const DEEPEST: usize = 128;
/// Members from which on names are looked up.
const FEW: usize = 16;

impl Json {
    /// Reads a whole text; `None` for text that is not JSON, or nested too deeply.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut reader = Reader { text, at: 0, deep: 0 };
        let value = reader.value()?;
        reader.blanks();
        (reader.at == text.len()).then_some(value)
    }

    /// A value of another reader, with the digits that it kept.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Number(number) => Self::Number(number.to_string().into()),
            Value::String(text) => Self::String(text.as_str().into()),
            Value::Array(items) => Self::Array(items.iter().map(Self::of).collect()),
            Value::Object(members) => {
                Self::Object(members.iter().map(|(name, value)| (name.as_str().into(), Self::of(value))).collect())
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(own, _)| **own == *name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&Arc<str>> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_object(&self) -> Option<&[(Arc<str>, Self)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// Returns the value at a JSON pointer, given without its `#`.
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |value, name| value.step(name))
    }

    /// The value behind one part of a JSON pointer.
    pub(crate) fn step(&self, part: &str) -> Option<&Self> {
        let name = part.replace("~1", "/").replace("~0", "~");
        match self {
            Self::Array(items) => {
                let is_index = name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
                is_index.then(|| items.get(name.parse::<usize>().ok()?)).flatten()
            }
            other => other.get(&name),
        }
    }

    /// The parts of its text between which blanks may stand, behind each other, with `mark` between them.
    pub(crate) fn parts(&self, mark: u8, text: &mut Vec<u8>) {
        match self {
            Self::Null => text.extend_from_slice(b"null"),
            Self::Bool(bool) => text.extend_from_slice(if *bool { b"true" } else { b"false" }),
            Self::Number(number) => text.extend_from_slice(plain(number).as_bytes()),
            Self::String(string) => quoted(string, text),
            Self::Array(items) => {
                text.push(b'[');
                for (nth, item) in items.iter().enumerate() {
                    if nth > 0 {
                        text.extend([mark, b',']);
                    }
                    text.push(mark);
                    item.parts(mark, text);
                }
                text.extend([mark, b']']);
            }
            Self::Object(members) => {
                text.push(b'{');
                for (nth, (name, value)) in members.iter().enumerate() {
                    if nth > 0 {
                        text.extend([mark, b',']);
                    }
                    text.push(mark);
                    quoted(name, text);
                    text.extend([mark, b':', mark]);
                    value.parts(mark, text);
                }
                text.extend([mark, b'}']);
            }
        }
    }

    /// A number that orders values roughly: equal ones have the same.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::String(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }
}

/// A number without an exponent, and without a fraction where it is whole; one with thousands of digits stays as it is.
pub(crate) fn plain(number: &str) -> String {
    match Decimal::read(number) {
        Ok(decimal) => decimal.to_string(),
        Err(_) => number.to_owned(),
    }
}

/// A string in quotes, with the escapes that it needs.
pub(crate) fn quoted(string: &str, text: &mut Vec<u8>) {
    text.push(b'"');
    for char in string.chars() {
        match char {
            '"' => text.extend_from_slice(b"\\\""),
            '\\' => text.extend_from_slice(b"\\\\"),
            '\u{8}' => text.extend_from_slice(b"\\b"),
            '\u{c}' => text.extend_from_slice(b"\\f"),
            '\n' => text.extend_from_slice(b"\\n"),
            '\r' => text.extend_from_slice(b"\\r"),
            '\t' => text.extend_from_slice(b"\\t"),
            '\0'..='\u{1f}' => text.extend_from_slice(format!("\\u{:04x}", char as u32).as_bytes()),
            char => text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    text.push(b'"');
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(number),
            Self::Array(items) => {
                for (nth, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if nth == 0 { "[" } else { "," })?;
                }
                f.write_str(if items.is_empty() { "[]" } else { "]" })
            }
            Self::Object(members) => {
                for (nth, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{}:{value}", if nth == 0 { "{" } else { "," }, Self::String(Arc::clone(name)))?;
                }
                f.write_str(if members.is_empty() { "{}" } else { "}" })
            }
            scalar => {
                let mut text = Vec::new();
                scalar.parts(0, &mut text);
                f.write_str(&String::from_utf8_lossy(&text))
            }
        }
    }
}

/// Places of members in the order of their names.
fn by_name(members: &[(Arc<str>, Json)]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..members.len()).collect();
    places.sort_unstable_by_key(|&at| &members[at].0);
    places
}

fn number_order(one: &str, other: &str) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    match (Decimal::read(one), Decimal::read(other)) {
        (Ok(one), Ok(other)) => one.cmp(&other),
        _ => one.cmp(other),
    }
}

impl Ord for Json {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::Number(one), Self::Number(other)) => number_order(one, other),
            (Self::String(one), Self::String(other)) => one.cmp(other),
            (Self::Array(one), Self::Array(other)) => one.cmp(other),
            (Self::Object(one), Self::Object(other)) => one.len().cmp(&other.len()).then_with(|| {
                let (first, second) = (by_name(one), by_name(other));
                let names = first.iter().map(|&at| &one[at].0).cmp(second.iter().map(|&at| &other[at].0));
                names.then_with(|| first.iter().map(|&at| &one[at].1).cmp(second.iter().map(|&at| &other[at].1)))
            }),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Json {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.rank());
        match self {
            Self::Null => {}
            Self::Bool(bool) => bool.hash(state),
            Self::Number(number) => plain(number).hash(state),
            Self::String(text) => text.hash(state),
            Self::Array(items) => items.hash(state),
            // In whatever order.
            Self::Object(members) => state.write_usize(members.len()),
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    deep: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, expected: &str) -> Option<()> {
        self.text[self.at..].starts_with(expected).then(|| self.at += expected.len())
    }

    fn value(&mut self) -> Option<Json> {
        self.blanks();
        match self.peek()? {
            b'n' => self.take("null").map(|()| Json::Null),
            b't' => self.take("true").map(|()| Json::Bool(true)),
            b'f' => self.take("false").map(|()| Json::Bool(false)),
            b'"' => Some(Json::String(self.string()?.into())),
            b'[' => self.deeper(Self::array),
            b'{' => self.deeper(Self::object),
            _ => self.number(),
        }
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Option<Json>) -> Option<Json> {
        self.at += 1;
        self.deep += 1;
        let value = (self.deep < DEEPEST).then(|| read(self)).flatten();
        self.deep -= 1;
        value
    }

    /// Returns whether another item comes, behind the first or before it.
    fn goes_on(&mut self, is_first: bool, end: &str) -> Option<bool> {
        self.blanks();
        if self.take(end).is_some() {
            return Some(false);
        }
        if !is_first {
            self.take(",")?;
        }
        Some(true)
    }

    fn array(&mut self) -> Option<Json> {
        let mut items = Vec::new();
        while self.goes_on(items.is_empty(), "]")? {
            items.push(self.value()?);
        }
        Some(Json::Array(items))
    }

    fn object(&mut self) -> Option<Json> {
        let mut members: Vec<(Arc<str>, Json)> = Vec::new();
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        let mut is_first = true;
        while self.goes_on(is_first, "}")? {
            is_first = false;
            self.blanks();
            let name: Arc<str> = self.string()?.into();
            self.blanks();
            self.take(":")?;
            let value = self.value()?;
            if members.len() == FEW {
                places = members.iter().enumerate().map(|(at, (name, _))| (Arc::clone(name), at)).collect();
            }
            let known = if members.len() < FEW {
                members.iter().position(|(own, _)| *own == name)
            } else {
                places.get(&name).copied()
            };
            // Of a name that comes twice, the last counts.
            if let Some(known) = known {
                members[known].1 = value;
                continue;
            }
            if members.len() >= FEW {
                places.insert(Arc::clone(&name), members.len());
            }
            members.push((name, value));
        }
        Some(Json::Object(members))
    }

    fn number(&mut self) -> Option<Json> {
        let from = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while reader.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                reader.at += 1;
            }
            (reader.at > from).then_some(())
        };
        let _ = self.take("-");
        if self.take("0").is_none() {
            digits(self)?;
        }
        if self.take(".").is_some() {
            digits(self)?;
        }
        if self.take("e").or_else(|| self.take("E")).is_some() {
            let _ = self.take("+").or_else(|| self.take("-"));
            digits(self)?;
        }
        Some(Json::Number(self.text[from..self.at].into()))
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|char: char| matches!(char, '"' | '\\' | '\0'..='\u{1f}'))?;
            string.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(string);
                }
                b'\\' => {
                    self.at += 1;
                    let escape = self.peek()?;
                    self.at += 1;
                    string.push(match escape {
                        b'"' | b'\\' | b'/' => char::from(escape),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.escaped()?,
                        _ => return None,
                    });
                }
                _ => return None,
            }
        }
    }

    /// The character of an escape by its number, behind the `u`.
    fn escaped(&mut self) -> Option<char> {
        let unit = |reader: &mut Self| {
            let digits = reader.text.get(reader.at..reader.at + 4)?;
            reader.at += 4;
            let are_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            are_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
        };
        let high = unit(self)?;
        if !(0xD800..0xDC00).contains(&high) {
            return char::from_u32(high);
        }
        self.take("\\u")?;
        let low = unit(self)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + low)
    }
}
