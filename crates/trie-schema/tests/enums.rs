//! Enums of any size, wherever they stand.

use crate::common::{Random, allows, cut, legal, vocab, walk};
use serde_json::{Value, json};
use std::time::Instant;
use trie_core::work::{Limits, Work};
use trie_core::{AnyConstraint, Constraint, Ending};
use trie_rules::{AnyRule, MaskLimits, Read};
use trie_schema::{JsonSchema, SchemaError, SchemaOptions, Whitespace};

fn values(count: usize) -> Vec<String> {
    let odd = ["", "a\"b", "back\\slash", "line\nbreak", "é", "日本", "a", "ab", "\u{1}"];
    let words = (0..count.saturating_sub(odd.len())).map(|n| format!("{} item {n}", ["red", "green", "abc"][n % 3]));
    odd.into_iter().map(str::to_owned).chain(words).take(count).collect()
}

fn rule(schema: Value, options: SchemaOptions) -> JsonSchema {
    JsonSchema::of(schema, options).unwrap()
}

fn made(schema: Value) -> AnyConstraint {
    let rule = rule(schema, SchemaOptions::default());
    rule.compile_for(vocab().into(), MaskLimits::default()).unwrap().constraint()
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
            let constraint = made(schema);
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
        let constraint = made(schema);
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
    let constraint = made(json!({"enum": values}));
    assert!(allows(&constraint, "20993") && allows(&constraint, "\"red\"") && allows(&constraint, "null"));
    assert!(!allows(&constraint, "20994") && !allows(&constraint, "true"));
}

#[test]
fn what_is_data_stays_as_it_is() {
    let list = values(700);
    let data = json!({"type": "string", "enum": list});
    let constraint = made(json!({ "const": data }));
    assert!(allows(&constraint, &data.to_string()));
    assert!(!allows(&constraint, &json!({ "enum": list }).to_string()));
}

fn any_value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!(random.below(2000) as i64 - 1000),
        3 => json!((random.below(4000) as f64 - 2000.0) / 8.0),
        4 => json!(*random.one(&["", "a", "ab", "a\"b", "é日", "\\", "line\n", "1"])),
        5 => (0..random.below(4)).map(|_| any_value(random, depth - 1)).collect(),
        _ => {
            let names = ["a", "b", "name", "q\"", ""];
            let some: Vec<&&str> = names.iter().filter(|_| random.below(2) == 0).collect();
            Value::Object(some.into_iter().map(|&name| (name.to_owned(), any_value(random, depth - 1))).collect())
        }
    }
}

/// The naive twin: the text without blanks outside strings is that of a value.
fn is_listed(text: &str, values: &[String], blanks: &str) -> Read {
    let mut bare = String::new();
    let (mut inside, mut escaped, mut run) = (false, false, String::new());
    for char in text.chars() {
        if !inside && " \t\r\n".contains(char) {
            run.push(char);
            continue;
        }
        let allowed = run.is_empty()
            || blanks == "any"
            || blanks == "few" && (run == " " || run.strip_prefix('\r').unwrap_or(&run).starts_with('\n'))
            || blanks == "compact" && run == " " && bare.ends_with([',', ':'])
            || blanks == "flexible" && run.len() <= 8;
        // Never inside of a number or a word.
        let is_sign = |sign: char| "[]{},:".contains(sign);
        let is_gap = is_sign(char) || bare.ends_with(is_sign);
        if !allowed || !run.is_empty() && (bare.is_empty() || !is_gap) {
            return Read::Refused { at: 0 };
        }
        run.clear();
        bare.push(char);
        (inside, escaped) = match char {
            _ if escaped => (inside, false),
            '\\' if inside => (inside, true),
            '"' => (!inside, false),
            _ => (inside, false),
        };
    }
    let is_value = run.is_empty() && values.contains(&bare);
    if is_value { Read::Whole } else { Read::Begun }
}

/// Blanks between the parts of a text, some of them where none may stand.
fn with_blanks(text: &str, random: &mut Random) -> String {
    let (mut inside, mut out) = (false, String::new());
    for char in text.chars() {
        inside ^= char == '"';
        let is_part = !inside && "[]{},:".contains(char);
        if random.below(if is_part { 2 } else { 400 }) == 0 {
            out.push_str([" ", "  ", "\n ", "\t", "\r\n      \t", "\n        "][random.below(6)]);
        }
        out.push(char);
    }
    out
}

#[test]
fn a_long_enum_of_any_values_is_a_list_of_them() {
    let mut random = Random(23);
    for round in 0..10 {
        let values: Vec<Value> = (0..700).map(|_| any_value(&mut random, 3)).collect();
        // A whole number is written without a fraction.
        let whole = |value: &Value| !value.to_string().contains(".0");
        let values: Vec<Value> = values.into_iter().filter(whole).chain((0..500).map(|n| json!([n]))).collect();
        let texts: Vec<String> = values.iter().map(Value::to_string).collect();
        let pattern = Whitespace::Pattern(r" |\r?\n[ \t]{0,40}".to_owned());
        let all = [
            (Whitespace::Any, "any"),
            (Whitespace::None, "none"),
            (pattern, "few"),
            (Whitespace::Compact, "compact"),
            (Whitespace::Flexible, "flexible"),
        ];
        let (whitespace, blanks) = all[round % all.len()].clone();
        let mut options = SchemaOptions::default();
        options.whitespace = whitespace;
        let rule = rule(json!({"enum": values, "title": "values"}), options);
        let constraint = rule.compile_for(vocab().into(), MaskLimits::default()).unwrap().constraint();
        for _ in 0..400 {
            let value = random.one(&texts).clone();
            let text = match random.below(3) {
                0 => value,
                1 => with_blanks(&value, &mut random),
                _ => any_value(&mut random, 2).to_string(),
            };
            let expected = is_listed(&text, &texts, blanks) == Read::Whole;
            assert_eq!(rule.read(text.as_bytes()) == Read::Whole, expected, "{blanks}: {text:?}");
            let at = walk(&constraint, &cut(text.as_bytes(), &vocab(), &mut random));
            assert_eq!(at.is_some_and(|at| constraint.ending(&at) != Ending::No), expected, "{blanks}: {text:?}");
        }
    }
}

#[test]
fn types_beside_a_long_enum_leave_values_out() {
    let values: Vec<Value> = (0..600).flat_map(|n| [json!(n), json!([n]), json!(f64::from(n) + 0.5)]).collect();
    let made = |types: Value| rule(json!({"type": types, "enum": values}), SchemaOptions::default());
    let reads = |types: Value| ["5", "[5]", "5.5"].map(|text| made(types.clone()).read(text.as_bytes()) == Read::Whole);
    assert_eq!(reads(json!("integer")), [true, false, false]);
    assert_eq!(reads(json!("number")), [true, false, true]);
    assert_eq!(reads(json!(["array", "integer"])), [true, true, false]);
    let error = JsonSchema::of(json!({"type": "string", "enum": values}), SchemaOptions::default()).unwrap_err();
    assert!(matches!(error, SchemaError::Nothing { .. }), "{error}");
}

#[test]
fn a_hundred_thousand_objects_are_within_the_usual_limits() {
    let objects = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({"name": format!("n{n}"), "at": [n % 7, null], "x": n})).collect()
    };
    let rule = rule(json!({"enum": objects(100_000)}), SchemaOptions::default());
    assert_eq!(rule.read(br#"{"name": "n77777", "at": [0, null], "x": 77777}"#), Read::Whole);
    assert!(matches!(rule.read(br#"{"name": "n77777", "at": [0, null], "x": 77778}"#), Read::Refused { at: 45 }));
    let small = Limits::default().bytes(1 << 20);
    let error = Work::new(small).run(|| JsonSchema::of(json!({"enum": objects(20_000)}), SchemaOptions::default()));
    assert!(
        error.as_ref().is_err_and(|error| error.to_string().contains("it takes more than 1048576 bytes")),
        "{error:?}"
    );
    let nested = |count: usize| json!({"type": "array", "items": {"enum": objects(count)}});
    assert!(JsonSchema::of(nested(10_000), SchemaOptions::default()).is_ok());
    let constraint = made(nested(1500));
    let text = r#"[{"name": "n1", "at": [1, null], "x": 1}, {"name": "n1499", "at": [1, null], "x": 1499}]"#;
    let mut at = constraint.start();
    for token in cut(text.as_bytes(), &vocab(), &mut Random(3)) {
        assert!(legal(&constraint, &at).0.contains(&token), "{:?}", constraint.problem(&at));
        constraint.advance(&mut at, token).unwrap();
    }
    assert_eq!(constraint.ending(&at), Ending::Must);
}
