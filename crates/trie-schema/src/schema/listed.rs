//! A schema that is a long enum and nothing else: a list of its values, which nothing has to compile.

use super::enums::LARGE;
use super::error::SchemaError;
use serde_json::{Map, Value};
use trie_core::work::Over;
use trie_rules::schema::contradiction;
use trie_rules::{Documents, Regex};

/// Keywords that say nothing of values.
const SILENT: [&str; 10] =
    ["$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated"];

/// The list that a schema is, if it is one; `blanks` is what may stand between parts, if anything may.
///
/// # Errors
/// More values than the limits of this work allow, or an enum without a value of its type.
pub(super) fn of(schema: &Map<String, Value>, blanks: Option<&str>) -> Result<Option<Documents>, SchemaError> {
    let Some(Value::Array(values)) = schema.get("enum").filter(|values| is_long(values)) else { return Ok(None) };
    let says_more = |name: &&String| !["enum", "type"].contains(&name.as_str()) && !SILENT.contains(&name.as_str());
    // What is no blank, or no expression, is not the business of a list.
    let blanks = blanks.map(|blanks| Regex::new(blanks).ok().filter(Documents::may_be_blanks));
    if matches!(blanks, Some(None)) {
        return Ok(None);
    }
    let types = match schema.get("type") {
        None => None,
        Some(Value::String(one)) => Some(vec![one.as_str()]),
        Some(Value::Array(several)) => several.iter().map(Value::as_str).collect::<Option<_>>(),
        Some(_) => return Ok(None),
    };
    // A type that there is not is refused elsewhere.
    let is_known = |name: &&str| *name == "integer" || trie_rules::schema::TYPES.contains(name);
    let has_type = schema.contains_key("type");
    if has_type != types.as_ref().is_some_and(|types| !types.is_empty() && types.iter().all(is_known))
        || schema.keys().any(|name| says_more(&name))
    {
        return Ok(None);
    }
    let too_large =
        |over: Over| SchemaError::TooLarge { reason: format!("its enum has {} values: {over}", values.len()) };
    let mut documents = Documents::builder();
    for value in values {
        if types.as_ref().is_none_or(|types| types.iter().any(|name| is_of(name, value))) {
            let mut parts = Vec::new();
            written(value, &mut parts);
            documents.push(&parts).map_err(too_large)?;
        }
    }
    let made = documents
        .build(blanks.flatten().as_ref())
        .map_err(|error| SchemaError::TooLarge { reason: error.to_string() })?;
    let reason = || contradiction(schema).unwrap_or_else(|| "no value of the enum has the type".to_owned());
    made.ok_or_else(|| SchemaError::Nothing { at: String::new(), reason: reason() }).map(Some)
}

fn is_long(values: &Value) -> bool {
    values.as_array().is_some_and(|values| values.len() >= LARGE)
}

fn is_of(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(_) => name == "number" || name == "integer" && !number(value).contains('.'),
    }
}

/// A number without an exponent, and without a fraction where it is whole.
fn number(value: &Value) -> String {
    match value.as_f64() {
        Some(float) if value.is_f64() => float.to_string(),
        _ => value.to_string(),
    }
}

/// The parts of a document, between which blanks may stand.
fn written(value: &Value, parts: &mut Vec<String>) {
    let mut after_another = false;
    let mut comma = |parts: &mut Vec<String>| {
        if std::mem::replace(&mut after_another, true) {
            parts.push(",".to_owned());
        }
    };
    match value {
        Value::Array(items) => {
            parts.push("[".to_owned());
            for item in items {
                comma(parts);
                written(item, parts);
            }
            parts.push("]".to_owned());
        }
        Value::Object(members) => {
            parts.push("{".to_owned());
            for (name, member) in members {
                comma(parts);
                parts.extend([Value::from(name.as_str()).to_string(), ":".to_owned()]);
                written(member, parts);
            }
            parts.push("}".to_owned());
        }
        Value::Number(_) => parts.push(number(value)),
        other => parts.push(other.to_string()),
    }
}
