//! The schemas inside a schema.

use serde_json::{Map, Value};

/// Keywords whose values are data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// Keywords whose values are schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Gives `each` every schema that is an object, from the whole to its parts.
pub(super) fn each_schema(schema: &mut Value, mut each: impl FnMut(&mut Map<String, Value>)) {
    // What is a schema, and what has schemas by name.
    let mut left = vec![(schema, true)];
    while let Some((value, is_schema)) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items.iter_mut().map(|item| (item, is_schema))),
            Value::Object(members) => {
                if is_schema {
                    each(members);
                }
                let inner = members.iter_mut().filter(|(name, _)| !is_schema || !DATA.contains(&name.as_str()));
                left.extend(inner.map(|(name, value)| (value, !is_schema || !NAMED.contains(&name.as_str()))));
            }
            _ => {}
        }
    }
}
