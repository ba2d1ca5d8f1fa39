//! What must hold at once, as one schema: `$ref` beside other keywords, and `allOf`.

use super::merge::{cost, is_dead, merged};
use super::place::Place;
use super::{Compiler, MOST_DEPTH, without};
use crate::values::shapes::{ShapeError, ShapeId, Shapes};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use trie_core::work::spend;
use trie_rules::schema::weight;

/// Keywords whose schemas hold of the same value; the last one lists them.
const APPLIED: [&str; 4] = ["$ref", "$dynamicRef", "$recursiveRef", "allOf"];

impl<'a> Compiler<'a> {
    /// A schema with `allOf`, or with a `$ref` beside other keywords.
    pub(super) fn together(&mut self, map: &Map<String, Value>, place: &Place) -> Result<ShapeId, ShapeError> {
        let whole = self.flat(map, place, &mut Vec::new())?;
        self.once(whole, place)
    }

    /// Held to two schemas at once; the second sees what the first evaluates.
    pub(super) fn both(&mut self, one: &Value, other: &Value, place: &Place) -> Result<ShapeId, ShapeError> {
        let one = self.inner(one, place, &mut Vec::new())?;
        let whole = self.merged(one, other, place)?;
        self.once(whole, place)
    }

    fn merged(&mut self, one: Value, other: &Value, place: &Place) -> Result<Value, ShapeError> {
        self.charge(cost(&one, other), place)?;
        Ok(merged(one, other, &mut |keyword| self.warn(place, keyword, "the first of several holds")))
    }

    /// A merged schema; where the same was merged before, that one: recursion ends so.
    fn once(&mut self, whole: Value, place: &Place) -> Result<ShapeId, ShapeError> {
        // It stays, as text.
        self.charge(weight(&whole), place)?;
        if is_dead(&whole) {
            self.nothing_satisfies(place);
            return Ok(Shapes::NOTHING);
        }
        let key = format!("{whole} {}", place.is_top());
        if let Some(&known) = self.references.get(&key) {
            return Ok(known);
        }
        let reserved = self.shapes.reserve();
        self.references.insert(key.clone(), reserved);
        let id = self.shape(&whole, &place.deeper())?;
        self.shapes.set(reserved, id);
        if id != reserved {
            self.references.insert(key, id);
        }
        Ok(id)
    }

    /// One schema without `$ref` and `allOf` at its top. `seen`: the references that were followed to here; what leads
    /// back to one of them says nothing new.
    fn flat(&mut self, map: &Map<String, Value>, place: &Place, seen: &mut Vec<String>) -> Result<Value, ShapeError> {
        if place.depth > MOST_DEPTH {
            return Err(place.error(&format!("schemas stand in each other deeper than {MOST_DEPTH}: flatten them")));
        }
        let own = || map.iter().filter(|(key, _)| !APPLIED.contains(&key.as_str()));
        self.charge(1 + own().map(|(_, value)| weight(value)).sum::<usize>(), place)?;
        let mut whole = Value::Object(own().map(|(key, value)| (key.clone(), value.clone())).collect());
        let mut same = HashSet::new();
        for keyword in &APPLIED[..3] {
            let Some(reference) = map.get(*keyword) else { continue };
            let Value::String(reference) = reference else { return Err(place.error("$ref is a string")) };
            if seen.contains(reference) {
                continue;
            }
            seen.push(reference.clone());
            let target = self.target(reference, place)?;
            let part = self.inner(target, &place.key(keyword), seen)?;
            whole = self.merged(whole, &part, place)?;
        }
        if let Some(all) = map.get("allOf") {
            let Value::Array(all) = all else { return Err(place.error("allOf is a list")) };
            for (at, one) in all.iter().enumerate() {
                // What was said already says nothing new.
                if same.insert(one) {
                    let place = place.key("allOf");
                    let part = self.inner(one, &place.index(at), seen)?;
                    whole = self.merged(whole, &part, &place)?;
                }
            }
        }
        Ok(whole)
    }

    /// The same of a schema inside another: what it leaves unevaluated is settled in it.
    fn inner(&mut self, schema: &Value, place: &Place, seen: &mut Vec<String>) -> Result<Value, ShapeError> {
        let Value::Object(map) = schema else {
            self.charge(weight(schema), place)?;
            return Ok(schema.clone());
        };
        if map.get("nullable") == Some(&Value::Bool(true)) {
            self.charge(weight(schema), place)?;
            return Ok(json!({"anyOf": [without(map, "nullable"), {"type": "null"}]}));
        }
        let Value::Object(mut flat) = self.flat(map, place, seen)? else { return Ok(Value::Bool(false)) };
        let open = ["anyOf", "oneOf", "if", "dependentSchemas", "contains"].iter().any(|key| flat.contains_key(*key));
        for (keyword, settled) in [("unevaluatedProperties", "additionalProperties"), ("unevaluatedItems", "items")] {
            let Some(rest) = flat.shift_remove(keyword) else { continue };
            if flat.contains_key(settled) {
                continue;
            }
            if open {
                self.warn(place, keyword, "other parts of the schema decide what it is about");
            } else {
                flat.insert(settled.to_owned(), rest);
            }
        }
        Ok(Value::Object(flat))
    }

    pub(super) fn target(&self, reference: &str, place: &Place) -> Result<&'a Value, ShapeError> {
        let root: &'a Value = self.root;
        let own = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let short = reference.strip_prefix(own.trim_end_matches('#')).filter(|_| !own.is_empty());
        let short = short.filter(|rest| rest.is_empty() || rest.starts_with('#')).unwrap_or(reference);
        let pointer = match short.strip_prefix('#') {
            Some(pointer) => pointer,
            None if short.is_empty() => "",
            None => {
                return by_name(root, short).ok_or_else(|| {
                    place.error(&format!("$ref {reference:?} is not of this schema: put what it names under $defs"))
                });
            }
        };
        let found = if pointer.is_empty() || pointer.starts_with('/') {
            let text = ["25", "24", "20", "22", "5E", "7C"].iter().zip(['%', '$', ' ', '"', '^', '|']);
            let plain = text
                .fold(pointer.to_owned(), |text, (code, char)| text.replace(&format!("%{code}"), &char.to_string()));
            root.pointer(&plain)
        } else {
            by_name(root, pointer)
        };
        found.ok_or_else(|| place.error(&format!("$ref {reference:?} leads nowhere: name a part of this schema")))
    }

    pub(super) fn reference(&mut self, reference: &str, place: &Place) -> Result<ShapeId, ShapeError> {
        if let Some(&known) = self.references.get(reference) {
            return Ok(known);
        }
        let target = self.target(reference, place)?;
        let reserved = self.shapes.reserve();
        self.references.insert(reference.to_owned(), reserved);
        let id = self.shape(target, &Place::named(reference.trim_start_matches('#'), place.depth + 1))?;
        self.shapes.set(reserved, id);
        if id != reserved {
            self.references.insert(reference.to_owned(), id);
        }
        Ok(id)
    }
}

/// The only schema with this name; where there are several, which is meant depends on the way to it.
fn by_name<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    let (mut left, mut found) = (vec![root], None);
    while let Some(value) = left.pop() {
        // Where that is too much, the next schema says so.
        if spend(1).is_err() {
            return None;
        }
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(map) => {
                let is = |key: &str| {
                    map.get(key).and_then(Value::as_str).is_some_and(|own| own.strip_prefix('#').unwrap_or(own) == name)
                };
                if ["$anchor", "$dynamicAnchor", "$id", "id"].into_iter().any(is) && found.replace(value).is_some() {
                    return None;
                }
                left.extend(map.iter().filter(|(key, _)| !matches!(key.as_str(), "enum" | "const")).map(|(_, v)| v));
            }
            _ => {}
        }
    }
    found
}
