//! Optional fields of tools that templates read. Fields that are null are removed, and fields that a template needs are
//! added.

use serde_json::{Map, Value, json};

/// Most nested levels of schemas that are visited.
const MOST_DEPTH: usize = 64;

/// Definitions of tools without optional fields that are null.
pub(super) fn without_nulls(mut tools: Value) -> Value {
    each_function(&mut tools, |function| {
        drop_nulls(function, &["description", "parameters", "strict"]);
        if let Some(schema) = function.get_mut("parameters") {
            each_schema(schema, MOST_DEPTH, &|schema| {
                drop_nulls(schema, &["description", "title", "type", "properties", "required", "items", "enum"]);
            });
        }
    });
    tools
}

/// The same with empty values for missing optional fields. With `any_type`, schemas without a type get one: some
/// templates need a type, and others iterate over its letters as if it were a list of types.
pub(super) fn fill_missing(tools: &Value, any_type: bool) -> Value {
    let anything = if any_type { json!({"type": "any", "description": ""}) } else { json!({"description": ""}) };
    let mut tools = tools.clone();
    each_function(&mut tools, |function| {
        fill(function, "description", json!(""));
        fill(function, "parameters", json!({}));
        let Some(schema) = function.get_mut("parameters") else { return };
        if let Some(schema) = schema.as_object_mut() {
            fill(schema, "type", json!("object"));
        }
        each_schema(schema, MOST_DEPTH, &|schema| {
            fill(schema, "description", json!(""));
            let kind = schema.get("type").cloned().unwrap_or_default();
            if any_type
                && kind.is_null()
                && !["anyOf", "oneOf", "allOf", "$ref"].iter().any(|key| schema.contains_key(*key))
            {
                fill(schema, "type", json!("any"));
            }
            if kind == "object" {
                fill(schema, "properties", json!({}));
                fill(schema, "required", json!([]));
                fill(schema, "additionalProperties", anything.clone());
            }
            if kind == "array" {
                fill(schema, "items", anything.clone());
            }
        });
    });
    tools
}

fn fill(fields: &mut Map<String, Value>, key: &str, value: Value) {
    fields.entry(key).or_insert(value);
}

fn drop_nulls(fields: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        if fields.get(*key).is_some_and(Value::is_null) {
            fields.shift_remove(*key);
        }
    }
}

fn each_function(tools: &mut Value, change: impl Fn(&mut Map<String, Value>)) {
    for tool in tools.as_array_mut().into_iter().flatten() {
        let function = if tool["function"].is_object() { tool.get_mut("function") } else { Some(tool) };
        if let Some(function) = function.and_then(Value::as_object_mut) {
            change(function);
        }
    }
}

/// A schema and those inside of it.
fn each_schema(schema: &mut Value, deeper: usize, change: &impl Fn(&mut Map<String, Value>)) {
    let (Some(deeper), Some(fields)) = (deeper.checked_sub(1), schema.as_object_mut()) else { return };
    change(fields);
    for key in ["properties", "$defs", "definitions"] {
        let inner = fields.get_mut(key).and_then(Value::as_object_mut);
        inner.into_iter().flatten().for_each(|(_, schema)| each_schema(schema, deeper, change));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(key) {
            each_schema(schema, deeper, change);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let inner = fields.get_mut(key).and_then(Value::as_array_mut);
        inner.into_iter().flatten().for_each(|schema| each_schema(schema, deeper, change));
    }
}
