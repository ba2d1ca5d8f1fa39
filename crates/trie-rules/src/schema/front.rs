//! What all parts of the reading share.

use super::anchors::Anchors;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use trie_core::work::{Over, look, spend};

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

/// The place where a schema grows too large when it is said in fewer words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{keyword} {}", place(&self.at), self.reason())]
#[non_exhaustive]
pub struct TooLarge {
    /// JSON pointer of the schema, in the whole that was given.
    pub at: String,
    /// The keyword that multiplies.
    pub keyword: String,
    /// Values that were allowed.
    pub most: usize,
    /// What ended the work, where that was not the number of values.
    pub over: Option<Over>,
}

trie_core::error_kind!(TooLarge, Rule);

impl TooLarge {
    /// Returns why the keyword is refused and what to do, without its name and place.
    pub fn reason(&self) -> String {
        match self.over {
            Some(over) => format!("is not supported: said by other keywords, {over}"),
            None => format!(
                "is not supported: said by other keywords, it fills more than {} values; say less with it",
                self.most
            ),
        }
    }
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("at {at}: ") }
}

/// Values that the schemas may have that one becomes, beside its own.
pub(super) const MOST_VALUES: usize = 300_000;
/// Bytes that a value takes in memory, about, and steps that a copy of it takes.
const VALUE_BYTES: usize = 128;
const VALUE_STEPS: usize = 8;
/// Bytes of text that count as one more value.
const TEXT: usize = 32;
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

/// What stands for a keyword where it is none alone.
pub(super) const WHOLE: &str = "the schema";

pub(super) struct Front<'a> {
    pub(super) root: &'a Value,
    pub(super) own: Own,
    /// Whether parts have names of their own: then what a reference means depends on where it stands.
    pub(super) has_ids: bool,
    pub(super) anchors: Anchors<'a>,
    pub(super) left: Cell<usize>,
    /// Where there was nothing left.
    pub(super) grown: Option<(String, &'static str)>,
    pub(super) unheld: BTreeSet<Unheld>,
    /// Formats that there are not, with their places.
    pub(super) notes: Vec<(String, String)>,
    /// Where schemas were said.
    pub(super) done: BTreeSet<String>,
}

/// What more must hold, and which keyword says so.
pub(super) type More = Vec<(&'static str, Value)>;

impl Front<'_> {
    /// Counts a schema that is made; whether there may be one more.
    pub(super) fn count(&self) -> bool {
        self.turns(SCHEMA) && self.takes(SCHEMA)
    }

    /// Counts turns of a loop that makes nothing; whether there may be more.
    pub(super) fn turns(&self, turns: usize) -> bool {
        if spend(turns).is_err() {
            self.left.set(0);
        }
        self.left.get() > 0
    }

    /// Counts what is made by its weight; whether there may be more.
    pub(super) fn takes(&self, weight: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(weight));
        self.left.get() > 0
    }

    /// A copy, as long as there may be more; what is made after that is thrown away.
    pub(super) fn copy(&self, value: &Value) -> Value {
        let weight = weight(value);
        if charge(weight).is_err() {
            self.left.set(0);
        }
        if self.takes(weight) { value.clone() } else { Value::Bool(false) }
    }

    /// Notes which keyword took the last of what there was.
    pub(super) fn took(&mut self, at: &str, keyword: &'static str) {
        if self.left.get() == 0 && self.grown.is_none() {
            self.grown = Some((at.to_owned(), keyword));
        }
    }

    pub(super) fn unheld(&mut self, at: &str, keyword: &str) {
        self.takes(text_weight(at));
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

/// How many values a value is; long texts count for several.
pub fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text_weight(text),
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, value)| name.len() / TEXT + weight(value)).sum::<usize>()
        }
        _ => 1,
    }
}

pub(super) fn text_weight(text: &str) -> usize {
    1 + text.len() / TEXT
}

/// Takes steps and memory for values of this [`weight`] that are made.
///
/// # Errors
/// The [work](trie_core::work) of this thread is over.
pub fn charge(weight: usize) -> Result<(), Over> {
    look(VALUE_STEPS * weight, VALUE_BYTES * weight)
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
