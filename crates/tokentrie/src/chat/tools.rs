//! Definitions of tools, as they are given and as they are known again.

use chat_format::analysis::ToolsIn;
use chat_format::{ToolError, Tools};
use lru::LruCache;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

/// Lists of tools that are known again by what they say.
const KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

static KNOWN: Mutex<Option<LruCache<String, Tools>>> = Mutex::new(None);

/// The same list of tools for the same definitions, so that what was worked out for them is found again.
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

/// Forgets the lists of tools that were known.
pub fn forget_tools() {
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// A definition as templates expect it: a bare function in the object around it.
#[must_use]
pub fn wrapped_tool(definition: Value) -> Value {
    let is_wrapped = definition.get("function").is_some_and(Value::is_object);
    let is_named = definition.get("name").is_some();
    if is_wrapped || !is_named { definition } else { json!({"type": "function", "function": definition}) }
}

/// Returns the place of the tools in the prompt with this name.
///
/// # Errors
/// What it may be, as a sentence.
pub fn tools_in(word: &str) -> Result<ToolsIn, String> {
    ToolsIn::ALL.into_iter().find(|place| place.name() == word).ok_or_else(|| {
        let names = ToolsIn::ALL.map(|place| format!("{:?}", place.name())).join(", ");
        format!("tools_in is {word:?}: it may be {names}")
    })
}
