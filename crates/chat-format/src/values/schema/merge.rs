//! Two schemas as one that holds what both hold.

use super::is_silent;
use super::pattern::{Held, held};
use serde_json::{Map, Value, json};
use trie_rules::schema::weight;

/// Both at once. Where a keyword cannot be merged the first holds, and `conflict` is told.
pub(super) fn merged(one: Value, other: &Value, conflict: &mut impl FnMut(&str)) -> Value {
    match (one, other) {
        (Value::Bool(true), schema) => schema.clone(),
        (schema, Value::Bool(true)) => schema,
        (Value::Object(one), Value::Object(other)) => Value::Object(maps(one, other, conflict)),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        // Malformed: told where it is compiled.
        (one, Value::Object(_)) => one,
        (_, other) => other.clone(),
    }
}

/// What a merged schema takes, by [`weight`]: a copy of the second, of the first where its keys are asked for, and the
/// comparison of lists.
pub(super) fn cost(one: &Value, other: &Value) -> usize {
    let list = |schema: &Value, key: &str| schema.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let compared = ["enum", "required", "type"].map(|key| list(one, key) * list(other, key) / 8);
    let copied = match (one, other) {
        (Value::Object(one), Value::Object(other)) if lists(one) || lists(other) || closes(one) || closes(other) => {
            one.values().map(weight).sum()
        }
        _ => 0,
    };
    let union = ["anyOf", "oneOf"].map(|key| one.get(key).map_or(0, |union| weight(union) * list(other, key)));
    weight(other) + copied + compared.iter().sum::<usize>() + union.iter().sum::<usize>()
}

/// Whether it has items of their own, one after the other.
fn lists(map: &Map<String, Value>) -> bool {
    map.contains_key("prefixItems") || map.get("items").is_some_and(Value::is_array)
}

/// Whether it says something of keys that it does not name.
fn closes(map: &Map<String, Value>) -> bool {
    map.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(true))
}

fn maps(one: Map<String, Value>, other: &Map<String, Value>, conflict: &mut impl FnMut(&str)) -> Map<String, Value> {
    let listed = lists(&one) || lists(other);
    let before = (listed || closes(&one) || closes(other)).then(|| one.clone());
    let mut whole = one;
    for (key, value) in other {
        let Some(here) = whole.get_mut(key) else {
            whole.insert(key.clone(), value.clone());
            continue;
        };
        if let (true, Value::Object(all), Value::Object(more)) =
            (matches!(key.as_str(), "properties" | "patternProperties"), &mut *here, value)
        {
            for (name, schema) in more {
                match all.get_mut(name) {
                    Some(there) if there == schema => {}
                    Some(there) => *there = at_once(there.take(), schema),
                    None => drop(all.insert(name.clone(), schema.clone())),
                }
            }
            continue;
        }
        let here = &*here;
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
    if let Some(one) = before {
        if listed {
            items(&mut whole, &one, other);
        }
        // Keys of one side are extra ones of the other.
        extra(&mut whole, &one, other);
        extra(&mut whole, other, &one);
    }
    whole
}

/// Two schemas of one value, merged at once where that takes no more than to compare what they list.
fn at_once(one: Value, other: &Value) -> Value {
    let lists = |schema: &Value| match schema {
        Value::Object(map) => map.keys().all(|key| matches!(key.as_str(), "type" | "enum" | "const") || is_silent(key)),
        _ => false,
    };
    match (one, other) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (one, other)
            if lists(&one) && lists(other) && one.get("nullable").is_none() && other.get("nullable").is_none() =>
        {
            merged(one, other, &mut |_| ())
        }
        (one, other) => json!({"allOf": [one, other]}),
    }
}

/// Whether it is seen at once that no value fits a schema: what is left when branches contradict each other.
pub(super) fn is_dead(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return *schema == Value::Bool(false) };
    let empty = |key: &str| map.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
    let apart = match (map.get("const"), map.get("enum")) {
        (Some(value), Some(Value::Array(values))) => !values.contains(value),
        _ => false,
    };
    if empty("enum") || empty("type") || apart {
        return true;
    }
    let is_object = match map.get("type") {
        Some(Value::Array(names)) => names.iter().all(|name| name == "object"),
        Some(name) => name == "object",
        None => false,
    };
    let required = map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let property = |name: &str| map.get("properties").and_then(|all| all.get(name));
    is_object
        && required
            .filter_map(property)
            .any(|schema| matches!(schema, Value::Bool(_) | Value::Object(_)) && is_dead(schema))
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
                *schema = at_once(schema.take(), rest);
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
