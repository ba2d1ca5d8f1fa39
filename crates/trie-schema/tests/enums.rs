//! Enums of any size, wherever they stand.

use crate::common::{Random, allows, cut, legal, vocab, walk};
use serde_json::{Value, json};
use std::time::Instant;
use trie_core::{Constraint, Ending};
use trie_schema::{JsonSchema, SchemaOptions};

fn values(count: usize) -> Vec<String> {
    let odd = ["", "a\"b", "back\\slash", "line\nbreak", "é", "日本", "a", "ab", "\u{1}"];
    let words = (0..count.saturating_sub(odd.len())).map(|n| format!("{} item {n}", ["red", "green", "abc"][n % 3]));
    odd.into_iter().map(str::to_owned).chain(words).take(count).collect()
}

/// A schema, and the text around a value of its enum.
type Place = (Value, fn(&str) -> String);

fn places(values: &Value) -> Vec<Place> {
    let one = json!({"enum": values});
    let typed = json!({"type": "string", "enum": values});
    vec![
        (one.clone(), |text| text.to_owned()),
        (typed.clone(), |text| text.to_owned()),
        (
            json!({"type": "object", "properties": {"a": typed}, "required": ["a"], "additionalProperties": false}),
            |text| format!("{{\"a\": {text}}}"),
        ),
        (json!({"type": "array", "items": one}), |text| format!("[{text},{text}]")),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"anyOf": [typed, {"type": "null"}]}}]}),
            |text| format!("[null, {text}]"),
        ),
        (json!({"$defs": {"e": typed}, "type": "array", "items": {"$ref": "#/$defs/e"}}), |text| format!("[{text}]")),
    ]
}

#[test]
fn every_value_may_come_in_any_tokens_and_nothing_else() {
    let mut random = Random(11);
    for count in [9, 600, 2500, 12_000] {
        let values = values(count);
        for (schema, text) in places(&json!(values)) {
            let schema = JsonSchema::of(schema, SchemaOptions::default()).unwrap();
            let constraint = schema.over(&vocab()).unwrap();
            for _ in 0..60 {
                let value = random.one(&values);
                let text = text(&json!(value).to_string());
                let at = walk(&constraint, &cut(text.as_bytes(), &vocab(), &mut random));
                let at = at.unwrap_or_else(|| panic!("{text} is refused"));
                assert_ne!(constraint.ending(&at), Ending::No, "{text}");
            }
            for value in ["red item", "red item 0x", "a\\", "abx", "zzz", "red item 99999"] {
                assert!(!allows(&constraint, &text(&json!(value).to_string())), "{value}");
            }
        }
    }
}

#[test]
fn a_hundred_thousand_values_compile_and_walk() {
    let values = values(100_000);
    for (schema, text) in places(&json!(values)) {
        let begin = Instant::now();
        let constraint = JsonSchema::of(schema, SchemaOptions::default()).unwrap().over(&vocab()).unwrap();
        let compiled = begin.elapsed();
        let text = text(&json!(values[77_777]).to_string());
        let mut random = Random(5);
        let mut at = constraint.start();
        let mut most = std::time::Duration::ZERO;
        for token in cut(text.as_bytes(), &vocab(), &mut random) {
            let begin = Instant::now();
            let (tokens, _) = legal(&constraint, &at);
            most = most.max(begin.elapsed());
            assert!(tokens.contains(&token), "{:?}", constraint.problem(&at));
            constraint.advance(&mut at, token).unwrap();
        }
        assert_ne!(constraint.ending(&at), Ending::No);
        println!("compiled in {compiled:?}, slowest mask {most:?}");
    }
}

#[test]
fn enums_of_numbers_too() {
    let values: Vec<Value> = (0..3000).map(|n| json!(n * 7)).chain([json!("red"), json!(null)]).collect();
    let constraint = JsonSchema::of(json!({"enum": values}), SchemaOptions::default()).unwrap().over(&vocab()).unwrap();
    assert!(allows(&constraint, "20993") && allows(&constraint, "\"red\"") && allows(&constraint, "null"));
    assert!(!allows(&constraint, "20994") && !allows(&constraint, "true"));
}

#[test]
fn what_is_data_stays_as_it_is() {
    let list = values(700);
    let data = json!({"type": "string", "enum": list});
    let constraint =
        JsonSchema::of(json!({ "const": data }), SchemaOptions::default()).unwrap().over(&vocab()).unwrap();
    assert!(allows(&constraint, &data.to_string()));
    assert!(!allows(&constraint, &json!({ "enum": list }).to_string()));
}
