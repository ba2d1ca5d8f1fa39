//! Values that are listed.

use super::place::Place;
use super::{Compiler, is_silent};
use crate::values::shapes::numbers::NumberShape;
use crate::values::shapes::strings::TextShape;
use crate::values::shapes::{Alternative, ArrayShape, ObjectShape, ShapeError, ShapeId, Shapes};
use serde_json::{Map, Value};
use trie_rules::schema::{TYPES, contradiction};

/// The keywords that leave values out, as a message names them.
fn beside(map: &Map<String, Value>) -> String {
    let keys = map.keys().filter(|key| !matches!(key.as_str(), "enum" | "const") && !is_silent(key));
    let keys: Vec<&str> = keys.map(String::as_str).collect();
    format!("what {} beside it asks for: list values that do, or relax {}", keys.join(", "), keys.join(", "))
}

impl Compiler<'_> {
    pub(super) fn of_enum(&mut self, map: &Map<String, Value>, place: &Place) -> Result<ShapeId, ShapeError> {
        let listed = match (map.get("const"), map.get("enum")) {
            (Some(one), None) => std::slice::from_ref(one),
            (None, Some(Value::Array(all))) => &all[..],
            (Some(one), Some(Value::Array(all))) => {
                if all.contains(one) {
                    std::slice::from_ref(one)
                } else {
                    &[]
                }
            }
            _ => return Err(place.error("enum is a list of values")),
        };
        // What is said besides leaves some of them out.
        let mut rest: Map<String, Value> = map
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "enum" | "const") && !is_silent(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !rest.is_empty() {
            // What is written out need not be narrowed by what is only taken to be meant.
            rest.entry("type").or_insert_with(|| TYPES.into());
            if rest.contains_key("properties") && !rest.contains_key("unevaluatedProperties") {
                rest.entry("additionalProperties").or_insert(Value::Bool(true));
            }
        }
        let rest = if rest.is_empty() { Shapes::ANY } else { self.of_map(&rest, place)? };
        let alternatives = self.shapes.alternatives(rest);
        let all = rest == Shapes::ANY || self.shapes.is_any(rest);
        let fits: Vec<&Value> =
            listed.iter().filter(|value| all || alternatives.iter().any(|one| self.admits(*one, value))).collect();
        if fits.is_empty() {
            let problem =
                contradiction(map).unwrap_or_else(|| format!("no value of enum or const fits {}", beside(map)));
            self.unwritable(place, &problem);
        }
        let top = place.is_top();
        let (written, not): (Vec<&Value>, Vec<&Value>) = fits.into_iter().partition(|value| self.writes(value, top));
        if let [first, ..] = not[..] {
            let problem = format!("{} of its values do not come: the format cannot write {first}", not.len());
            if written.is_empty() {
                self.unwritable(place, &problem);
            } else {
                self.warn(place, "enum", &problem);
            }
        }
        Ok(self.listed(&written))
    }

    /// Whether the format can write a value.
    fn writes(&self, value: &Value, top: bool) -> bool {
        match value {
            Value::String(text) => self.shapes.limits.writes(text),
            Value::Array(items) => items.iter().all(|item| self.writes(item, false)),
            Value::Object(map) => {
                map.iter().all(|(key, value)| self.shapes.limits.writes_key(key, top) && self.writes(value, false))
            }
            _ => true,
        }
    }

    /// Whether a value may be of an alternative.
    fn admits(&self, alternative: Alternative, value: &Value) -> bool {
        match (alternative, value) {
            (Alternative::Null, Value::Null) => true,
            (Alternative::Array(id), Value::Array(items)) => {
                let array = self.shapes.arrays.get(id);
                let count = items.len() as u32;
                let fits = |(at, item)| {
                    array.first.get(at).copied().or(array.others).is_some_and(|shape| self.fits(shape, item))
                };
                (array.min..=array.max).contains(&count) && items.iter().enumerate().all(fits)
            }
            (Alternative::Object(id), Value::Object(map)) => {
                let object = self.shapes.objects.get(id);
                let shape = |key: &str| match object.keys.binary_search_by(|(name, _)| (**name).cmp(key)) {
                    Ok(at) => Some(object.keys[at].1),
                    Err(_) => {
                        object.others.filter(|_| object.names.is_none_or(|id| self.shapes.texts.get(id).is_match(key)))
                    }
                };
                (object.counts.0..=object.counts.1).contains(&(map.len() as u32))
                    && object.required.iter().all(|&key| map.contains_key(&*object.keys[key as usize].0))
                    && map.iter().all(|(key, value)| shape(key).is_some_and(|shape| self.fits(shape, value)))
            }
            (Alternative::Boolean(which), Value::Bool(value)) => which & (1 << u8::from(*value)) != 0,
            (Alternative::Number(id), Value::Number(number)) => {
                self.shapes.numbers.get(id).is_match(&number.to_string())
            }
            (Alternative::Text(id), Value::String(text)) => self.shapes.texts.get(id).is_match(text),
            _ => false,
        }
    }

    fn fits(&self, shape: ShapeId, value: &Value) -> bool {
        self.shapes.is_any(shape) || self.shapes.alternatives(shape).into_iter().any(|one| self.admits(one, value))
    }

    /// One of these values.
    fn listed(&mut self, values: &[&Value]) -> ShapeId {
        let (mut texts, mut numbers, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut booleans = 0;
        for value in values {
            match value {
                Value::Null => others.push(Alternative::Null),
                Value::Bool(value) => booleans |= 1 << u8::from(*value),
                Value::Number(number) => numbers.push(number.to_string().into()),
                Value::String(text) => texts.push(text.as_str().into()),
                Value::Array(items) => {
                    let first: Box<[ShapeId]> = items.iter().map(|item| self.listed(&[item])).collect();
                    let count = first.len() as u32;
                    let array = ArrayShape { first, others: None, min: count, max: count };
                    others.push(Alternative::Array(self.shapes.arrays.add(array)));
                }
                Value::Object(map) => {
                    let mut keys: Vec<(Box<str>, ShapeId)> =
                        map.iter().map(|(key, value)| (key.as_str().into(), self.listed(&[value]))).collect();
                    keys.sort_unstable();
                    let required = (0..keys.len() as u32).collect();
                    let object = ObjectShape {
                        keys: keys.into(),
                        required,
                        others: None,
                        names: None,
                        counts: ObjectShape::ANY_COUNT,
                    };
                    others.push(Alternative::Object(self.shapes.objects.add(object)));
                }
            }
        }
        if booleans != 0 {
            others.push(Alternative::Boolean(booleans));
        }
        if !numbers.is_empty() {
            others.push(Alternative::Number(self.shapes.numbers.add(NumberShape::of(numbers))));
        }
        if !texts.is_empty() {
            others.push(Alternative::Text(self.shapes.texts.add(TextShape::of(texts))));
        }
        self.shapes.of(others)
    }
}
