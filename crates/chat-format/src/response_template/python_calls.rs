//! Lists of Python calls with keywords: `[ring(tone="low", times=2)]`.

use super::python;
use serde_json::{Map, Value, json};

/// Limit on lists and dicts inside each other.
const MOST_DEPTH: usize = 100;
/// The greatest integer that a double holds exactly, with all before it.
const GREATEST: u64 = (1 << 53) - 1;

/// Parses a list of calls into names and arguments.
///
/// # Errors
/// The reason why it is none, and the place.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    reader.expect('[')?;
    let calls = reader.items(']', Reader::call)?;
    reader.skip_blanks();
    if reader.at < text.len() {
        return Err(reader.wrong("content after the closing ]"));
    }
    Ok(Value::Array(calls))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn wrong(&self, what: &str) -> String {
        format!("no list of Python calls: {what} at byte {}", self.at)
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn is_at(&mut self, sign: char) -> bool {
        self.skip_blanks();
        self.rest().starts_with(sign)
    }

    fn take(&mut self, sign: char) -> bool {
        let is = self.is_at(sign);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        if self.take(sign) { Ok(()) } else { Err(self.wrong(&format!("expected {sign:?}"))) }
    }

    fn items<T>(&mut self, close: char, item: impl Fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close) {
                return Ok(items);
            }
            self.expect(',')?;
        }
    }

    fn unique(&self, pairs: Vec<(String, Value)>) -> Result<Value, String> {
        let mut map = Map::new();
        for (key, value) in pairs {
            if map.contains_key(&key) {
                return Err(self.wrong(&format!("the name {key:?} came twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    fn call(&mut self) -> Result<Value, String> {
        let name = self.name("the name of a function")?;
        self.expect('(')?;
        let arguments = self.items(')', Self::argument)?;
        Ok(json!({"name": name, "arguments": self.unique(arguments)?}))
    }

    fn argument(&mut self) -> Result<(String, Value), String> {
        let key = self.name("the name of an argument")?.to_owned();
        self.expect('=')?;
        Ok((key, self.value(0)?))
    }

    fn name(&mut self, what: &str) -> Result<&'t str, String> {
        self.skip_blanks();
        let name = self.peek_name().ok_or_else(|| self.wrong(&format!("expected {what}")))?;
        self.at += name.len();
        Ok(name)
    }

    /// A name: words of letters, digits and `_`, with `.` and `-` between; the first begins with no digit.
    fn peek_name(&self) -> Option<&'t str> {
        let rest = self.rest();
        let word = |text: &str| text.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'));
        let mut end = word(rest).unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|sign: char| sign.is_ascii_digit()) {
            return None;
        }
        while rest[end..].starts_with(['-', '.']) {
            let more = word(&rest[end + 1..]).unwrap_or(rest.len() - end - 1);
            if more == 0 {
                break;
            }
            end += 1 + more;
        }
        Some(&rest[..end])
    }

    /// A value inside so many lists and dicts.
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if self.is_at('\'') || self.is_at('"') {
            return self.string().map(Value::String);
        }
        if self.is_at('[') || self.is_at('{') {
            if depth >= MOST_DEPTH {
                return Err(self.wrong(&format!("more than {MOST_DEPTH} lists and dicts inside each other")));
            }
            if self.take('[') {
                return self.items(']', |reader| reader.value(depth + 1)).map(Value::Array);
            }
            self.expect('{')?;
            let pairs = self.items('}', |reader| reader.pair(depth + 1))?;
            return self.unique(pairs);
        }
        if let Some(length) = number_length(self.rest()) {
            return self.number(length);
        }
        let name = self.peek_name();
        let value = match name {
            Some("True" | "true") => Value::Bool(true),
            Some("False" | "false") => Value::Bool(false),
            Some("None" | "null") => Value::Null,
            _ => return Err(self.wrong("expected a string, a number, a list, a dict, True, False or None")),
        };
        self.at += name.map_or(0, str::len);
        Ok(value)
    }

    fn pair(&mut self, depth: usize) -> Result<(String, Value), String> {
        if !(self.is_at('\'') || self.is_at('"')) {
            return Err(self.wrong("a key of a dict is a string"));
        }
        let key = self.string()?;
        self.expect(':')?;
        Ok((key, self.value(depth)?))
    }

    fn number(&mut self, length: usize) -> Result<Value, String> {
        let text = &self.rest()[..length];
        let value = if text.contains(['.', 'e', 'E']) {
            let value = python::float(text)?;
            serde_json::Number::from_f64(value).map(Value::Number).ok_or_else(|| self.wrong("a number too large"))?
        } else {
            let value = python::int(text).ok().filter(|value| value.unsigned_abs() <= GREATEST);
            Value::from(value.ok_or_else(|| self.wrong("an integer beyond 2^53 - 1"))?)
        };
        self.at += length;
        Ok(value)
    }

    fn string(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let mut signs = rest.char_indices();
        let quote = signs.next().map(|(_, sign)| sign);
        let mut out = String::new();
        while let Some((at, sign)) = signs.next() {
            match sign {
                _ if Some(sign) == quote => {
                    self.at += at + 1;
                    return Ok(out);
                }
                '\n' | '\r' => break,
                '\\' => {
                    let Some((_, escape)) = signs.next() else { break };
                    match escape {
                        '\\' | '\'' | '"' | '/' => out.push(escape),
                        'b' => out.push('\u{8}'),
                        'f' => out.push('\u{c}'),
                        'n' => out.push('\n'),
                        'r' => out.push('\r'),
                        't' => out.push('\t'),
                        'u' => {
                            let (sign, length) =
                                unicode(&rest[at..]).ok_or_else(|| self.wrong("a wrong \\u escape in the string"))?;
                            out.push(sign);
                            for _ in 2..length {
                                signs.next();
                            }
                        }
                        _ => return Err(self.wrong(&format!("the escape \\{escape} in the string"))),
                    }
                }
                _ => out.push(sign),
            }
        }
        Err(self.wrong("a string without its end"))
    }
}

/// The character of an escape `\uXXXX`, or of two that are one character, and its length.
fn unicode(text: &str) -> Option<(char, usize)> {
    let code = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let first = code(0)?;
    if let Some(sign) = char::from_u32(first) {
        return Some((sign, 6));
    }
    let second = code(6).filter(|second| (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(second))?;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)).map(|sign| (sign, 12))
}

/// The length of a JSON number that begins here.
fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = usize::from(text.starts_with('-'));
    let mut end = start + if bytes.get(start) == Some(&b'0') { 1 } else { digits(start) };
    if end == start {
        return None;
    }
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if bytes.get(end).is_some_and(|byte| b"eE".contains(byte)) {
        let sign = usize::from(bytes.get(end + 1).is_some_and(|byte| b"+-".contains(byte)));
        let more = digits(end + 1 + sign);
        if more > 0 {
            end += 1 + sign + more;
        }
    }
    Some(end)
}
