//! JSON text to a tree, within limits. A key that comes twice in an object is refused, because two readers could take
//! different values. So is a number of a schema that has more digits than the tree keeps.

use super::place::Place;
use crate::constraint::{SpecError, SpecProblem};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::{Cell, RefCell};
use std::fmt;
use trie_rules::Decimal;

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
    let numbers = (!keeps_digits(text)).then(|| Cell::new(text));
    let tree = Tree { place: Place::ROOT, refused: &refused, numbers: numbers.as_ref() };
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

/// Fields with a JSON Schema, whose numbers may be ids.
const SCHEMAS: [&str; 4] = ["json_schema", "schema", "parameters", "input_schema"];

/// Returns whether a tree keeps every digit of the numbers of a JSON text.
pub(crate) fn keeps_digits(mut text: &[u8]) -> bool {
    while let Some((number, behind)) = next_number(text) {
        if !is_kept(number) {
            return false;
        }
        text = behind;
    }
    true
}

/// Returns whether a number is one of 64 bits, or equal to the shortest numeral of its float64.
fn is_kept(number: &str) -> bool {
    if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    }
    // A float64 keeps 15 digits, and nearly all numbers have fewer.
    if number.len() <= 16 && number.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte)) {
        return true;
    }
    let shortest = number.parse::<f64>().map(|float| format!("{float:e}"));
    let decimals = (Decimal::read(number), shortest.map(|shortest| Decimal::read(&shortest)));
    matches!(decimals, (Ok(own), Ok(Ok(kept))) if own == kept)
}

/// Returns the first number of JSON text that begins outside of a string, and the text behind it.
fn next_number(text: &[u8]) -> Option<(&str, &[u8])> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => {
                at += 1;
                while *text.get(at)? != b'"' {
                    at += 1 + usize::from(text[at] == b'\\');
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let is_numeral = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let length = text[at..].iter().take_while(|byte| is_numeral(byte)).count();
                return Some((str::from_utf8(&text[at..at + length]).ok()?, &text[at + length..]));
            }
            _ => at += 1,
        }
    }
}

/// One value of the tree.
#[derive(Clone, Copy)]
struct Tree<'p, 't> {
    place: Place<'p>,
    /// Error of a value that JSON itself would allow.
    refused: &'p RefCell<Option<SpecError>>,
    /// The text from the next number on; `None` if the tree keeps all digits.
    numbers: Option<&'p Cell<&'t [u8]>>,
}

impl Tree<'_, '_> {
    /// Takes the next number of the text.
    ///
    /// # Errors
    /// One of a schema that loses digits.
    fn number<E: Error>(self, number: Number) -> Result<Value, E> {
        let next = self.numbers.and_then(|numbers| Some((numbers, next_number(numbers.get())?)));
        if let Some((numbers, (text, behind))) = next {
            numbers.set(behind);
            if !is_kept(text) && self.place.is_inside(&SCHEMAS) {
                let given = text.chars().take(60).collect();
                *self.refused.borrow_mut() = Some(SpecError::new(&self.place, SpecProblem::Digits { given }));
                return Err(E::custom("a number loses digits"));
            }
        }
        Ok(Value::Number(number))
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        if let Err(error) = SpecError::step(&Place::ROOT) {
            *self.refused.borrow_mut() = Some(error);
            return Err(D::Error::custom("given up"));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_, '_> {
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

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.number(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.number(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.number(Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?)
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
    fn numbers_of_schemas_keep_their_digits_or_are_refused() {
        let kept = ["0", "-9223372036854775808", "18446744073709551615", "0.1", "1.50", "-1e22", "12.5E-3", "1e308"];
        let lost = ["18446744073709551616", "-9223372036854775809", "0.12345678901234567890", "1e400", "1e-400"];
        for (number, is_kept) in kept.iter().map(|number| (number, true)).chain(lost.iter().map(|lost| (lost, false))) {
            assert_eq!(keeps_digits(number.as_bytes()), is_kept, "{number}");
            let text = format!(r#"{{"1 \"2": [3, "4", -5.5], "json_schema": {{"minimum": {number}}}}}"#);
            let error = parse(text.as_bytes()).err().map(|error| error.to_string());
            let refused = format!("$.json_schema.minimum: the number {number} has more digits");
            // serde itself refuses 1e400.
            let is_refused = error.as_ref().is_some_and(|error| error.starts_with(&refused) || *number == "1e400");
            assert_eq!(is_refused, !is_kept, "{error:?}");
        }
        let elsewhere = parse(br#"{"temperature": 0.70000000000000000001}"#).unwrap();
        assert_eq!(elsewhere, serde_json::json!({"temperature": 0.7}));
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
        assert_eq!(error.to_string(), "$: invalid JSON: line 2, column 3: key must be a string");
        assert!(parse(b"{} {}").is_err() && parse(b"\"\xff\"").is_err());
    }
}
