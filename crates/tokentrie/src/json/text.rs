//! JSON text to a tree, within limits. A key that comes twice in an object is refused, because two readers could take
//! different values.

use super::place::Place;
use crate::constraint::{SpecError, SpecProblem};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// The longest text of a spec.
pub const MOST_BYTES: usize = 64 << 20;

/// Maximum nesting depth of specs. JSON inside, such as a schema, may be some 120 deep.
pub const MOST_DEPTH: usize = 32;

/// The tree of a text.
pub(crate) fn parse(text: &[u8]) -> Result<Value, SpecError> {
    if text.len() > MOST_BYTES {
        let problem = SpecProblem::TooLong { bytes: text.len(), most: MOST_BYTES };
        return Err(SpecError::new(&Place::ROOT, problem));
    }
    let refused = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let tree = Tree { place: Place::ROOT, refused: &refused };
    let read = tree.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| {
        refused.take().unwrap_or_else(|| {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
            let (line, column) = (error.line(), error.column());
            SpecError::new(&Place::ROOT, SpecProblem::Json { line, column, reason })
        })
    })
}

/// One value of the tree.
#[derive(Clone, Copy)]
struct Tree<'p> {
    place: Place<'p>,
    /// Error of a value that JSON itself would allow.
    refused: &'p RefCell<Option<SpecError>>,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        if let Err(error) = SpecError::step(&Place::ROOT) {
            *self.refused.borrow_mut() = Some(error);
            return Err(D::Error::custom("given up"));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Tree { place: self.place.item(all.len()), ..self })? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let place = self.place.field(&name);
            if all.contains_key(&name) {
                *self.refused.borrow_mut() = Some(SpecError::new(&place, SpecProblem::Repeated));
                return Err(A::Error::custom("a field comes twice"));
            }
            let value = fields.next_value_seed(Tree { place, ..self })?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_is_refused_with_its_place() {
        let error = parse(br#"{"a": [1, {"b": 1, "b": 2}]}"#).unwrap_err();
        assert_eq!(error.to_string(), "$.a[1].b: the field comes twice: keep one of them");
    }

    #[test]
    fn depth_ends_in_an_error() {
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).unwrap_err().to_string().contains("recursion limit"));
    }

    #[test]
    fn a_tree_is_what_serde_makes_of_it() {
        let text = r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "\u00e9"], "b": {}}"#;
        assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        let error = parse(b"{\"a\": 1,\n  nul}").unwrap_err();
        assert_eq!(error.to_string(), "$: no JSON: line 2, column 3: key must be a string");
        assert!(parse(b"{} {}").is_err() && parse(b"\"\xff\"").is_err());
    }
}
