//! The content parsers of response templates: the text of a region as a value.

use super::pattern::Pattern;
use super::python;
use super::python_calls;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// A content parser with its arguments.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// The text itself, as it is or without white space around it.
    Text {
        /// True if white space around it is cut off.
        strip: bool,
    },
    /// An integer, as Python reads it.
    Int,
    /// A number, as Python reads it.
    Float,
    /// `true` or `1`, or anything else for false.
    Bool,
    /// A JSON value, in a dialect of JSON.
    Json(Json),
    /// Keys and values between tags, found by a pattern.
    Tags(Box<Tags>),
    /// Keys and values on lines.
    Lines(Box<Lines>),
    /// A list of Python calls.
    Calls,
}

/// A dialect of JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct Json {
    /// True if keys have no quotes.
    pub(crate) bare_keys: bool,
    /// Marks of texts, beside the quotes.
    pub(crate) quotes: Vec<(String, String)>,
    /// True if a text that is not JSON stays a text.
    pub(crate) or_text: bool,
}

/// Parser of keys and values between tags.
#[derive(Debug, Clone)]
pub(crate) struct Tags {
    /// The pattern of a key and its value.
    pub(crate) pattern: Pattern,
    /// True if the values of a key that comes again are a list.
    pub(crate) merge: bool,
    /// The parser of a value.
    pub(crate) value: Option<Content>,
}

/// Keys and values on lines.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    /// Text between two lines.
    pub(crate) line: String,
    /// Text between a key and its value.
    pub(crate) key: String,
    /// True if white space around lines, keys and values is cut off.
    pub(crate) strip: bool,
    /// The parser of a value.
    pub(crate) value: Option<Content>,
}

/// The names of all content parsers.
const NAMES: [&str; 8] = ["bool", "float", "int", "json", "kv-lines", "python-call-list", "text", "xml-inline"];

impl Content {
    /// Reads the name of a content parser and its arguments.
    ///
    /// # Errors
    /// The reason why they cannot be used.
    pub(crate) fn new(name: &str, arguments: Option<&Value>) -> Result<Self, String> {
        let empty = Map::new();
        let arguments = match arguments {
            None => &empty,
            Some(Value::Object(arguments)) => arguments,
            Some(other) => return Err(format!("invalid content_args: expected an object, got {other}")),
        };
        let flag = |key: &str, default: bool| arguments.get(key).map_or(default, python::is_true);
        Ok(match name {
            "text" => Self::Text { strip: flag("strip", true) },
            "int" => Self::Int,
            "float" => Self::Float,
            "bool" => Self::Bool,
            "json" => {
                let quotes = arguments.get("string_delims").map_or(Ok(Vec::new()), |pairs| {
                    let wrong = || format!("invalid string_delims: expected a list of two texts each, got {pairs}");
                    let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
                        Some([Value::String(open), Value::String(close)]) if !open.is_empty() && !close.is_empty() => {
                            Ok((open.clone(), close.clone()))
                        }
                        _ => Err(wrong()),
                    };
                    pairs.as_array().ok_or_else(wrong)?.iter().map(pair).collect()
                })?;
                let (bare_keys, or_text) = (flag("unquoted_keys", false), flag("allow_non_json", false));
                Self::Json(Json { bare_keys, quotes, or_text })
            }
            "xml-inline" => {
                let Some(text) = arguments.get("tag_pattern").and_then(Value::as_str) else {
                    return Err("xml-inline needs the text \"tag_pattern\" in content_args".into());
                };
                let pattern = Pattern::new(text).map_err(|reason| format!("invalid tag_pattern {text:?}: {reason}"))?;
                if !pattern.names().iter().any(|name| name == "key") {
                    return Err(format!("invalid tag_pattern {text:?}: it has no group named \"key\""));
                }
                let value = value_parser(arguments)?;
                Self::Tags(Box::new(Tags { pattern, merge: flag("merge_duplicates", false), value }))
            }
            "kv-lines" => {
                let text = |key: &str, default: &str| match arguments.get(key) {
                    None => Ok(default.to_owned()),
                    Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
                    Some(other) => Err(format!("invalid {key}: expected a text, got {other}")),
                };
                let (line, key) = (text("line_sep", "\n")?, text("kv_sep", ":")?);
                let value = value_parser(arguments)?;
                Self::Lines(Box::new(Lines { line, key, strip: flag("strip", true), value }))
            }
            "python-call-list" => Self::Calls,
            _ => {
                let names = NAMES.map(|name| format!("{name:?}")).join(", ");
                return Err(format!("unknown content parser {name:?}: there are {names}"));
            }
        })
    }

    /// Returns whether its value is the text itself.
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Int | Self::Float | Self::Bool)
    }

    /// Parses the text of a region.
    ///
    /// # Errors
    /// The reason why the text is not such a value.
    pub(crate) fn parse(&self, text: &str) -> Result<Value, String> {
        let stripped = || python::strip(text);
        match self {
            Self::Text { strip } => Ok(if *strip { stripped() } else { text }.into()),
            Self::Int => python::int(stripped()).map(Value::from),
            Self::Float => python::float(stripped()).and_then(number),
            Self::Bool => Ok(matches!(&stripped().to_lowercase()[..], "true" | "1").into()),
            Self::Json(json) => json.parse(text),
            Self::Tags(tags) => tags.parse(text),
            Self::Lines(lines) => lines.parse(text),
            Self::Calls => python_calls::parse(text),
        }
    }
}

fn number(value: f64) -> Result<Value, String> {
    serde_json::Number::from_f64(value).map(Value::Number).ok_or_else(|| format!("{value} cannot be a number in JSON"))
}

fn value_parser(arguments: &Map<String, Value>) -> Result<Option<Content>, String> {
    let parser = match arguments.get("value_parser") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(parser)) => parser,
        Some(other) => return Err(format!("invalid value_parser: expected an object, got {other}")),
    };
    let name = match parser.get("name") {
        None => "text",
        Some(Value::String(name)) => name,
        Some(other) => return Err(format!("invalid name of a value_parser: expected a text, got {other}")),
    };
    Content::new(name, parser.get("args")).map(Some)
}

fn parse_value(text: &str, parser: Option<&Content>) -> Result<Value, String> {
    parser.map_or_else(|| Ok(text.into()), |parser| parser.parse(text))
}

/// Marks of a text that was taken out of lax JSON.
const TAKEN: [char; 2] = ['\u{1}', '\u{2}'];

impl Json {
    fn parse(&self, text: &str) -> Result<Value, String> {
        if !self.quotes.is_empty() && text.contains(TAKEN) {
            return Err("the text holds the control characters U+0001 or U+0002, which mark texts here".into());
        }
        let (mut working, mut taken) = (Cow::Borrowed(text), Vec::new());
        for (open, close) in &self.quotes {
            working = take_texts(&working, open, close, &mut taken).into();
        }
        if self.bare_keys {
            working = quote_keys(&working).into();
        }
        for (number, text) in taken.iter().enumerate() {
            let mark = format!("{}{number}{}", TAKEN[0], TAKEN[1]);
            working = working.replace(&mark, &Value::from(text.as_str()).to_string()).into();
        }
        match python::json(&working) {
            Ok(value) => Ok(value),
            Err(_) if self.or_text => Ok(python::strip(text).into()),
            Err(error) => Err(format!("not JSON: {error}")),
        }
    }
}

/// Takes the texts between two marks out, and leaves their numbers.
fn take_texts(text: &str, open: &str, close: &str, taken: &mut Vec<String>) -> String {
    let (mut working, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(from) = rest.find(open) {
        let Some(length) = rest[from + open.len()..].find(close) else { break };
        let inside = from + open.len();
        let _ = write!(working, "{}{}{}{}", &rest[..from], TAKEN[0], taken.len(), TAKEN[1]);
        taken.push(rest[inside..inside + length].to_owned());
        rest = &rest[inside + length + close.len()..];
    }
    working + rest
}

/// Puts quotes around keys that have none: a word after `{` or `,` and before `:`.
fn quote_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut at = 0;
    while let Some(sign) = text[at..].chars().next() {
        let rest = &text[at..];
        let taken = if let Some(length) = quoted_length(rest) {
            out.push_str(&rest[..length]);
            length
        } else if let Some((blanks, word, apart)) = bare_key(rest).filter(|_| matches!(before, Some('{' | ','))) {
            let (first, then) = rest[..blanks + word + apart].split_at(blanks);
            let (word, apart) = then.split_at(word);
            let _ = write!(out, "{first}\"{word}\"{apart}:");
            first.len() + word.len() + apart.len() + 1
        } else {
            out.push(sign);
            sign.len_utf8()
        };
        before = text[..at + taken].chars().next_back();
        at += taken;
    }
    out
}

/// The bytes of a text in quotes that begins here, if it ends.
fn quoted_length(text: &str) -> Option<usize> {
    let mut signs = text.char_indices();
    signs.next().filter(|&(_, sign)| sign == '"')?;
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Some(at + 1),
            '\\' => drop(signs.next()?),
            _ => {}
        }
    }
    None
}

/// White space, a word and white space before a colon, in bytes.
fn bare_key(text: &str) -> Option<(usize, usize, usize)> {
    let run = |text: &str, is: fn(char) -> bool| text.find(|sign| !is(sign)).unwrap_or(text.len());
    let blanks = run(text, char::is_whitespace);
    let word = run(&text[blanks..], |sign| sign.is_alphanumeric() || sign == '_');
    let apart = run(&text[blanks + word..], char::is_whitespace);
    (word > 0 && text[blanks + word + apart..].starts_with(':')).then_some((blanks, word, apart))
}

impl Tags {
    fn parse(&self, text: &str) -> Result<Value, String> {
        let signs: Vec<char> = text.chars().collect();
        let has_value = self.pattern.names().iter().any(|name| name == "value");
        let (mut out, mut merged) = (Map::new(), Vec::new());
        let mut at = 0;
        while at <= signs.len() {
            let Some(found) = self.pattern.search(&signs, at, false) else { break };
            at = if found.end == found.start { found.end + 1 } else { found.end };
            let captures = self.pattern.captures(&found, &signs);
            let group = |wanted: &str| captures.iter().find(|(name, _)| name == wanted).map(|(_, text)| text.as_str());
            let Some(key) = group("key") else { return Err("a tag without a key".into()) };
            let value = match group("value") {
                Some(value) => parse_value(value, self.value.as_ref())?,
                None if !has_value => parse_value("", self.value.as_ref())?,
                None if matches!(self.value, None | Some(Content::Text { strip: false })) => Value::Null,
                None => return Err(format!("the tag of {key:?} has no value")),
            };
            match out.get_mut(key) {
                Some(known) if self.merge => {
                    if !merged.iter().any(|other| other == key) {
                        merged.push(key.to_owned());
                        *known = Value::Array(vec![known.take()]);
                    }
                    known.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
                }
                _ => drop(out.insert(key.to_owned(), value)),
            }
        }
        Ok(Value::Object(out))
    }
}

impl Lines {
    fn parse(&self, text: &str) -> Result<Value, String> {
        let strip = |text| if self.strip { python::strip(text) } else { text };
        let mut out = Map::new();
        for line in text.split(&self.line[..]).map(strip) {
            let Some((key, value)) = line.split_once(&self.key[..]) else { continue };
            out.insert(strip(key).to_owned(), parse_value(strip(value), self.value.as_ref())?);
        }
        Ok(Value::Object(out))
    }
}
