//! Schemas that no value fits both of.

use super::front::{DEEPEST, Front, SCHEMA, TYPES, all_of, same, type_names};
use serde_json::{Map, Value};

impl Front<'_> {
    /// The branches of `oneOf`, each without what fits another; `None` where that cannot be said.
    pub(super) fn one_of(&self, branches: &[Value]) -> Option<Vec<Value>> {
        let mut apart = Vec::new();
        for (nth, branch) in branches.iter().enumerate() {
            let mut all = vec![self.copy(branch)];
            for (other, schema) in branches.iter().enumerate() {
                if other != nth && !self.are_apart(branch, schema, 0) {
                    all.push(self.deny_beside(schema, Some(branch), 0)?);
                }
            }
            apart.push(all_of(all));
        }
        Some(apart)
    }

    /// Whether it is certain that no value fits two schemas.
    pub(super) fn are_apart(&self, one: &Value, other: &Value, depth: usize) -> bool {
        let (Some(first), Some(second)) = (self.found(one, depth), self.found(other, depth)) else { return false };
        let (one, other) = match (first, second) {
            (Value::Bool(false), _) | (_, Value::Bool(false)) => return true,
            (Value::Object(one), Value::Object(other)) if depth < DEEPEST && self.turns(2 * SCHEMA) => (one, other),
            _ => return false,
        };
        let branches = |this: &Map<String, Value>, that: &Value| {
            let each = |key: &str| this.get(key).and_then(Value::as_array).into_iter().flatten();
            let apart = |branch: &Value| self.are_apart(branch, that, depth + 1);
            let union = |key: &str| each(key).next().is_some() && each(key).all(apart);
            union("anyOf") || union("oneOf") || each("allOf").any(apart)
        };
        let (types, others) = (types(one), types(other));
        if types.iter().all(|name| !others.contains(name)) || branches(one, second) || branches(other, first) {
            return true;
        }
        if let (Some(values), Some(others)) = (values(one), values(other)) {
            return self.turns(values.len() * others.len())
                && values.iter().all(|value| !others.iter().any(|other| same(value, other)));
        }
        types == ["object"]
            && others == ["object"]
            && (self.asks_for_other(one, other, depth) || self.asks_for_other(other, one, depth))
    }

    /// Whether an object must have a key whose value the other refuses.
    fn asks_for_other(&self, one: &Map<String, Value>, other: &Map<String, Value>, depth: usize) -> bool {
        let required = one.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let closed = other.get("additionalProperties") == Some(&Value::Bool(false));
        let closed = closed && !other.contains_key("patternProperties");
        required.into_iter().any(|name| match property(other, name) {
            None => closed,
            Some(schema) => self.are_apart(property(one, name).unwrap_or(&Value::Bool(true)), schema, depth + 1),
        })
    }

    /// A schema, or the one that it refers to.
    pub(super) fn found<'b>(&'b self, schema: &'b Value, depth: usize) -> Option<&'b Value> {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(to) if depth < DEEPEST => self.found(self.target(to)?, depth + 1),
            _ => Some(schema),
        }
    }
}

fn property<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    map.get("properties").and_then(|all| all.get(name))
}

/// The types that values of a schema have, as far as it says at its top.
fn types(map: &Map<String, Value>) -> Vec<&'static str> {
    let mut all = TYPES.to_vec();
    if let Some(said) = map.get("type") {
        all.retain(|name| type_names(said).any(|own| own == *name || (own == "integer" && *name == "number")));
    }
    if let Some(values) = values(map) {
        all.retain(|name| values.iter().any(|value| kind(value) == *name));
    }
    all
}

fn values(map: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (map.get("const"), map.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
