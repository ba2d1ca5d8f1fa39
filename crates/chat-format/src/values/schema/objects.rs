//! Objects and lists.

use super::Compiler;
use super::pattern::{Held, held};
use super::place::Place;
use crate::values::shapes::{Alternative, ArrayShape, ObjectShape, ShapeError, ShapeId, Shapes};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use trie_core::work::spend;
use trie_rules::schema::{charge, weight};

/// Names that keys may have are counted up to so many.
const MOST_COUNTED: u32 = 1000;

/// Any object.
pub(super) fn open() -> ObjectShape {
    let (keys, required, others) = (Box::default(), Box::default(), Some(Shapes::ANY));
    ObjectShape { keys, required, others, names: None, counts: ObjectShape::ANY_COUNT }
}

impl Compiler<'_> {
    pub(super) fn object(
        &mut self,
        map: &Map<String, Value>,
        place: &Place,
    ) -> Result<Option<Alternative>, ShapeError> {
        let mut keys = Vec::new();
        let names = self.names(map, place)?;
        let must_come = map.get("required").and_then(Value::as_array).into_iter().flatten();
        let must_come: HashSet<&str> = must_come.filter_map(Value::as_str).collect();
        if let Some(properties) = map.get("properties") {
            let Value::Object(properties) = properties else { return Err(place.error("properties is an object")) };
            let (top, place) = (place.is_top(), place.key("properties"));
            for (name, schema) in properties {
                let schema = with_patterns(map, name, Some(schema));
                let nothing = self.nothing.clone();
                let shape =
                    if names.allows(self, name) { self.shape(&schema, &place.key(name))? } else { Shapes::NOTHING };
                if !must_come.contains(name.as_str()) {
                    self.nothing = nothing;
                }
                if self.shapes.limits.writes_key(name, top) {
                    keys.push((Box::from(name.as_str()), shape));
                } else {
                    self.warn(&place.key(name), "properties", "it does not come: the format cannot write this key");
                }
            }
        }
        let properties = map.get("properties").and_then(Value::as_object);
        let no_names = properties.is_none_or(|all| all.values().all(|schema| *schema == Value::Bool(false)));
        let (mut others, mut pattern) = self.other_keys(map, no_names, place)?;
        match names {
            Names::Any => {}
            Names::Listed(names) => {
                // Keys that are listed have names.
                for name in others.iter().flat_map(|_| &names) {
                    if !keys.iter().any(|(key, _)| **key == **name)
                        && self.shapes.limits.writes_key(name, place.is_top())
                    {
                        let shape = self.shape(&with_patterns(map, name, None), &place.key("additionalProperties"))?;
                        keys.push((name.clone(), shape));
                    }
                }
                (others, pattern) = (None, None);
            }
            Names::Of(_) if others.is_some() && pattern.is_some() => {
                self.warn(place, "propertyNames", "names beside patternProperties are not looked at");
            }
            Names::Of(id) => pattern = others.map(|_| id),
        }
        let mut required = Vec::new();
        if let Some(names) = map.get("required") {
            // Some write `required: true` into a property.
            let Value::Array(names) = names else {
                self.warn(place, "required", "it is no list of names");
                return Ok(Some(self.object_of(keys, Vec::new(), others, pattern)));
            };
            for name in names {
                let Some(name) = name.as_str() else { return Err(place.error("required is a list of names")) };
                if !self.shapes.limits.writes_key(name, place.is_top()) {
                    self.unwritable(place, &format!("the format cannot write the key {name:?}: rename it"));
                    return Ok(None);
                }
                let _ = spend(keys.len());
                required.push(name);
                if !keys.iter().any(|(key, _)| **key == *name) {
                    // It must come, so it may, whatever is said of keys without a name.
                    let schema = with_patterns(map, name, None);
                    let fits = pattern.is_none() || !map.contains_key("propertyNames") || {
                        pattern.is_some_and(|id| self.shapes.texts.get(id).is_match(name))
                    };
                    let fits = fits && !(map.contains_key("propertyNames") && others.is_none() && pattern.is_none());
                    if *schema == Value::Bool(false) || !fits {
                        self.nothing_satisfies(place);
                        return Ok(None);
                    }
                    let shape = self.shape(&schema, &place.key("additionalProperties"))?;
                    keys.push((Box::from(name), shape));
                }
            }
        }
        let counts = (count(map, "minProperties", place)?.unwrap_or(0), count(map, "maxProperties", place)?);
        let counts = (counts.0, counts.1.unwrap_or(u32::MAX));
        let may_come = keys.iter().filter(|(_, shape)| *shape != Shapes::NOTHING).count() as u32;
        let most = match others.map(|_| pattern) {
            None => may_come,
            Some(None) => u32::MAX,
            Some(Some(names)) => {
                let is_listed = |name: &[u8]| keys.iter().any(|(key, _)| key.as_bytes() == name);
                let enough = counts.0.min(MOST_COUNTED) as usize;
                let names = self.shapes.texts.get(names).count(enough, is_listed) as u32;
                if names < MOST_COUNTED { may_come + names } else { u32::MAX }
            }
        };
        if counts.0 > counts.1.min(most) {
            self.nothing_satisfies(place);
            return Ok(None);
        }
        let Alternative::Object(id) = self.object_of(keys, required, others, pattern) else { return Ok(None) };
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
        names: Option<u32>,
    ) -> Alternative {
        keys.sort_unstable();
        let place = |name: &str| keys.binary_search_by(|(key, _)| (**key).cmp(name)).ok().map(|at| at as u32);
        let mut required: Vec<u32> = required.into_iter().filter_map(place).collect();
        required.sort_unstable();
        required.dedup();
        let counts = ObjectShape::ANY_COUNT;
        let object = ObjectShape { keys: keys.into(), required: required.into(), others, names, counts };
        Alternative::Object(self.shapes.objects.add(object))
    }

    /// What keys hold that are not named, and which names they have; `None` where there are none.
    fn other_keys(&mut self, map: &Map<String, Value>, no_names: bool, place: &Place) -> Others {
        let said = map.get("additionalProperties").or_else(|| map.get("unevaluatedProperties"));
        if let Some(Value::Object(patterns)) = map.get("patternProperties")
            && !patterns.is_empty()
        {
            let place = place.key("patternProperties");
            let may: Vec<_> = patterns.iter().filter(|(_, schema)| **schema != Value::Bool(false)).collect();
            let [(pattern, schema)] = may[..] else {
                self.warn(&place, "patternProperties", "such keys do not come: there are several patterns");
                return Ok((None, None));
            };
            let text = Map::from_iter([("pattern".to_owned(), Value::String(pattern.clone()))]);
            let id = match (held(pattern), patterns.len()) {
                (Held::By(..), 1) => match self.string(&text, &place)? {
                    Some(Alternative::Text(id)) => Some(id),
                    _ => None,
                },
                _ => None,
            };
            if id.is_none() {
                self.warn(&place, "patternProperties", "such keys do not come");
                return Ok((None, None));
            }
            let shape = self.shape(schema, &place.key(pattern))?;
            return Ok((Some(shape).filter(|shape| *shape != Shapes::NOTHING), id));
        }
        let others = match said {
            None if map.contains_key("properties") && !no_names => None,
            None => Some(Shapes::ANY),
            Some(schema) => {
                let id = self.shape(schema, &place.key("additionalProperties"))?;
                (id != Shapes::NOTHING).then_some(id)
            }
        };
        Ok((others, None))
    }

    /// What `propertyNames` says.
    fn names(&mut self, map: &Map<String, Value>, place: &Place) -> Result<Names, ShapeError> {
        let Some(schema) = map.get("propertyNames").filter(|schema| **schema != Value::Bool(true)) else {
            return Ok(Names::Any);
        };
        let place = place.key("propertyNames");
        let (nothing, text) = (self.nothing.clone(), json!({"type": "string"}));
        let id = if schema == &Value::Bool(false) { Shapes::NOTHING } else { self.both(schema, &text, &place)? };
        // That there are no such names says nothing of the object.
        self.nothing = nothing;
        match self.shapes.alternatives(id)[..] {
            [] => Ok(Names::Listed(Vec::new())),
            [Alternative::Text(id)] => Ok(match &self.shapes.texts.get(id).texts {
                Some(texts) => Names::Listed(texts.to_vec()),
                None => Names::Of(id),
            }),
            _ => {
                self.warn(&place, "propertyNames", "several kinds of names");
                Ok(Names::Any)
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
        let others = match others.or_else(|| map.get("unevaluatedItems")) {
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

type Others = Result<(Option<ShapeId>, Option<u32>), ShapeError>;

/// The names that keys may have.
enum Names {
    Any,
    Listed(Vec<Box<str>>),
    /// Those of a text shape.
    Of(u32),
}

impl Names {
    fn allows(&self, compiler: &Compiler<'_>, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(names) => names.iter().any(|listed| **listed == *name),
            Self::Of(id) => compiler.shapes.texts.get(*id).is_match(name),
        }
    }
}

/// What is said of a key: by its name, by patterns, and if by none of both by `additionalProperties`.
fn with_patterns<'a>(map: &'a Map<String, Value>, name: &str, named: Option<&'a Value>) -> Cow<'a, Value> {
    let patterns = map.get("patternProperties").and_then(Value::as_object);
    let _ = spend(patterns.map_or(0, Map::len) * (1 + name.len()));
    let found =
        patterns.into_iter().flatten().filter(|(pattern, _)| held(pattern).finds(name)).map(|(_, schema)| schema);
    let mut all: Vec<&Value> = named.into_iter().chain(found).collect();
    if all.is_empty() {
        all.extend(map.get("additionalProperties").or_else(|| map.get("unevaluatedProperties")));
    }
    match all[..] {
        [] => Cow::Owned(Value::Bool(true)),
        [one] => Cow::Borrowed(one),
        _ => {
            // Where that is too much, the next schema says so.
            let _ = charge(all.iter().map(|schema| weight(schema)).sum());
            Cow::Owned(json!({ "allOf": all }))
        }
    }
}

/// A number that counts something.
pub(super) fn count(map: &Map<String, Value>, keyword: &str, place: &Place) -> Result<Option<u32>, ShapeError> {
    let Some(value) = map.get(keyword) else { return Ok(None) };
    let count = value.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0);
    let count = count.ok_or_else(|| place.error(&format!("{keyword} is a whole number, not {value}")))?;
    Ok(Some(count.min(f64::from(u32::MAX - 1)) as u32))
}
