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
    let Some(Value::Object(map)) = schema.pointer_mut(at) else { return false };
    let before = map.len();
    for keyword in keywords {
        let value = map.shift_remove(keyword);
        if keyword == "oneOf"
            && !map.contains_key("anyOf")
            && let Some(branches) = value
        {
            map.insert("anyOf".to_owned(), branches);
            return true;
        }
    }
    map.len() < before
}
