//! Contradictions of `enum` or `const` with `type`: listed values, none of which has the type.
//!
//! No document satisfies both. In the arguments of tools, where such schemas are common, the listed values win.

use super::error::SchemaWarning;
use crate::formula::Types;
use crate::json::Json;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use trie_core::work::spend;

/// Schemas that are read together at most: what one refers to, and all that must hold at once.
const MOST_TOGETHER: usize = 32;
/// Keywords whose values are schemas in a list.
const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Values that a message shows, and characters of each.
const SHOWN: usize = 4;
const SHOWN_CHARS: usize = 40;

/// Returns the places where `enum` or `const` lists no value of the `type` beside it, those in `not` and `if` left out:
/// nothing comes of them.
pub(super) fn contradictions(schema: &Value) -> Vec<SchemaWarning> {
    let mut found = Vec::new();
    let (mut open, mut seen) = (VecDeque::from([(String::new(), schema)]), HashSet::new());
    while let Some((at, part)) = open.pop_front() {
        let Value::Object(map) = part else { continue };
        if !seen.insert(at.clone()) {
            continue;
        }
        let all = together(schema, map);
        // Where that is too much, whoever compiles it says so.
        if spend(all.len()).is_err() {
            break;
        }
        if let Some(Contradiction { keyword, reason, .. }) = contradiction(&all) {
            found.push(SchemaWarning::new(&at, keyword, reason));
        }
        open.extend(map.get("$ref").and_then(|to| target(schema, to)));
        for (key, value) in map {
            match value {
                Value::Object(named) if ["properties", "patternProperties"].contains(&key.as_str()) => {
                    open.extend(named.iter().map(|(name, one)| {
                        (format!("{at}/{key}/{}", name.replace('~', "~0").replace('/', "~1")), one)
                    }));
                }
                Value::Array(listed) if LISTED.contains(&key.as_str()) || key == "items" => {
                    open.extend(listed.iter().enumerate().map(|(nth, one)| (format!("{at}/{key}/{nth}"), one)));
                }
                one if ["items", "additionalProperties"].contains(&key.as_str()) => {
                    open.push_back((format!("{at}/{key}"), one));
                }
                _ => {}
            }
        }
    }
    found
}

/// Removes each `type` that excludes all values of the `enum` or `const` beside it, and returns a warning for each.
pub(crate) fn remove_excluding_types(schema: &mut Cow<'_, Value>) -> Vec<SchemaWarning> {
    let mut warnings = Vec::new();
    for SchemaWarning { at, .. } in contradictions(schema) {
        let Some(map) = schema.pointer(&at).and_then(Value::as_object) else { continue };
        let Some(Contradiction { keyword, by: "type", .. }) = contradiction(&[map]) else { continue };
        let Some(Value::Object(map)) = schema.to_mut().pointer_mut(&at) else { continue };
        let said = map.remove("type").unwrap_or_default();
        let reason = format!("{keyword} lists no value of the type {said}: the listed values are written");
        warnings.push(SchemaWarning::new(&at, "type", reason));
    }
    warnings
}

/// A schema and those that hold of the same value: what it refers to, and what `allOf` lists.
fn together<'a>(root: &'a Value, schema: &'a Map<String, Value>) -> Vec<&'a Map<String, Value>> {
    let mut all = vec![schema];
    let mut next = 0;
    while let Some(&one) = all.get(next) {
        next += 1;
        let referred = one.get("$ref").and_then(|to| target(root, to)).map(|(_, target)| target);
        let listed = one.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let more: Vec<_> = referred.into_iter().chain(listed).filter_map(Value::as_object).collect();
        for one in more {
            if all.len() < MOST_TOGETHER && !all.iter().any(|known| std::ptr::eq(*known, one)) {
                all.push(one);
            }
        }
    }
    all
}

fn target<'a>(root: &'a Value, to: &Value) -> Option<(String, &'a Value)> {
    let pointer = plain(to.as_str()?.strip_prefix('#')?);
    root.pointer(&pointer).map(|target| (pointer, target))
}

/// Listed values of which none may come.
struct Contradiction {
    /// The keyword that lists the values.
    keyword: &'static str,
    /// The keyword that excludes them; the same one if it lists none.
    by: &'static str,
    reason: String,
}

/// Returns how the first of these schemas, which all hold of one value, contradicts itself or another one.
fn contradiction(all: &[&Map<String, Value>]) -> Option<Contradiction> {
    // As OpenAPI writes it.
    let is_nullable = all.iter().any(|schema| schema.get("nullable") == Some(&Value::Bool(true)));
    for (nth, schema) in all.iter().enumerate() {
        let values = |keyword: &str| match (keyword, schema.get(keyword)) {
            ("const", Some(one)) => Some(std::slice::from_ref(one)),
            (_, Some(Value::Array(values))) => Some(&values[..]),
            _ => None,
        };
        for keyword in ["const", "enum"] {
            let Some(values) = values(keyword) else { continue };
            if values.is_empty() {
                let reason = "enum lists no value: list those that may come, or leave enum out";
                return (nth == 0).then(|| Contradiction { keyword, by: keyword, reason: reason.to_owned() });
            }
            for (other, beside) in all.iter().enumerate() {
                // Two that stand beside each other in another schema are found there.
                if nth > 0 && other == nth {
                    continue;
                }
                if let Some(said) = beside.get("type")
                    && is_known(said)
                    && !values.iter().any(|value| is_of(said, value) || (is_nullable && value.is_null()))
                {
                    let reason = format!(
                        "{keyword} and type exclude each other: type is {said}, and {keyword} {}; name the type of \
                         the values, or give values of that type",
                        listed(keyword, values)
                    );
                    return Some(Contradiction { keyword, by: "type", reason });
                }
                if let ("const", Some(Value::Array(others))) = (keyword, beside.get("enum"))
                    && !others.iter().any(|value| Json::of(value) == Json::of(&values[0]))
                {
                    let reason = format!(
                        "const and enum exclude each other: const {}, and enum {}; leave one of them out",
                        listed("const", values),
                        listed("enum", others)
                    );
                    return Some(Contradiction { keyword, by: "enum", reason });
                }
            }
        }
    }
    None
}

/// Returns whether it names types that there are: others are refused elsewhere, or read otherwise.
fn is_known(said: &Value) -> bool {
    let is_name = |name: &Value| name.as_str().is_some_and(|name| Types::named(name).is_some());
    match said {
        Value::Array(names) => !names.is_empty() && names.iter().all(is_name),
        name => is_name(name),
    }
}

/// Returns whether a value is of a type that is named.
fn is_of(said: &Value, value: &Value) -> bool {
    type_names(said).any(|name| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(number) => {
            let is_whole = || !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole())
        }
    })
}

fn listed(keyword: &str, values: &[Value]) -> String {
    let shown = |value: &Value| {
        let text = value.to_string();
        match text.char_indices().nth(SHOWN_CHARS) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    };
    let texts: Vec<String> = values.iter().take(SHOWN).map(shown).collect();
    let more = values.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} {}{more}", if keyword == "const" { "is" } else { "lists" }, texts.join(", "))
}

fn type_names(said: &Value) -> impl Iterator<Item = &str> {
    let names = said.as_array().map_or(std::slice::from_ref(said), Vec::as_slice);
    names.iter().filter_map(Value::as_str)
}

/// A JSON pointer with the characters that an address escapes.
fn plain(pointer: &str) -> String {
    let codes = ["25", "24", "20", "22", "5E", "7C"].iter().zip(['%', '$', ' ', '"', '^', '|']);
    codes.fold(pointer.to_owned(), |text, (code, char)| text.replace(&format!("%{code}"), &char.to_string()))
}
