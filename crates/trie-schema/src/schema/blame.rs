//! Which part of a schema an error is about. llguidance does not say: parts are compiled alone until the smallest that
//! fails is found.

use super::SchemaError;
use super::cost::Cost;
use crate::compiled::Refused;
use serde_json::Value;
use std::collections::BTreeSet;
use trie_rules::schema::multiplying;

/// Parts that are compiled at most.
const MOST: usize = 300;

/// The error, with its place.
pub(super) fn error(schema: &Value, refused: Refused, compile: &dyn Fn(Value) -> Result<(), Refused>) -> SchemaError {
    if let Some(error) = too_large(refused.said()) {
        return error;
    }
    let mut left = MOST;
    let (mut at, mut part, mut refused) = (String::new(), schema, refused);
    'deeper: loop {
        for (name, child) in parts(part).into_iter().chain(reference(schema, part)) {
            let Some(fewer) = left.checked_sub(1) else { break 'deeper };
            left = fewer;
            if let Err(found) = compile(alone(schema, child)) {
                let lost = unresolved(found.said()) && !unresolved(refused.said());
                // A part may allow nothing, as one that is false, where that is not what is wrong.
                let beside = nothing(&found) && !nothing(&refused);
                if lost || beside || holds_root(child) {
                    continue;
                }
                at = name.strip_prefix('#').map_or_else(|| format!("{at}{name}"), str::to_owned);
                (part, refused) = (child, found);
                continue 'deeper;
            }
        }
        break;
    }
    match beside(schema, (&at, part), &refused, compile, left) {
        Some((at, keywords)) => SchemaError::Unsupported { at, keywords },
        None => typed(at, part, &refused),
    }
}

/// What llguidance says where it takes keywords alone, but not beside others, and which of them are meant.
const BESIDE: [(&str, &[&str]); 4] = [
    ("oneOf constraints are not supported", &["oneOf"]),
    ("min/maxProperties only supported", &["minProperties", "maxProperties"]),
    ("are not disjoint", &["patternProperties", "propertyNames"]),
    ("can't determine if patternProperty regexes", &["patternProperties", "propertyNames"]),
];

/// The keywords that cannot stand beside others, with their place: those of the part itself, else the first one of what
/// applies to the same values without which something else is wrong, or nothing, or where it takes several the first.
fn beside(
    root: &Value,
    (at, part): (&str, &Value),
    refused: &Refused,
    compile: &dyn Fn(Value) -> Result<(), Refused>,
    left: usize,
) -> Option<(String, Vec<String>)> {
    let (words, keywords) = BESIDE.iter().find(|(words, _)| refused.said().contains(words))?;
    let own: Vec<String> =
        keywords.iter().filter(|word| part.get(**word).is_some()).map(|&word| word.to_owned()).collect();
    if !own.is_empty() {
        return Some((at.to_owned(), own));
    }
    let matters = |(place, keyword): &(String, String)| {
        let mut fewer = root.clone();
        super::unheld::without(&mut fewer, place, keyword);
        let Some(part) = fewer.pointer(at) else { return false };
        compile(alone(&fewer, part)).err().is_none_or(|found| !found.said().contains(words))
    };
    let all = applied(root, (at, part), keywords);
    let (place, keyword) = all.iter().take(left).find(|one| matters(one)).or(all.first())?;
    Some((place.clone(), vec![keyword.clone()]))
}

/// Places of these keywords in schemas that apply to the same values as a part. Left out of `not` and its like they
/// would refuse more: there it is the place of `not`.
fn applied(root: &Value, (at, part): (&str, &Value), keywords: &[&str]) -> Vec<(String, String)> {
    const WHOLE: [&str; 5] = ["not", "if", "oneOf", "dependentSchemas", "contains"];
    let (mut found, mut late) = (Vec::new(), Vec::new());
    let (mut open, mut seen) = (vec![(at.to_owned(), part)], BTreeSet::new());
    let mut next = 0;
    while let Some((at, schema)) = open.get(next).cloned() {
        next += 1;
        let Value::Object(members) = schema else { continue };
        for (key, value) in members {
            match value {
                _ if keywords.contains(&key.as_str()) => found.push((at.clone(), key.clone())),
                _ if WHOLE.contains(&key.as_str()) => late.push((at.clone(), key.clone())),
                Value::Array(all) if key == "allOf" || key == "anyOf" => {
                    open.extend(all.iter().enumerate().map(|(nth, value)| (format!("{at}/{key}/{nth}"), value)));
                }
                _ => {}
            }
        }
        let target = reference(root, schema).and_then(|(to, found)| Some((to.strip_prefix('#')?.to_owned(), found)));
        open.extend(target.filter(|(to, _)| seen.insert(to.clone())));
    }
    found.append(&mut late);
    found
}

/// Whether it refers to the whole document, which it is itself when it is compiled alone.
fn holds_root(part: &Value) -> bool {
    match part {
        Value::Array(items) => items.iter().any(holds_root),
        Value::Object(members) => members.get("$ref").is_some_and(|to| to == "#") || members.values().any(holds_root),
        _ => false,
    }
}

/// Whether llguidance gave up because of what holds at once.
pub(super) fn multiplies(said: &str) -> bool {
    said.contains("schema too large") || said.contains("stack level exceeded")
}

/// The error of a schema of which too much holds at once, with the place where most does.
pub(super) fn multiplied(given: &Value, cost: &Cost) -> SchemaError {
    let (at, keyword) = multiplying(given, cost.place());
    let place = if at.is_empty() { at } else { format!("at {at}: ") };
    let why = "what holds at once here is too much; describe fewer alternatives";
    SchemaError::TooLarge { reason: format!("{place}{keyword} is not supported: {why}") }
}

fn too_large(said: &str) -> Option<SchemaError> {
    let large =
        ["are taken; a schema", "too big", "too large", "level exceeded", "too many", "lexer precomputation failed"];
    large.iter().any(|words| said.contains(words)).then(|| SchemaError::TooLarge { reason: said.to_owned() })
}

pub(super) fn nothing(refused: &Refused) -> bool {
    matches!(refused, Refused::Endless { .. }) || refused.said().contains("Unsatisfiable schema")
}

fn unresolved(said: &str) -> bool {
    said.contains("not found") || said.contains("does not exist") || said.contains("Unresolvable")
}

fn typed(at: String, part: &Value, refused: &Refused) -> SchemaError {
    if let Refused::Endless { all } = refused {
        let all = if *all { "every document" } else { "some part of it" };
        return SchemaError::Nothing { at, reason: format!("{all} would have to hold itself, without end") };
    }
    let said = refused.said();
    if let Some(keys) = said.split("Unimplemented keys: [").nth(1).and_then(|keys| keys.split(']').next()) {
        let keywords = keys.split(", ").map(|key| key.trim_matches('"').to_owned()).collect();
        return SchemaError::Unsupported { at, keywords };
    }
    if let Some(reason) = said.split("Unsatisfiable schema: ").nth(1) {
        let reason = reason.split(": Unsatisfiable").next().unwrap_or(reason);
        return SchemaError::Nothing { at, reason: reason.to_owned() };
    }
    let reason = said.split("\n  while processing").next().unwrap_or(said);
    SchemaError::Invalid { at, reason: format!("{reason} (in {})", super::error::shown(part)) }
}

/// The schemas inside a schema, each with its place.
fn parts(schema: &Value) -> Vec<(String, &Value)> {
    const ONE: [&str; 3] = ["items", "additionalProperties", "additionalItems"];
    const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
    const LISTED: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
    let Value::Object(members) = schema else { return Vec::new() };
    let mut found = Vec::new();
    for (key, value) in members {
        match value {
            Value::Object(inner) if NAMED.contains(&key.as_str()) => {
                found.extend(inner.iter().map(|(name, value)| (format!("/{key}/{}", escaped(name)), value)));
            }
            Value::Array(inner) if LISTED.contains(&key.as_str()) => {
                found.extend(inner.iter().enumerate().map(|(nth, value)| (format!("/{key}/{nth}"), value)));
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => found.push((format!("/{key}"), value)),
            _ => {}
        }
    }
    found
}

/// What a schema refers to, in the same document.
fn reference<'a>(root: &'a Value, schema: &Value) -> Option<(String, &'a Value)> {
    let to = schema.get("$ref")?.as_str()?;
    let found = root.pointer(to.strip_prefix('#')?)?;
    (!std::ptr::eq(found, root)).then(|| (to.to_owned(), found))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A part with the definitions that it may refer to.
pub(super) fn alone(root: &Value, part: &Value) -> Value {
    let mut part = part.clone();
    if let Value::Object(members) = &mut part {
        for shared in ["$schema", "$defs", "definitions"] {
            if let Some(value) = root.get(shared) {
                members.entry(shared).or_insert_with(|| value.clone());
            }
        }
    }
    part
}
