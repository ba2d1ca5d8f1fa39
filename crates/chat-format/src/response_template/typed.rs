//! Types of arguments: texts that are numbers, truth values, lists or objects by the schema of the tool.

use super::python;
use serde_json::{Map, Value};

/// The types of the arguments of tools.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolTypes(Vec<(String, Map<String, Value>)>);

impl ToolTypes {
    /// Reads the schemas of tools, in the form of chat APIs.
    pub(super) fn new(tools: &[Value]) -> Self {
        let mut types: Vec<(String, Map<String, Value>)> = Vec::new();
        for tool in tools {
            let function = tool.get("function").unwrap_or(tool);
            let Some(name) = function["name"].as_str() else { continue };
            let properties = function["parameters"]["properties"].as_object().cloned().unwrap_or_default();
            types.retain(|(other, _)| other != name);
            types.push((name.to_owned(), properties));
        }
        Self(types)
    }

    /// Reads the arguments of a call, or of a list of calls.
    pub(super) fn read(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        if let Value::Array(list) = value {
            return list.iter_mut().for_each(|value| self.read(value));
        }
        let Some(function) = value.get_mut("function").and_then(Value::as_object_mut) else { return };
        let Some(name) = function.get("name").and_then(Value::as_str) else { return };
        let Some((_, properties)) = self.0.iter().find(|(known, _)| known == name) else { return };
        let Some(arguments) = function.get_mut("arguments").and_then(Value::as_object_mut) else { return };
        for (key, argument) in arguments {
            let types = properties.get(key).map(types_of).unwrap_or_default();
            match argument {
                _ if types.is_empty() => {}
                Value::String(text) => *argument = cast(text, &types),
                Value::Array(list) if !types.contains(&"array") => {
                    let texts = list.iter_mut().filter(|item| item.is_string());
                    texts.for_each(|item| *item = cast(item.as_str().unwrap_or_default(), &types));
                }
                _ => {}
            }
        }
    }
}

fn types_of(schema: &Value) -> Vec<&str> {
    let Some(schema) = schema.as_object() else { return Vec::new() };
    let mut types = match schema.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for key in ["anyOf", "oneOf"] {
        types.extend(schema.get(key).and_then(Value::as_array).into_iter().flatten().flat_map(types_of));
    }
    if schema.get("nullable").is_some_and(python::is_true) && !types.contains(&"null") {
        types.push("null");
    }
    types
}

/// A text as the first of these types that reads it; the text if none does.
fn cast(text: &str, types: &[&str]) -> Value {
    let word = python::strip(text);
    let found = types.iter().find_map(|&kind| match kind {
        "integer" => python::int(text).ok().map(Value::from).or_else(|| {
            let number = python::float(text).ok()?;
            as_whole_number(number)
        }),
        "number" => {
            let number = python::float(text).ok().filter(|number| number.is_finite())?;
            let as_whole = as_whole_number(number).filter(|_| !text.contains('.'));
            as_whole.or_else(|| serde_json::Number::from_f64(number).map(Value::Number))
        }
        "boolean" => match &word.to_lowercase()[..] {
            "true" | "1" => Some(Value::Bool(true)),
            "false" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        "null" => matches!(word, "null" | "None").then_some(Value::Null),
        "object" => python::json(text).ok().filter(Value::is_object),
        "array" => python::json(text).ok().filter(Value::is_array),
        _ => None,
    });
    found.unwrap_or_else(|| text.into())
}

/// A whole number as an integer.
fn as_whole_number(number: f64) -> Option<Value> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[allow(clippy::cast_possible_truncation, reason = "it is whole and within the limit")]
    let as_whole = |number: f64| Value::from(number as i64);
    (number.fract() == 0.0 && number.abs() < LIMIT).then(|| as_whole(number))
}
