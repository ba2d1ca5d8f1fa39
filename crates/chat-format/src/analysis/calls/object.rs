//! Calls and arguments that are JSON objects.

use crate::dialect::{Field, ObjectCall, Part};
use serde_json::Value;

/// An object in a text: a call, or arguments alone.
#[derive(Debug, Clone)]
pub(super) struct FoundObject {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) call: Option<Part>,
    /// True if it is a dict as Python prints it.
    pub(super) python: bool,
}

/// The outermost JSON object or printed dict with this value, and what it is.
pub(super) fn find(text: &str, name: &str, key: &str, value: &str, id: &str) -> Option<FoundObject> {
    let upto = text.find(value)?;
    for (start, _) in text[..upto].match_indices('{') {
        let json = read_json(&text[start..]).map(|found| (found, false));
        let Some(((found, length), python)) = json.or_else(|| Some((find_python_dict(&text[start..])?, true))) else {
            continue;
        };
        let end = start + length;
        if end <= upto {
            continue;
        }
        if is_arguments(&found, key) {
            return Some(FoundObject { start, end, call: None, python });
        }
        match call(&found, name, key, id) {
            // Text in a dict is escaped twice: such a template wants no text.
            Some(Part::Object(object)) if python && object.text => return None,
            Some(Part::Object(object)) => {
                return Some(FoundObject {
                    start,
                    end,
                    call: Some(Part::Object(ObjectCall { python, ..object })),
                    python,
                });
            }
            Some(call) if !python => return Some(FoundObject { start, end, call: Some(call), python }),
            _ => {}
        }
    }
    None
}

/// A JSON value at the beginning of a text, and how long it is.
fn read_json(text: &str) -> Option<(Value, usize)> {
    let mut read = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let found = read.next()?.ok()?;
    Some((found, read.byte_offset()))
}

/// The same of a dict as Python prints it.
fn find_python_dict(text: &str) -> Option<(Value, usize)> {
    let (json, length) = crate::values::printed(text.as_bytes())?;
    Some((serde_json::from_slice(&json).ok()?, length))
}

fn is_arguments(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key(key),
        Value::String(text) => serde_json::from_str::<Value>(text).is_ok_and(|inner| inner.get(key).is_some()),
        _ => false,
    }
}

fn call(value: &Value, name: &str, key: &str, id: &str) -> Option<Part> {
    let fields = value.as_object()?;
    if fields.len() == 1 && fields.get(name).is_some_and(|inner| is_arguments(inner, key)) {
        return Some(Part::NameAsKey);
    }
    let has_name = |value: &Value| value.as_object().is_some_and(|fields| fields.values().any(|field| field == name));
    let inside = fields.iter().find(|(_, field)| has_name(field));
    let inside_key = inside.map(|(key, _)| key.clone()).unwrap_or_default();
    let mut found = ObjectCall { inside: inside_key, ..ObjectCall::default() };
    let inner = inside.and_then(|(_, inner)| inner.as_object());
    // In the order in which they are written.
    let place = fields.iter().position(|(key, _)| *key == found.inside).unwrap_or_default();
    let outer = || fields.iter().enumerate().filter(|(_, (key, _))| **key != found.inside);
    let before = outer().filter(|(at, _)| *at < place).map(|(_, field)| field);
    let later = outer().filter(|(at, _)| *at >= place).map(|(_, field)| field);
    let all: Vec<(&String, &Value)> = before.chain(inner.into_iter().flatten()).chain(later).collect();
    for (field, value) in all {
        let field = field.clone();
        let is_beside = !found.inside.is_empty() && inner.is_some_and(|inner| inner.contains_key(&field));
        found.text |= value.is_string() && is_arguments(value, key);
        found.fields.push(match value {
            value if value == name => Field::Name(field),
            value if is_arguments(value, key) => Field::Arguments(field),
            Value::String(text) if text == id || text.parse::<u32>().is_ok() => Field::Id(field),
            Value::Number(_) => Field::Id(field),
            Value::String(text) => Field::Constant(field, text.clone()),
            _ => continue,
        });
        if is_beside && let Some(Field::Id(key) | Field::Constant(key, _)) = found.fields.last() {
            found.beside.push(key.clone());
        }
    }
    let has = |wanted: fn(&Field) -> bool| found.fields.iter().any(wanted);
    let whole = has(|field| matches!(field, Field::Name(_))) && has(|field| matches!(field, Field::Arguments(_)));
    whole.then_some(Part::Object(found))
}
