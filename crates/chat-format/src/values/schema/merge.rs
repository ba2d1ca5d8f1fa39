//! Two schemas as one that holds what both hold.

use super::is_silent;
use super::pattern::{Held, held};
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
    let lists =
        |map: &Map<String, Value>| map.contains_key("prefixItems") || map.get("items").is_some_and(Value::is_array);
    let listed = lists(one) || lists(other);
    for (key, value) in other {
        let Some(here) = whole.get(key) else {
            whole.insert(key.clone(), value.clone());
            continue;
        };
        if here == value {
            continue;
        }
        let both = match (key.as_str(), here, value) {
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
            ("properties" | "patternProperties", Value::Object(a), Value::Object(b)) => {
                let mut all = a.clone();
                for (name, schema) in b {
                    let both =
                        a.get(name).filter(|there| *there != schema).map(|there| json!({"allOf": [there, schema]}));
                    all.insert(name.clone(), both.unwrap_or_else(|| schema.clone()));
                }
                Value::Object(all)
            }
            ("items" | "prefixItems" | "additionalItems", ..) if listed => continue,
            ("items" | "additionalProperties" | "propertyNames", a, b) => json!({"allOf": [a, b]}),
            ("not", a, b) => json!({"anyOf": [a, b]}),
            ("uniqueItems", a, b) => Value::Bool(a == &Value::Bool(true) || b == &Value::Bool(true)),
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
            (silent, ..) if silent != "nullable" && is_silent(silent) => continue,
            _ => {
                conflict(key);
                continue;
            }
        };
        whole.insert(key.clone(), both);
    }
    if listed {
        items(&mut whole, one, other);
    }
    // Keys of one side are extra ones of the other.
    extra(&mut whole, one, other);
    extra(&mut whole, other, one);
    whole
}

/// Holds what only the other side names to what this one says of keys that it does not name.
fn extra(whole: &mut Map<String, Value>, this: &Map<String, Value>, other: &Map<String, Value>) {
    let Some(rest) = this.get("additionalProperties").filter(|rest| **rest != Value::Bool(true)) else { return };
    let own = |key: &str| this.get(key).and_then(Value::as_object);
    let patterns: Vec<Held> = own("patternProperties").into_iter().flat_map(Map::keys).map(|key| held(key)).collect();
    for keyword in ["properties", "patternProperties"] {
        let Some(Value::Object(theirs)) = other.get(keyword) else { continue };
        for name in theirs.keys() {
            let is_pattern = keyword == "patternProperties";
            let named = own(keyword).is_some_and(|own| own.contains_key(name));
            if named || (!is_pattern && patterns.iter().any(|pattern| pattern.finds(name))) {
                continue;
            }
            if let Some(schema) = whole.get_mut(keyword).and_then(|all| all.get_mut(name)) {
                *schema = merged(&json!({"allOf": [schema.clone()]}), &json!({"allOf": [rest]}), &mut |_| ());
            }
        }
    }
}

/// The items of both, where one of them lists the first ones.
fn items(whole: &mut Map<String, Value>, one: &Map<String, Value>, other: &Map<String, Value>) {
    let [one, other] = [one, other].map(|map| {
        let (first, rest) = match (map.get("prefixItems"), map.get("items")) {
            (Some(Value::Array(first)), rest) => (first.clone(), rest),
            // As it was written before 2020.
            (_, Some(Value::Array(first))) => (first.clone(), map.get("additionalItems")),
            (_, rest) => (Vec::new(), rest),
        };
        (first, rest.cloned().unwrap_or(Value::Bool(true)))
    });
    let both = |a: &Value, b: &Value| match (a, b) {
        (Value::Bool(true), schema) | (schema, Value::Bool(true)) => schema.clone(),
        (a, b) if a == b => a.clone(),
        (a, b) => json!({"allOf": [a, b]}),
    };
    let at = |(first, rest): &(Vec<Value>, Value), at: usize| first.get(at).unwrap_or(rest).clone();
    let most = one.0.len().max(other.0.len());
    let first: Vec<Value> = (0..most).map(|nth| both(&at(&one, nth), &at(&other, nth))).collect();
    whole.shift_remove("additionalItems");
    whole.insert("prefixItems".to_owned(), Value::Array(first));
    whole.insert("items".to_owned(), both(&one.1, &other.1));
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
