//! Leaves: schemas of one scalar type without subschemas. Many properties share them, so equal leaves are read once.

use super::Source;
use crate::json::Json;
use std::fmt::Write;
use trie_rules::TextFormat;

/// Keywords that say nothing of values.
const SILENT: [&str; 8] =
    ["title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"];
const BOUNDS: [&str; 7] =
    ["minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const SCALARS: [&str; 5] = ["string", "integer", "number", "boolean", "null"];

/// Returns a leaf as a text: leaves with the same text allow the same values, and nothing is told of the place of one.
pub(super) fn text(source: &Source<'_>) -> Option<String> {
    let mut text = String::new();
    let mut is_typed = false;
    for (keyword, value) in source.json.as_object()? {
        let said: &str = match (&**keyword, value) {
            (silent, _) if SILENT.contains(&silent) => continue,
            ("type", Json::String(one)) if SCALARS.contains(&&**one) => {
                is_typed = true;
                one
            }
            ("format", Json::String(one)) if TextFormat::names().contains(&&**one) => one,
            ("nullable", Json::Bool(true)) => "true",
            (bound, Json::Number(number)) if BOUNDS.contains(&bound) => number,
            _ => return None,
        };
        text.extend([keyword, ":", said, ";"]);
    }
    write!(text, "{:?}{:?}{}", source.draft, source.role, source.is_top).ok()?;
    is_typed.then_some(text)
}
