//! Random schemas beside a validator that was written for this: what is valid may be written in any tokens, what may be
//! written is valid, masks hold exactly the tokens that a step takes, and going back changes nothing.

use crate::common::{Random, cut, id, legal, spaced, vocab, walk};
use serde_json::{Value, json};
use trie_core::{Constraint, Ending, TokenId};
use trie_rules::{ByRule, ByRuleState, MaskLimits};
use trie_schema::{JsonSchema, Place, SchemaOptions, Whitespace};

const WORDS: [&str; 8] = ["", "a", "ab", "red", "green", "é日", "a\"b", "line\n"];
const PATTERNS: [&str; 3] = ["^[ab]+$", "^(red|green)$", "^.{2,3}$"];

fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^[ab]+$" => !text.is_empty() && text.chars().all(|c| c == 'a' || c == 'b'),
        "^(red|green)$" => text == "red" || text == "green",
        _ => (2..=3).contains(&text.chars().count()) && !text.contains('\n'),
    }
}

fn schema(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 7 } else { 10 }) {
        0 => json!({"type": "boolean"}),
        1 => json!({"type": "null"}),
        2 => {
            let low = random.below(40) as i64 - 20;
            json!({"type": "integer", "minimum": low, "maximum": low + random.below(150) as i64})
        }
        3 => json!({"enum": (0..=random.below(4)).map(|_| json!(*random.one(&WORDS))).collect::<Vec<_>>()}),
        4 => json!({"type": "string", "minLength": random.below(2), "maxLength": 1 + random.below(4)}),
        5 => json!({"type": "string", "pattern": random.one(&PATTERNS)}),
        6 => json!({"const": [*random.one(&WORDS), random.below(9), {"b": null}]}),
        7 => {
            let low = random.below(3);
            let high = low + random.below(3);
            json!({"type": "array", "items": schema(random, depth - 1), "minItems": low, "maxItems": high})
        }
        8 => json!({"anyOf": (0..2).map(|_| schema(random, depth - 1)).collect::<Vec<_>>()}),
        _ => {
            let names = ["a", "b", "name", "red"];
            let chosen: Vec<&str> = names.into_iter().filter(|_| random.below(2) == 0).collect();
            let required: Vec<&str> = chosen.iter().copied().filter(|_| random.below(2) == 0).collect();
            let mut properties = serde_json::Map::new();
            for name in chosen {
                properties.insert(name.to_owned(), schema(random, depth - 1));
            }
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        }
    }
}

fn valid(schema: &Value, value: &Value) -> bool {
    if let Some(options) = schema.get("anyOf") {
        return options.as_array().unwrap().iter().any(|option| valid(option, value));
    }
    if let Some(one) = schema.get("const") {
        return one == value;
    }
    if let Some(values) = schema.get("enum") {
        return values.as_array().unwrap().contains(value);
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_i64);
    match (schema["type"].as_str().unwrap(), value) {
        ("boolean", Value::Bool(_)) | ("null", Value::Null) => true,
        ("integer", Value::Number(n)) => {
            n.as_i64().is_some_and(|n| n >= number("minimum").unwrap() && n <= number("maximum").unwrap())
        }
        ("string", Value::String(text)) => {
            let length = text.chars().count() as i64;
            length >= number("minLength").unwrap_or(0)
                && length <= number("maxLength").unwrap_or(i64::MAX)
                && schema.get("pattern").is_none_or(|pattern| matches(pattern.as_str().unwrap(), text))
        }
        ("array", Value::Array(items)) => {
            let length = items.len() as i64;
            length >= number("minItems").unwrap()
                && length <= number("maxItems").unwrap()
                && items.iter().all(|item| valid(&schema["items"], item))
        }
        ("object", Value::Object(members)) => {
            let properties = schema["properties"].as_object().unwrap();
            let required = schema["required"].as_array().unwrap();
            members.iter().all(|(name, value)| properties.get(name).is_some_and(|schema| valid(schema, value)))
                && required.iter().all(|name| members.contains_key(name.as_str().unwrap()))
        }
        _ => false,
    }
}

/// A document, valid as often as chance has it; members in the order of the schema.
fn document(schema: &Value, random: &mut Random) -> Value {
    if random.below(25) == 0 {
        return random.one(&[json!(null), json!("ab"), json!(7), json!([]), json!({"a": 1})]).clone();
    }
    if let Some(options) = schema.get("anyOf").or_else(|| schema.get("enum")) {
        let one = random.one(options.as_array().unwrap()).clone();
        return if schema.get("enum").is_some() { one } else { document(&one, random) };
    }
    if let Some(one) = schema.get("const") {
        return one.clone();
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_i64).unwrap_or(0);
    match schema["type"].as_str().unwrap() {
        "boolean" => json!(random.below(2) == 0),
        "null" => Value::Null,
        "integer" => {
            json!(number("minimum") - 1 + random.below((number("maximum") - number("minimum") + 3) as usize) as i64)
        }
        "string" => json!(*random.one(&[WORDS.as_slice(), &["b", "aba", "x\u{1}y", "日本"]].concat())),
        "array" => {
            let length = number("minItems") as usize + random.below(3);
            json!((0..length).map(|_| document(&schema["items"], random)).collect::<Vec<_>>())
        }
        _ => {
            let required = schema["required"].as_array().unwrap();
            let mut members = serde_json::Map::new();
            for (name, schema) in schema["properties"].as_object().unwrap() {
                if random.below(3) != 0 || required.contains(&json!(name)) {
                    members.insert(name.clone(), document(schema, random));
                }
            }
            members.into()
        }
    }
}

/// As text, with blanks here and there.
fn written(value: &Value, random: &mut Random) -> String {
    let mut blank = || *random.one(&["", "", " ", "\n\t", "  "]);
    match value {
        Value::Array(items) => {
            let mut text = format!("[{}", blank());
            for (nth, item) in items.iter().enumerate() {
                let comma = if nth > 0 { format!(",{}", blank()) } else { String::new() };
                let end = blank();
                text.extend([comma, item.to_string(), end.to_owned()]);
            }
            text + "]"
        }
        Value::Object(members) => {
            let mut text = format!("{{{}", blank());
            for (nth, (name, value)) in members.iter().enumerate() {
                let comma = if nth > 0 { format!(",{}", blank()) } else { String::new() };
                text.extend([comma, json!(name).to_string(), blank().to_owned(), ":".to_owned(), blank().to_owned()]);
                text.extend([value.to_string(), blank().to_owned()]);
            }
            text + "}"
        }
        other => other.to_string(),
    }
}

fn over(schema: &Value, limits: MaskLimits) -> Option<ByRule<JsonSchema>> {
    ByRule::with_limits(JsonSchema::of(schema.clone(), spaced()).ok()?, vocab(), limits).ok()
}

/// Keeps hardly anything: whatever is asked is found anew.
fn forgetful() -> MaskLimits {
    MaskLimits::bytes(1)
}

#[test]
fn what_is_valid_may_be_written_and_what_is_not_may_not() {
    let mut random = Random(1);
    let (mut yes, mut no, mut schemas) = (0, 0, 0);
    for _ in 0..400 {
        let schema = schema(&mut random, 2);
        // One that allows nothing, such as a string of at least one character that must be empty.
        let Some(constraint) = over(&schema, MaskLimits::default()) else { continue };
        schemas += 1;
        for _ in 0..25 {
            let value = document(&schema, &mut random);
            let text = written(&value, &mut random);
            let at = walk(&constraint, &cut(text.as_bytes(), &vocab(), &mut random));
            let allowed = at.is_some_and(|at| constraint.ending(&at) != Ending::No);
            assert_eq!(allowed, valid(&schema, &value), "{schema}\n{text}");
            *if allowed { &mut yes } else { &mut no } += 1;
        }
    }
    assert!(schemas > 350 && yes > 2000 && no > 500, "{schemas} schemas, {yes} valid, {no} not");
}

#[test]
fn what_is_written_at_random_is_valid() {
    let mut random = Random(2);
    let mut ends = 0;
    for _ in 0..300 {
        let schema = schema(&mut random, 2);
        let options = |whitespace| {
            let mut options = SchemaOptions::default();
            options.whitespace = whitespace;
            options
        };
        let made = JsonSchema::of(schema.clone(), options(Whitespace::None));
        let Some(constraint) = made.ok().and_then(|made| made.over(&vocab()).ok()) else { continue };
        let (mut at, mut text) = (constraint.start(), Vec::new());
        for _ in 0..60 {
            let (tokens, ending) = legal(&constraint, &at);
            if ending != Ending::No {
                let value = serde_json::from_slice(&text).unwrap_or_else(|_| panic!("{schema}: {text:?}"));
                assert!(valid(&schema, &value), "{schema}: {value}");
                ends += 1;
            }
            if ending == Ending::Must {
                break;
            }
            assert!(!tokens.is_empty(), "a dead end: {schema}: {:?}", String::from_utf8_lossy(&text));
            let token = *random.one(&tokens);
            text.extend_from_slice(vocab().bytes(token));
            constraint.advance(&mut at, token).expect("what is legal is taken");
        }
    }
    assert!(ends > 200, "{ends}");
}

#[test]
fn masks_hold_what_a_step_takes() {
    let mut random = Random(3);
    let tokens: Vec<TokenId> = TokenId::all(vocab().n_vocab()).collect();
    let mut states = 0;
    for _ in 0..60 {
        let schema = schema(&mut random, 2);
        let Some(constraint) = over(&schema, MaskLimits::default()) else { continue };
        // Never asked for a mask: it tries each token.
        let stepping = over(&schema, MaskLimits::default()).unwrap();
        for _ in 0..3 {
            let text = written(&document(&schema, &mut random), &mut random);
            let (mut at, mut apart) = (constraint.start(), stepping.start());
            for token in cut(text.as_bytes(), &vocab(), &mut random) {
                if states > 0 {
                    let taken =
                        tokens.iter().copied().filter(|&token| stepping.advance(&mut apart.clone(), token).is_some());
                    let taken: Vec<TokenId> = taken.collect();
                    assert_eq!(legal(&constraint, &at).0, taken, "{schema}: in {text}");
                }
                states += 1;
                if constraint.advance(&mut at, token).is_none() {
                    break;
                }
                stepping.advance(&mut apart, token).expect("both take it");
            }
        }
    }
    assert!(states > 500, "{states}");
}

type At = ByRuleState<Place>;

#[test]
fn going_back_and_forth_changes_nothing() {
    let mut random = Random(4);
    for _ in 0..60 {
        let schema = schema(&mut random, 2);
        let Some(constraint) = over(&schema, MaskLimits::default()) else { continue };
        let again = over(&schema, forgetful()).unwrap();
        let mut known: Vec<(At, At, (Vec<TokenId>, Ending))> = Vec::new();
        for _ in 0..4 {
            let text = written(&document(&schema, &mut random), &mut random);
            let (mut one, mut other) = (constraint.start(), again.start());
            for token in cut(text.as_bytes(), &vocab(), &mut random) {
                known.push((one.clone(), other.clone(), legal(&constraint, &one)));
                if constraint.advance(&mut one, token).is_none() {
                    assert!(again.advance(&mut other, token).is_none());
                    break;
                }
                again.advance(&mut other, token).expect("both take it");
            }
        }
        for _ in 0..100 {
            let (_, at, expected) = random.one(&known);
            assert_eq!(&legal(&again, at), expected);
        }
        assert!(again.stats().masks <= 1);
    }
}

#[test]
fn states_are_equal_where_the_same_may_come() {
    let array = json!({"type": "array", "items": {"type": "integer"}});
    let constraint = over(&array, MaskLimits::default()).unwrap();
    let after = |text: &str| crate::common::after(&constraint, text).unwrap();
    assert_eq!(after("[12"), after("[7, 13"));
    assert_eq!(after("[1,"), after("[  2 , 3,"));
    assert_ne!(after("[12"), after("[12,"));
    let twelve = TokenId::all(vocab().n_vocab()).find(|&token| vocab().bytes(token) == b"12").unwrap();
    let one = after("[12");
    let mut other = after("[");
    constraint.advance(&mut other, twelve).unwrap();
    assert_eq!(one, other);
    let mut refused = one.clone();
    assert!(constraint.advance(&mut refused, id(usize::from(b'x'))).is_none());
    assert_eq!(one, refused, "a refusal changes nothing");
    // What must not come again is part of it.
    let unique = json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true});
    let constraint = over(&unique, MaskLimits::default()).unwrap();
    let after = |text: &str| crate::common::after(&constraint, text).unwrap();
    assert_ne!(after("[1,"), after("[2,"));
    assert_eq!(after("[1, 2,"), after("[2,1,"));
}

#[test]
fn threads_find_the_same() {
    let constraint = over(&json!({"type": "array", "items": {"type": ["integer", "string"]}}), forgetful()).unwrap();
    let expected: Vec<_> =
        (0..20).map(|n| crate::common::after(&constraint, &format!("[{n},\"a{n}\"")).unwrap()).collect();
    let expected: Vec<_> = expected.into_iter().map(|at| (legal(&constraint, &at), at)).collect();
    std::thread::scope(|scope| {
        for shift in 0..4 {
            let (constraint, expected) = (&constraint, &expected);
            scope.spawn(move || {
                for n in 0..100 {
                    let (answer, at) = &expected[(n * 7 + shift) % expected.len()];
                    assert_eq!(&legal(constraint, at), answer);
                }
            });
        }
    });
}
