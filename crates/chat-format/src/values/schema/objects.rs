//! Objects and lists.

use super::Compiler;
use super::place::Place;
use crate::values::shapes::{Alternative, ArrayShape, ObjectShape, ShapeError, ShapeId, Shapes};
use serde_json::{Map, Value};

/// Any object.
pub(super) fn open() -> ObjectShape {
    let (keys, required, others) = (Box::default(), Box::default(), Some(Shapes::ANY));
    ObjectShape { keys, required, others, counts: ObjectShape::ANY_COUNT }
}

impl Compiler<'_> {
    pub(super) fn object(
        &mut self,
        map: &Map<String, Value>,
        place: &Place,
    ) -> Result<Option<Alternative>, ShapeError> {
        let mut keys = Vec::new();
        if let Some(properties) = map.get("properties") {
            let Value::Object(properties) = properties else { return Err(place.error("properties is an object")) };
            let (top, place) = (place.is_top(), place.key("properties"));
            for (name, schema) in properties {
                let shape = self.shape(schema, &place.key(name))?;
                if self.shapes.limits.writes_key(name, top) {
                    keys.push((Box::from(name.as_str()), shape));
                } else {
                    self.warn(&place.key(name), "properties", "it does not come: the format cannot write this key");
                }
            }
        }
        let others = self.other_keys(map, keys.is_empty(), place)?;
        let mut required = Vec::new();
        if let Some(names) = map.get("required") {
            // Some write `required: true` into a property.
            let Value::Array(names) = names else {
                self.warn(place, "required", "not held: it is no list of names");
                return Ok(Some(self.object_of(keys, Vec::new(), others)));
            };
            for name in names {
                let Some(name) = name.as_str() else { return Err(place.error("required is a list of names")) };
                if !self.shapes.limits.writes_key(name, place.is_top()) {
                    self.unwritable(place, &format!("the format cannot write the key {name:?}: rename it"));
                    return Ok(None);
                }
                required.push(name);
                if !keys.iter().any(|(key, _)| **key == *name) {
                    let Some(others) = others else {
                        self.nothing_satisfies(place);
                        return Ok(None);
                    };
                    keys.push((Box::from(name), others));
                }
            }
        }
        let counts = (count(map, "minProperties", place)?.unwrap_or(0), count(map, "maxProperties", place)?);
        let counts = (counts.0, counts.1.unwrap_or(u32::MAX));
        let may_come = keys.iter().filter(|(_, shape)| *shape != Shapes::NOTHING).count() as u32;
        let most = if others.is_some() { u32::MAX } else { may_come };
        if counts.0 > counts.1.min(most) {
            self.nothing_satisfies(place);
            return Ok(None);
        }
        let Alternative::Object(id) = self.object_of(keys, required, others) else { return Ok(None) };
        if counts == ObjectShape::ANY_COUNT {
            return Ok(Some(Alternative::Object(id)));
        }
        let object = ObjectShape { counts, ..self.shapes.objects.get(id).clone() };
        if object.required.len() as u32 > counts.1 {
            self.nothing_satisfies(place);
            return Ok(None);
        }
        Ok(Some(Alternative::Object(self.shapes.objects.add(object))))
    }

    fn object_of(
        &mut self,
        mut keys: Vec<(Box<str>, ShapeId)>,
        required: Vec<&str>,
        others: Option<ShapeId>,
    ) -> Alternative {
        keys.sort_unstable();
        let place = |name: &str| keys.binary_search_by(|(key, _)| (**key).cmp(name)).ok().map(|at| at as u32);
        let mut required: Vec<u32> = required.into_iter().filter_map(place).collect();
        required.sort_unstable();
        required.dedup();
        let counts = ObjectShape::ANY_COUNT;
        let object = ObjectShape { keys: keys.into(), required: required.into(), others, counts };
        Alternative::Object(self.shapes.objects.add(object))
    }

    /// What keys hold that are not named; `None` where there are none.
    fn other_keys(
        &mut self,
        map: &Map<String, Value>,
        no_names: bool,
        place: &Place,
    ) -> Result<Option<ShapeId>, ShapeError> {
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            let place = place.key("patternProperties");
            let instead = "keys are not held to the pattern";
            if let (true, [(pattern, schema)]) = (no_names, &patterns.iter().collect::<Vec<_>>()[..]) {
                self.warn(&place, "patternProperties", instead);
                return self.shape(schema, &place.key(pattern)).map(Some);
            }
            self.warn(&place, "patternProperties", "such keys do not come");
            return Ok(None);
        }
        match map.get("additionalProperties") {
            None if map.contains_key("properties") && !no_names => Ok(None),
            None => Ok(Some(Shapes::ANY)),
            Some(schema) => {
                let id = self.shape(schema, &place.key("additionalProperties"))?;
                Ok((id != Shapes::NOTHING).then_some(id))
            }
        }
    }

    pub(super) fn array(&mut self, map: &Map<String, Value>, place: &Place) -> Result<Option<Alternative>, ShapeError> {
        let mut first = Vec::new();
        let mut others = map.get("items");
        let listed = match (map.get("prefixItems"), others) {
            (Some(Value::Array(list)), _) => Some(("prefixItems", list)),
            // As it was written before 2020.
            (None, Some(Value::Array(list))) => {
                others = map.get("additionalItems");
                Some(("items", list))
            }
            _ => None,
        };
        if let Some((keyword, list)) = listed {
            let place = place.key(keyword);
            for (at, schema) in list.iter().enumerate() {
                first.push(self.shape(schema, &place.index(at))?);
            }
        }
        let others = match others {
            Some(schema) => Some(self.shape(schema, &place.key("items"))?).filter(|id| *id != Shapes::NOTHING),
            None => Some(Shapes::ANY),
        };
        let min = count(map, "minItems", place)?.unwrap_or(0);
        let max = count(map, "maxItems", place)?.unwrap_or(u32::MAX);
        let max = if others.is_none() { max.min(first.len() as u32) } else { max };
        if min > max {
            self.nothing_satisfies(place);
            return Ok(None);
        }
        let array = ArrayShape { first: first.into(), others, min, max };
        Ok(Some(Alternative::Array(self.shapes.arrays.add(array))))
    }
}

/// A number that counts something.
pub(super) fn count(map: &Map<String, Value>, keyword: &str, place: &Place) -> Result<Option<u32>, ShapeError> {
    let Some(value) = map.get(keyword) else { return Ok(None) };
    let count = value.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0);
    let count = count.ok_or_else(|| place.error(&format!("{keyword} is a whole number, not {value}")))?;
    Ok(Some(count.min(f64::from(u32::MAX - 1)) as u32))
}
