//! Two schemas as one that holds what both hold.

use serde_json::{Map, Value, json};

/// Both at once. Where a keyword cannot be merged the first holds, and `conflict` is told.
pub(super) fn merged(one: &Value, other: &Value, conflict: &mut impl FnMut(&str)) -> Value {
    match (one, other) {
        (Value::Bool(true), schema) | (schema, Value::Bool(true)) => schema.clone(),
        (Value::Object(one), Value::Object(other)) => Value::Object(maps(one, other, conflict)),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        // Malformed: told where it is compiled.
        (one, Value::Object(_)) => one.clone(),
        (_, other) => other.clone(),
    }
}

fn maps(one: &Map<String, Value>, other: &Map<String, Value>, conflict: &mut impl FnMut(&str)) -> Map<String, Value> {
    let mut whole = one.clone();
    let closed = |map: &Map<String, Value>| map.get("additionalProperties") == Some(&Value::Bool(false));
    let (one_closed, other_closed) = (closed(one), closed(other));
    for (key, value) in other {
        let Some(here) = whole.get(key) else {
            whole.insert(key.clone(), value.clone());
            continue;
        };
        if here == value {
            continue;
        }
        let both = match (key.as_str(), here, value) {
            ("properties", Value::Object(a), Value::Object(b)) => {
                let mut all = a.clone();
                for (name, schema) in b {
                    let merged = match a.get(name) {
                        Some(there) if there != schema => json!({"allOf": [there, schema]}),
                        _ => schema.clone(),
                    };
                    all.insert(name.clone(), merged);
                }
                Value::Object(all)
            }
            ("required", Value::Array(a), Value::Array(b)) => {
                Value::Array(a.iter().chain(b.iter().filter(|name| !a.contains(name))).cloned().collect())
            }
            ("type", a, b) => types(a, b),
            ("enum", Value::Array(a), Value::Array(b)) => {
                Value::Array(a.iter().filter(|value| b.contains(value)).cloned().collect())
            }
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", a, b) => larger(a, b),
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", a, b) => {
                if larger(a, b) == *a { b.clone() } else { a.clone() }
            }
            ("items" | "additionalProperties", a, b) => json!({"allOf": [a, b]}),
            ("allOf", Value::Array(a), Value::Array(b)) => Value::Array(a.iter().chain(b).cloned().collect()),
            ("anyOf" | "oneOf", a, b) => {
                // Both unions: the one goes into each branch of the other.
                let branches = b.as_array().cloned().unwrap_or_default();
                let each = |branch: Value| json!({"allOf": [branch, {key.as_str(): a}]});
                Value::Array(branches.into_iter().map(each).collect())
            }
            ("const", _, _) => {
                whole.insert("enum".to_owned(), Value::Array(Vec::new()));
                continue;
            }
            ("title" | "description" | "default" | "examples" | "$defs" | "definitions" | "$comment", _, _) => continue,
            _ => {
                conflict(key);
                continue;
            }
        };
        whole.insert(key.clone(), both);
    }
    // Keys of the other side are extra ones where this side is closed.
    for bound in
        [(one, one_closed), (other, other_closed)].into_iter().filter_map(|(map, closed)| closed.then_some(map))
    {
        let allowed = bound.get("properties").and_then(Value::as_object);
        if let Some(Value::Object(properties)) = whole.get_mut("properties") {
            properties.retain(|name, _| allowed.is_some_and(|allowed| allowed.contains_key(name)));
        }
        whole.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    // A key of one side alone is no extra key of the merged one.
    whole
}

/// The types that both have.
fn types(one: &Value, other: &Value) -> Value {
    let names = |value: &Value| match value {
        Value::Array(names) => names.clone(),
        name => vec![name.clone()],
    };
    let (a, b) = (names(one), names(other));
    let fits =
        |name: &Value, names: &[Value]| names.contains(name) || (name == "integer" && names.contains(&json!("number")));
    let mut both: Vec<Value> = a.iter().filter(|name| fits(name, &b)).cloned().collect();
    both.extend(b.iter().filter(|name| fits(name, &a) && !a.contains(name)).cloned());
    Value::Array(both)
}

fn larger(one: &Value, other: &Value) -> Value {
    let value = |number: &Value| number.as_f64().unwrap_or(f64::NEG_INFINITY);
    if value(one) >= value(other) { one.clone() } else { other.clone() }
}
