//! Schemas without what cannot be held.

use super::SchemaError;
use serde_json::Value;
use trie_rules::schema::Unheld;

/// Keywords that are left out of one schema at most.
pub(super) const MOST: usize = 64;

/// In words.
pub(super) fn said(unheld: &Unheld) -> String {
    let Unheld { at, keyword } = unheld;
    if at.is_empty() { format!("{keyword} is not held") } else { format!("at {at}: {keyword} is not held") }
}

/// Leaves out what is not supported; whether there was something. One of several becomes any of them.
pub(super) fn leave_out(schema: &mut Value, error: &SchemaError) -> bool {
    let SchemaError::Unsupported { at, keywords } = error else { return false };
    keywords.iter().filter(|keyword| without(schema, at, keyword)).count() > 0
}

/// Leaves out one keyword; whether it was there.
pub(super) fn without(schema: &mut Value, at: &str, keyword: &str) -> bool {
    let Some(Value::Object(map)) = schema.pointer_mut(at) else { return false };
    let Some(value) = map.shift_remove(keyword) else { return false };
    if keyword == "oneOf" && !map.contains_key("anyOf") {
        map.insert("anyOf".to_owned(), value);
    }
    true
}

/// A place as the schema that was given has it, where one of several became any of them.
pub(super) fn place_in(given: &Value, at: &str) -> String {
    let mut place = String::new();
    for name in at.split('/').skip(1) {
        let is_there = |name: &str| given.pointer(&format!("{place}/{name}")).is_some();
        let name = if name == "anyOf" && !is_there(name) && is_there("oneOf") { "oneOf" } else { name };
        place = format!("{place}/{name}");
    }
    place
}
