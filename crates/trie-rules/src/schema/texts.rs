//! Sets of texts, as regular expressions.

use super::formats::{Known, known};
use super::front::{DEEPEST, Front, is_silent, type_names};
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of texts that are left out.
const MOST: usize = 10_000;

/// A set of texts.
pub(super) enum Texts {
    Any,
    Listed(Vec<String>),
    Pattern(String),
}

/// A regular expression of all texts but these.
pub(super) fn none_of(texts: &[&str]) -> Option<String> {
    fn rest(texts: &[&str]) -> String {
        let mut by_first: BTreeMap<char, Vec<&str>> = BTreeMap::new();
        for text in texts {
            let mut chars = text.chars();
            if let Some(first) = chars.next() {
                by_first.entry(first).or_default().push(chars.as_str());
            }
        }
        let optional = if texts.iter().any(|text| text.is_empty()) { "" } else { "?" };
        if by_first.is_empty() {
            return format!("(?:(?s:.)(?s:.)*){optional}");
        }
        let firsts: String = by_first.keys().map(|char| class(*char)).collect();
        let mut either = format!("[^{firsts}](?s:.)*");
        for (first, texts) in by_first {
            either.extend(["|", &class(first), &rest(&texts)]);
        }
        format!("(?:{either}){optional}")
    }
    let deep = texts.iter().any(|text| text.len() > 500);
    (!deep && texts.iter().map(|text| text.len()).sum::<usize>() <= MOST).then(|| format!("^{}$", rest(texts)))
}

/// A character in a class.
fn class(char: char) -> String {
    if char.is_ascii_alphanumeric() { char.to_string() } else { format!("\\x{{{:X}}}", u32::from(char)) }
}

impl Front<'_> {
    /// The texts that fit a schema, where they are of one kind.
    pub(super) fn texts(&self, schema: &Value, depth: usize) -> Option<Texts> {
        let map = match schema {
            Value::Bool(true) => return Some(Texts::Any),
            Value::Bool(false) => return Some(Texts::Listed(Vec::new())),
            Value::Object(map) if depth < DEEPEST => map,
            _ => return None,
        };
        let length = |key: &str| map.get(key).map(Value::as_u64);
        let mut found = Texts::Any;
        for (key, value) in map {
            let next = match (key.as_str(), value) {
                (key, _) if is_silent(key) => continue,
                ("type", kind) => {
                    if type_names(kind).any(|name| name == "string") {
                        Texts::Any
                    } else {
                        Texts::Listed(Vec::new())
                    }
                }
                ("const", value) => Texts::Listed(value.as_str().map(str::to_owned).into_iter().collect()),
                ("enum", Value::Array(values)) => {
                    Texts::Listed(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                }
                ("pattern", Value::String(pattern)) => Texts::Pattern(pattern.clone()),
                ("minLength" | "maxLength", _) => {
                    let (min, max) = (length("minLength").unwrap_or(Some(0))?, length("maxLength"));
                    let max = if let Some(max) = max { max?.to_string() } else { String::new() };
                    if max.parse::<u64>().is_ok_and(|max| max < min) {
                        return Some(Texts::Listed(Vec::new()));
                    }
                    if key == "maxLength" && map.contains_key("minLength") {
                        continue;
                    }
                    Texts::Pattern(format!("^(?s:.{{{min},{max}}})$"))
                }
                ("format", Value::String(format)) => match known(format) {
                    Known::Pattern(pattern) => Texts::Pattern(pattern),
                    Known::Not => continue,
                    Known::Unheld => return None,
                },
                ("not", inner) => match self.texts(inner, depth + 1)? {
                    Texts::Any => Texts::Listed(Vec::new()),
                    Texts::Listed(texts) if texts.is_empty() => continue,
                    Texts::Listed(texts) => {
                        Texts::Pattern(none_of(&texts.iter().map(String::as_str).collect::<Vec<_>>())?)
                    }
                    Texts::Pattern(_) => return None,
                },
                ("$ref", Value::String(to)) => self.texts(self.target(to)?, depth + 1)?,
                ("allOf", Value::Array(all)) if all.len() == 1 => self.texts(&all[0], depth + 1)?,
                ("anyOf" | "oneOf" | "allOf" | "if" | "enum" | "pattern" | "$ref" | "$dynamicRef", _) => return None,
                // Of values that are no texts.
                _ => continue,
            };
            found = match (found, next) {
                (Texts::Any, one) | (one, Texts::Any) => one,
                (Texts::Listed(one), Texts::Listed(other)) if self.turns(one.len() * other.len()) => {
                    Texts::Listed(one.into_iter().filter(|text| other.contains(text)).collect())
                }
                (Texts::Listed(none), _) | (_, Texts::Listed(none)) if none.is_empty() => Texts::Listed(none),
                _ => return None,
            };
        }
        Some(found)
    }
}
