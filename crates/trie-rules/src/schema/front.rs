//! What all parts of the reading share.

use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use trie_core::work::spend;

/// A keyword that is not held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unheld {
    /// Where: a JSON pointer.
    pub at: String,
    /// The keyword.
    pub keyword: String,
}

/// What a reader of schemas holds by itself: it stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Own {
    /// `propertyNames`.
    pub names: bool,
    /// `minProperties` and `maxProperties` beside properties that need not come.
    pub counts: bool,
    /// `format`.
    pub formats: bool,
}

/// Values that the schemas may have that one becomes, beside its own.
pub(super) const MOST_VALUES: usize = 300_000;
/// What a schema counts for, beside its values.
pub(super) const SCHEMA: usize = 20;
/// How deep schemas are looked into for what they deny.
pub(super) const DEEPEST: usize = 24;
/// Ways in which one keyword may be said.
pub(super) const MOST_WAYS: usize = 128;

/// The types that values have.
pub const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];
/// Keywords whose value is a schema.
pub(super) const ONE: [&str; 4] = ["items", "additionalProperties", "propertyNames", "contains"];
/// Keywords whose values are schemas by name.
pub(super) const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose values are schemas in a list.
pub(super) const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords that say nothing of values.
const SILENT: [&str; 18] = [
    "$schema",
    "$id",
    "$anchor",
    "id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "discriminator",
];

pub(super) struct Front<'a> {
    pub(super) root: &'a Value,
    pub(super) own: Own,
    /// Whether parts have names of their own: then what a reference means depends on where it stands.
    pub(super) has_ids: bool,
    pub(super) left: Cell<usize>,
    pub(super) unheld: BTreeSet<Unheld>,
    pub(super) notes: Vec<String>,
    /// Where schemas were said.
    pub(super) done: BTreeSet<String>,
}

/// What more must hold, and which keyword says so.
pub(super) type More = Vec<(&'static str, Value)>;

impl Front<'_> {
    /// Counts a schema that is made; whether there may be one more.
    pub(super) fn count(&self) -> bool {
        let left = if spend(SCHEMA).is_ok() { self.left.get() } else { 0 };
        self.left.set(left.saturating_sub(SCHEMA));
        self.left.get() > 0
    }

    /// A copy, as long as there may be more; what is made after that is thrown away.
    pub(super) fn copy(&self, value: &Value) -> Value {
        self.left.set(self.left.get().saturating_sub(values(value)));
        if self.left.get() > 0 { value.clone() } else { Value::Bool(false) }
    }

    pub(super) fn unheld(&mut self, at: &str, keyword: &str) {
        self.unheld.insert(Unheld { at: at.to_owned(), keyword: keyword.to_owned() });
    }
}

/// Whether a keyword says nothing of values, in any schema.
pub fn says_nothing(keyword: &str) -> bool {
    SILENT.contains(&keyword)
}

/// Whether it says nothing by itself: others are read together with it.
pub(super) fn is_silent(keyword: &str) -> bool {
    says_nothing(keyword) || matches!(keyword, "then" | "else" | "minContains" | "maxContains")
}

/// The names in the value of a keyword `type`.
pub(super) fn type_names(said: &Value) -> impl Iterator<Item = &str> {
    let names = said.as_array().map_or(std::slice::from_ref(said), Vec::as_slice);
    names.iter().filter_map(Value::as_str)
}

/// How many values a value is.
pub(super) fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

/// What is of one of these.
pub(super) fn any_of(mut schemas: Vec<Value>) -> Value {
    if schemas.contains(&Value::Bool(true)) {
        return Value::Bool(true);
    }
    schemas.retain(|schema| *schema != Value::Bool(false));
    match schemas.len() {
        0 => Value::Bool(false),
        1 => schemas.remove(0),
        _ => json!({ "anyOf": schemas }),
    }
}

/// What is of all of these.
pub(super) fn all_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    let mut schemas: Vec<Value> = schemas.into_iter().filter(|schema| *schema != Value::Bool(true)).collect();
    match schemas.len() {
        _ if schemas.contains(&Value::Bool(false)) => Value::Bool(false),
        0 => Value::Bool(true),
        1 => schemas.remove(0),
        _ => json!({ "allOf": schemas }),
    }
}

/// All types but these.
pub(super) fn but(types: &[&str]) -> Value {
    json!({"type": TYPES.iter().filter(|name| !types.contains(name)).collect::<Vec<_>>()})
}

/// Whether JSON Schema takes two values for one: 1 and 1.0 are.
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}
