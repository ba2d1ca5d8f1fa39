//! Words of older drafts, in those of 2020-12.

use super::anchors::{Anchors, DATA};
use super::front::NAMED;
use serde_json::{Map, Value, json};

/// Says nothing of values, and may stop who reads on.
const SILENT: [&str; 7] =
    ["$schema", "$vocabulary", "$recursiveAnchor", "contentSchema", "deprecated", "discriminator", "example"];
pub(super) const COUNTS: [&str; 8] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"];

/// Whether a schema is of a draft in which nothing stands beside `$ref`.
pub(super) fn is_old(schema: &Value) -> bool {
    let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| draft.contains(old))
}

/// What is asked of the whole schema, where a part is read.
pub(super) struct Modern<'a> {
    pub(super) anchors: Anchors<'a>,
    pub(super) old: bool,
    pub(super) has_ids: bool,
}

impl Modern<'_> {
    /// All of a schema.
    pub(super) fn whole(&self, schema: Value) -> Value {
        match schema {
            Value::Object(map) => {
                let inside = |(key, value): (String, Value)| {
                    let value = match value {
                        Value::Object(named) if NAMED.contains(&key.as_str()) || key == "dependentSchemas" => {
                            Value::Object(named.into_iter().map(|(name, schema)| (name, self.whole(schema))).collect())
                        }
                        value if DATA.contains(&key.as_str()) => value,
                        value => self.whole(value),
                    };
                    (key, value)
                };
                Value::Object(self.modern(map).into_iter().map(inside).collect())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.whole(item)).collect()),
            other => other,
        }
    }

    fn modern(&self, mut map: Map<String, Value>) -> Map<String, Value> {
        for keyword in SILENT {
            map.shift_remove(keyword);
        }
        if self.old && map.contains_key("$ref") {
            let stay = ["$ref", "$defs", "definitions", "$id", "id"];
            map.retain(|key, _| stay.contains(&key.as_str()));
        }
        if self.old
            && let Some(Value::String(name)) = map.shift_remove("id")
        {
            map.insert("$id".to_owned(), Value::String(name));
        }
        if let Some(name) = map.get("$id").and_then(Value::as_str).and_then(|name| name.strip_prefix('#')) {
            let name = name.to_owned();
            map.shift_remove("$id");
            if !name.is_empty() {
                map.insert("$anchor".to_owned(), Value::String(name));
            }
        }
        self.references(&mut map);
        if map.get("items").is_some_and(Value::is_array) {
            let rest = map.shift_remove("additionalItems");
            if let Some(first) = map.shift_remove("items") {
                map.insert("prefixItems".to_owned(), first);
            }
            map.extend(rest.map(|rest| ("items".to_owned(), rest)));
        }
        map.shift_remove("additionalItems");
        if let Some(Value::Object(all)) = map.shift_remove("dependencies") {
            for (name, then) in all {
                let (keyword, then) = match then {
                    Value::Array(_) => ("dependentRequired", then),
                    Value::String(_) => ("dependentRequired", json!([then])),
                    _ => ("dependentSchemas", then),
                };
                if let Value::Object(known) = map.entry(keyword).or_insert_with(|| json!({})) {
                    known.insert(name, then);
                }
            }
        }
        for (strict, plain) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            if let Some(&Value::Bool(is_strict)) = map.get(strict) {
                map.shift_remove(strict);
                if is_strict && let Some(bound) = map.shift_remove(plain) {
                    map.insert(strict.to_owned(), bound);
                }
            }
        }
        for keyword in COUNTS {
            if let Some(count) = map.get_mut(keyword)
                && count.as_u64().is_none()
                && let Some(whole) = count.as_f64().filter(|whole| *whole >= 0.0 && whole.fract() == 0.0)
            {
                *count = json!(whole.min(1e15) as u64);
            }
        }
        let useless: [(&str, &[&str]); 2] = [("if", &["then", "else"]), ("contains", &["minContains", "maxContains"])];
        for (keyword, beside) in useless {
            if !map.contains_key(keyword) {
                map.retain(|key, _| !beside.contains(&key.as_str()));
            }
        }
        if map.get("uniqueItems") == Some(&Value::Bool(false)) {
            map.shift_remove("uniqueItems");
        }
        map
    }

    /// References that depend on the way to them, where they do not: there is one place to lead to.
    fn references(&self, map: &mut Map<String, Value>) {
        if let Some(Value::String(to)) = map.get("$dynamicRef") {
            let (_, name) = to.split_once('#').unwrap_or((to, ""));
            if !map.contains_key("$ref") && (name.starts_with('/') || name.is_empty() || self.anchors.count(name) == 1)
            {
                rename(map, "$dynamicRef", "$ref");
            }
        }
        if let Some(Value::String(to)) = map.get("$recursiveRef")
            && to == "#"
            && !map.contains_key("$ref")
            && !self.has_ids
        {
            rename(map, "$recursiveRef", "$ref");
        }
        if let Some(Value::String(name)) = map.get("$dynamicAnchor") {
            match map.get("$anchor") {
                None if self.anchors.count(name) > 0 => rename(map, "$dynamicAnchor", "$anchor"),
                _ => drop(map.shift_remove("$dynamicAnchor")),
            }
        }
    }
}

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.shift_remove(from) {
        map.insert(to.to_owned(), value);
    }
}
