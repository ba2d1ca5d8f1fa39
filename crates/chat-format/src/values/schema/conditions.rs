//! What asks something of other keywords, said by `anyOf`: `not`, `if`, `dependentRequired`, `dependentSchemas`.

use super::{SILENT, without};
use serde_json::{Map, Value, json};

/// Dependencies in one schema that are followed; each doubles what may come.
const MOST_DEPENDENCIES: usize = 4;
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
pub(super) const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// The same without what can be said otherwise; `None` where nothing can.
pub(super) fn rewritten(map: &Map<String, Value>) -> Option<Value> {
    let all = |mut whole: Map<String, Value>, more: Vec<Value>| {
        // What nothing else evaluates is known where all is together.
        let outside: Vec<_> = UNEVALUATED.iter().filter_map(|key| whole.shift_remove_entry(*key)).collect();
        let mut parts = vec![Value::Object(whole)];
        parts.extend(more);
        let mut all = Map::from_iter([("allOf".to_owned(), Value::Array(parts))]);
        all.extend(outside);
        Some(Value::Object(all))
    };
    if let Some(none) = map.get("not") {
        let rest = without(map, "not");
        if none == &Value::Bool(false) {
            return Some(Value::Object(rest));
        }
        if let Some(values) = listed(none) {
            // Of what is listed too, the others stay.
            let boolean = map.get("type").is_some_and(|name| name == "boolean");
            let all = || boolean.then(|| vec![Value::Bool(false), Value::Bool(true)]);
            let own = rest.clone().into_iter().filter(|(key, _)| is_list(key)).collect();
            let own = listed(&Value::Object(own)).or_else(all)?;
            let left: Vec<Value> = own.into_iter().filter(|value| !values.iter().any(|no| same(no, value))).collect();
            let mut rest = without(&rest, "const");
            rest.insert("enum".to_owned(), Value::Array(left));
            return Some(Value::Object(rest));
        }
        return all(rest, vec![negated(none)?]);
    }
    if let Some(condition) = map.get("if") {
        let branch = |name: &str| map.get(name).cloned().unwrap_or(Value::Bool(true));
        let (then, other) = (branch("then"), branch("else"));
        let rest = without(&without(&without(map, "if"), "then"), "else");
        if then == Value::Bool(true) && other == Value::Bool(true) {
            return Some(Value::Object(rest));
        }
        let not = negated(condition)?;
        return all(rest, vec![json!({"anyOf": [{"allOf": [condition, then]}, {"allOf": [not, other]}]})]);
    }
    if map.contains_key("then") || map.contains_key("else") {
        return Some(Value::Object(without(&without(map, "then"), "else")));
    }
    for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
        let Some(Value::Object(dependencies)) = map.get(keyword) else { continue };
        if dependencies.len() > MOST_DEPENDENCIES {
            continue;
        }
        let either = |(name, then): (&String, &Value)| {
            let then = match then {
                Value::Array(_) => json!({ "required": then }),
                Value::String(_) => json!({ "required": [then] }),
                schema => schema.clone(),
            };
            json!({"anyOf": [{"properties": {name.as_str(): false}}, then]})
        };
        return all(without(map, keyword), dependencies.iter().map(either).collect());
    }
    None
}

fn is_list(key: &str) -> bool {
    matches!(key, "enum" | "const")
}

/// The values of a schema that only lists them.
fn listed(schema: &Value) -> Option<Vec<Value>> {
    let map = schema.as_object()?;
    let mut said = map.iter().filter(|(key, _)| !SILENT.contains(&key.as_str()));
    match (said.next()?, said.next()) {
        ((key, value), None) if key == "const" => Some(vec![value.clone()]),
        ((key, Value::Array(values)), None) if key == "enum" => Some(values.clone()),
        ((key, Value::Array(branches)), None) if key == "anyOf" => {
            branches.iter().map(listed).collect::<Option<Vec<_>>>().map(|all| all.concat())
        }
        _ => None,
    }
}

/// Whether JSON Schema takes two values for one: 1 and 1.0 are.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

/// A schema of what does not fit this one, where that can be said.
fn negated(schema: &Value) -> Option<Value> {
    let map = match schema {
        Value::Bool(value) => return Some(Value::Bool(!value)),
        Value::Object(map) => map,
        _ => return None,
    };
    let said = map.iter().filter(|(key, _)| !SILENT.contains(&key.as_str()));
    let mut either = Vec::new();
    for (key, value) in said {
        match (key.as_str(), value) {
            ("const" | "enum", _) => either.push(json!({"not": {key.as_str(): value}})),
            ("not", inner) => either.push(inner.clone()),
            ("type", value) => {
                let names = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                // Numbers that are no integers have no name.
                if names.iter().any(|name| name == "integer") {
                    return None;
                }
                let left: Vec<&str> = TYPES.into_iter().filter(|name| !names.contains(&json!(name))).collect();
                either.push(json!({ "type": left }));
            }
            ("required", Value::Array(names)) => {
                either.extend(names.iter().filter_map(Value::as_str).map(|name| json!({"properties": {name: false}})));
            }
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    either.push(json!({"properties": {name.as_str(): negated(schema)?}, "required": [name]}));
                }
            }
            ("anyOf", Value::Array(branches)) => {
                let all: Option<Vec<Value>> = branches.iter().map(negated).collect();
                either.push(json!({ "allOf": all? }));
            }
            ("allOf", Value::Array(branches)) => {
                for branch in branches {
                    either.push(negated(branch)?);
                }
            }
            _ => return None,
        }
    }
    Some(match either.len() {
        0 => Value::Bool(false),
        1 => either.remove(0),
        _ => json!({ "anyOf": either }),
    })
}
