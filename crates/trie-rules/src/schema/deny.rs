//! A schema of what does not fit another one.

use super::front::{DEEPEST, Front, MOST_WAYS, TYPES, all_of, any_of, but, is_silent, text_weight, type_names};
use super::texts::none_of;
use serde_json::{Map, Value, json};

/// Those that say something, and of which is not said here what does not fit them.
const OTHERS: [&str; 10] = [
    "pattern",
    "format",
    "multipleOf",
    "patternProperties",
    "additionalProperties",
    "uniqueItems",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
];

impl Front<'_> {
    /// What does not fit a schema; `None` where that cannot be said.
    pub(super) fn deny(&self, schema: &Value, depth: usize) -> Option<Value> {
        self.deny_beside(schema, None, depth)
    }

    /// [`Front::deny`] of values that fit another schema: a type that all of them have need not be denied.
    pub(super) fn deny_beside(&self, schema: &Value, beside: Option<&Value>, depth: usize) -> Option<Value> {
        let beside = beside.and_then(|beside| self.found(beside, depth));
        let map = match schema {
            Value::Bool(value) => return Some(Value::Bool(!value)),
            Value::Object(map) if depth < DEEPEST && self.count() => map,
            _ => return None,
        };
        let mut either = Vec::new();
        for (key, value) in map {
            if !is_silent(key) {
                self.denied(map, (key, value), beside, depth + 1, &mut either)?;
            }
        }
        (either.len() <= MOST_WAYS).then(|| any_of(either))
    }

    /// What does not fit one keyword of a schema.
    fn denied(
        &self,
        map: &Map<String, Value>,
        (key, value): (&str, &Value),
        beside: Option<&Value>,
        depth: usize,
        either: &mut Vec<Value>,
    ) -> Option<()> {
        let of = |kind: &str, key: &str, value: Value| json!({"type": kind, key: value});
        let deny = |schema: &Value| self.deny(schema, depth);
        let mut say = |schema: Value| either.push(schema);
        match (key, value) {
            ("type", value) if beside.is_some_and(|beside| has_type(beside, value)) => {}
            ("type", value) => say(other_types(value)?),
            ("const", value) => say(self.other_values(std::slice::from_ref(value), depth)?),
            ("enum", Value::Array(values)) => say(self.other_values(values, depth)?),
            ("not", inner) => say(self.copy(inner)),
            ("minimum", bound) => say(of("number", "exclusiveMaximum", self.copy(bound))),
            ("maximum", bound) => say(of("number", "exclusiveMinimum", self.copy(bound))),
            ("exclusiveMinimum", bound) => say(of("number", "maximum", self.copy(bound))),
            ("exclusiveMaximum", bound) => say(of("number", "minimum", self.copy(bound))),
            ("minLength" | "minItems" | "minProperties" | "maxLength" | "maxItems" | "maxProperties", _) => {
                either.push(other_count(key, value.as_u64()?));
            }
            ("required", Value::Array(names)) => {
                for name in names {
                    say(json!({"type": "object", "properties": {name.as_str()?: false}}));
                }
            }
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    let beside = beside.and_then(|beside| beside.get("properties")?.get(name));
                    say(with_key(name, self.deny_beside(schema, beside, depth)?));
                }
            }
            ("propertyNames", Value::Bool(is_any)) => {
                say(if *is_any { Value::Bool(false) } else { of("object", "minProperties", json!(1)) });
            }
            ("items", schema) => {
                let first = map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                match deny(schema)? {
                    Value::Bool(true) => say(of("array", "minItems", json!(first + 1))),
                    Value::Bool(false) => {}
                    // The first that does not fit may be any of them.
                    _ if first > 0 => return None,
                    denied => say(json!({"type": "array", "contains": denied})),
                }
            }
            ("prefixItems", Value::Array(schemas)) => {
                for (nth, schema) in schemas.iter().enumerate() {
                    say(with_item(nth, deny(schema)?));
                }
            }
            ("contains", schema) => {
                if map.contains_key("minContains") || map.contains_key("maxContains") {
                    return None;
                }
                say(of("array", "items", deny(schema)?));
            }
            ("anyOf", Value::Array(branches)) => {
                say(all_of(branches.iter().map(deny).collect::<Option<Vec<_>>>()?));
            }
            ("allOf", Value::Array(branches)) => {
                for branch in branches {
                    say(deny(branch)?);
                }
            }
            ("oneOf", Value::Array(branches)) => {
                // None of them, or two.
                say(all_of(branches.iter().map(deny).collect::<Option<Vec<_>>>()?));
                for (nth, one) in branches.iter().enumerate() {
                    for other in &branches[..nth] {
                        if !self.are_apart(one, other, depth) && self.count() {
                            say(all_of([self.copy(one), self.copy(other)]));
                        }
                    }
                }
            }
            ("if", condition) => {
                let branch = |name: &str| map.get(name).unwrap_or(&Value::Bool(true));
                let [then, other] = ["then", "else"].map(|name| deny(branch(name)));
                say(all_of([self.copy(condition), then?]));
                say(all_of([deny(condition)?, other?]));
            }
            ("dependentRequired" | "dependentSchemas", Value::Object(dependencies)) => {
                for (name, then) in dependencies {
                    let then = if then.is_array() { deny(&json!({ "required": self.copy(then) })) } else { deny(then) };
                    say(all_of([json!({"type": "object", "required": [name]}), then?]));
                }
            }
            ("$ref", Value::String(reference)) => say(self.deny_beside(self.target(reference)?, beside, depth)?),
            _ if OTHERS.contains(&key) => return None,
            _ if KNOWN.contains(&key) => return None,
            _ => {}
        }
        Some(())
    }

    /// What is none of these values.
    fn other_values(&self, values: &[Value], depth: usize) -> Option<Value> {
        let has = |is: fn(&Value) -> bool| values.iter().any(is);
        let mut listed: Vec<&str> = Vec::new();
        let mut either = Vec::new();
        if has(Value::is_null) {
            listed.push("null");
        }
        if has(Value::is_boolean) {
            listed.push("boolean");
            let left = [false, true].into_iter().filter(|value| !values.contains(&Value::Bool(*value)));
            either.extend(left.map(|value| json!({ "const": value })));
        }
        if has(Value::is_number) {
            listed.push("number");
            let mut numbers: Vec<&Value> = values.iter().filter(|value| value.is_number()).collect();
            numbers
                .sort_by(|one, other| one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(std::cmp::Ordering::Equal));
            let between = std::iter::once(None).chain(numbers.iter().map(Some));
            let ends = numbers.iter().map(Some).chain(std::iter::once(None));
            for (low, high) in between.zip(ends) {
                let mut range = json!({"type": "number"});
                if let Some(low) = low {
                    range["exclusiveMinimum"] = (**low).clone();
                }
                if let Some(high) = high {
                    range["exclusiveMaximum"] = (**high).clone();
                }
                if low.map(|low| low.as_f64()) != high.map(|high| high.as_f64()) {
                    either.push(range);
                }
            }
        }
        if has(Value::is_string) {
            listed.push("string");
            let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            let pattern = none_of(&texts)?;
            if !self.takes(text_weight(&pattern)) {
                return None;
            }
            either.push(json!({"type": "string", "pattern": pattern}));
        }
        for (kind, is) in [("array", Value::is_array as fn(&Value) -> bool), ("object", Value::is_object)] {
            if has(is) {
                listed.push(kind);
                let all: Option<Vec<Value>> =
                    values.iter().filter(|value| is(value)).map(|value| self.other_parts(value, depth)).collect();
                either.push(all_of(std::iter::once(json!({ "type": kind })).chain(all?)));
            }
        }
        either.insert(0, but(&listed));
        (either.len() <= MOST_WAYS).then(|| any_of(either))
    }

    /// Arrays or objects that are not this one.
    fn other_parts(&self, value: &Value, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        let other = |value: &Value| self.other_values(std::slice::from_ref(value), depth + 1);
        let mut either = Vec::new();
        match value {
            Value::Array(items) => {
                if let Some(most) = items.len().checked_sub(1) {
                    either.push(json!({"type": "array", "maxItems": most}));
                }
                either.push(json!({"type": "array", "minItems": items.len() + 1}));
                for (nth, item) in items.iter().enumerate() {
                    either.push(with_item(nth, other(item)?));
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    either.push(json!({"type": "object", "properties": {name.as_str(): false}}));
                    either.push(with_key(name, other(member)?));
                }
                let names: Vec<&String> = members.keys().collect();
                either.push(json!({"type": "object", "required": names, "minProperties": members.len() + 1}));
            }
            _ => return None,
        }
        Some(any_of(either))
    }
}

/// Those of 2020-12 that have a value of another kind than they should.
const KNOWN: [&str; 12] = [
    "enum",
    "required",
    "properties",
    "propertyNames",
    "prefixItems",
    "anyOf",
    "allOf",
    "oneOf",
    "dependentRequired",
    "dependentSchemas",
    "$ref",
    "nullable",
];

/// What does not fit a keyword that counts.
fn other_count(key: &str, count: u64) -> Value {
    let (kind, other) = match key {
        "minLength" => ("string", "maxLength"),
        "minItems" => ("array", "maxItems"),
        "minProperties" => ("object", "maxProperties"),
        "maxLength" => ("string", "minLength"),
        "maxItems" => ("array", "minItems"),
        _ => ("object", "minProperties"),
    };
    let count = if key.starts_with("min") { count.checked_sub(1) } else { count.checked_add(1) };
    count.map_or(Value::Bool(false), |count| json!({"type": kind, other: count}))
}

fn other_types(value: &Value) -> Option<Value> {
    let names: Vec<&str> = match value {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => vec![name.as_str()?],
    };
    // Numbers that are no integers have no name.
    if names.contains(&"integer") && !names.contains(&"number") {
        return None;
    }
    Some(if TYPES.iter().all(|name| names.contains(name)) { Value::Bool(false) } else { but(&names) })
}

/// Whether all values of a schema have one of these types, as it says itself.
fn has_type(schema: &Value, types: &Value) -> bool {
    let types: Vec<&str> = type_names(types).collect();
    let has = |name: &str| types.contains(&name) || (name == "integer" && types.contains(&"number"));
    schema.get("type").is_some_and(|own| type_names(own).next().is_some() && type_names(own).all(has))
}

fn with_key(name: &str, schema: Value) -> Value {
    match schema {
        Value::Bool(false) => schema,
        schema => json!({"type": "object", "properties": {name: schema}, "required": [name]}),
    }
}

fn with_item(nth: usize, schema: Value) -> Value {
    if schema == Value::Bool(false) {
        return schema;
    }
    let mut first = vec![Value::Bool(true); nth];
    first.push(schema);
    json!({"type": "array", "prefixItems": first, "minItems": nth + 1})
}
