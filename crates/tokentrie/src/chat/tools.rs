//! Definitions of tools, and the cache of tool lists.

use crate::constraint::{SpecError, ToolUse};
use crate::json::place::Place;
use chat_format::analysis::ToolsIn;
use chat_format::{ToolChoice, ToolError, Tools};
use lru::LruCache;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

/// Lists of tools that are known again by what they say.
const KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

static KNOWN: Mutex<Option<LruCache<String, Tools>>> = Mutex::new(None);

/// Returns the list of tools of these definitions. Equal definitions share one list, with everything that was compiled
/// for it.
///
/// # Errors
/// As [`Tools::new`].
pub fn known_tools(definitions: &Value) -> Result<Tools, ToolError> {
    let key = definitions.to_string();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(|| LruCache::new(KEPT));
    if let Some(tools) = known.get(&key) {
        return Ok(tools.clone());
    }
    let tools = Tools::new(definitions.as_array().map_or(&[], Vec::as_slice))?;
    known.put(key, tools.clone());
    Ok(tools)
}

/// Clears the cache of tool lists.
pub fn forget_tools() {
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Returns a definition with its fields under its type: a bare function is wrapped in `{"type": "function", "function":
/// ...}`, a bare custom tool in `{"type": "custom", "custom": ...}`.
#[must_use]
pub fn wrapped_tool(mut definition: Value) -> Value {
    let is_wrapped = ["function", "custom"].iter().any(|kind| definition.get(kind).is_some_and(Value::is_object));
    if is_wrapped || definition.get("name").is_none() {
        return definition;
    }
    let has_schema = ["parameters", "input_schema"].iter().any(|key| definition.get(key).is_some());
    let kind = match definition.get("type").map(|kind| kind.as_str()) {
        Some(Some("custom")) if !has_schema => "custom",
        None | Some(Some("function" | "custom")) => "function",
        // No tool has this type.
        Some(_) => return definition,
    };
    if let Some(fields) = definition.as_object_mut() {
        fields.shift_remove("type");
    }
    json!({"type": kind, kind: definition})
}

/// Returns the choice of `tool_choice` as JSON: `"auto"`, `"none"`, `"required"`, the name of a tool, or an object as
/// chat APIs write it.
///
/// # Errors
/// [`SpecError`] at `$.tool_choice`: another value, or a tool that is not one of these.
pub fn tool_choice(given: &Value, tools: &Tools) -> Result<ToolChoice, SpecError> {
    ToolUse::from_value(given)?.to_choice(tools, &Place::ROOT.field("tool_choice"))
}

/// Returns the place in the prompt that this name stands for; `None` is `auto`: the template, or the system message if
/// the template cannot.
///
/// # Errors
/// A sentence that lists the valid names.
pub fn tools_in(word: &str) -> Result<Option<ToolsIn>, String> {
    const AUTO: &str = "auto";
    let known = ToolsIn::ALL.into_iter().find(|place| place.name() == word);
    if known.is_none() && word != AUTO {
        let names: Vec<String> = ToolsIn::ALL.map(|place| format!("{:?}", place.name())).into();
        return Err(format!("invalid tools_in: expected {AUTO:?}, {}, got {word:?}", names.join(", ")));
    }
    Ok(known)
}
