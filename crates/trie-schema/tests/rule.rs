//! JSON Schemas beside rules of other kinds.

use crate::common::{Random, id, legal, pieces, vocab, walk};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::work::{Limits, Work};
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{AnyRule, ByRule, ByRuleError, MaskLimits, Read, Spelling, TextsError, TokenBytes};
use trie_schema::{JsonSchema, SchemaOptions};

fn rule(schema: &str) -> JsonSchema {
    JsonSchema::new(schema, SchemaOptions::default()).unwrap()
}

/// The longest token at each place.
fn longest(tokens: &TokenBytes, text: &str) -> Option<Vec<TokenId>> {
    let (mut rest, mut found) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let begins = |&token: &TokenId| !tokens.bytes(token).is_empty() && rest.starts_with(tokens.bytes(token));
        let best = TokenId::all(tokens.n_vocab()).filter(begins).max_by_key(|&token| tokens.bytes(token).len())?;
        rest = &rest[tokens.bytes(best).len()..];
        found.push(best);
    }
    Some(found)
}

fn spelling(tokens: &Arc<TokenBytes>) -> Spelling {
    let copy = Arc::clone(tokens);
    Spelling::with_tokenizer(Arc::clone(tokens), move |text| longest(&copy, text))
}

#[test]
fn texts_are_read_byte_by_byte() {
    let array = rule(r#"{"type": "array", "items": {"type": "integer"}}"#);
    assert_eq!(array.read(b"[1, 2]"), Read::Whole);
    assert_eq!(array.read(b"[1,"), Read::Begun);
    assert_eq!(array.read(b""), Read::Begun);
    assert_eq!(array.read(b"[1, x]"), Read::Refused { at: 4 });
    assert_eq!(array.read(b"[1]]"), Read::Refused { at: 3 });
}

#[test]
fn long_texts_are_read_to_their_end() {
    let long = rule(r#"{"type": "string", "pattern": "^([a-z]+[ ,.])*$", "maxLength": 200000}"#);
    let text = format!("\"{}\"", "abc d,".repeat(8000));
    assert_eq!(long.read(text.as_bytes()), Read::Whole);
    assert_eq!(long.read(&text.as_bytes()[..text.len() - 1]), Read::Begun);
    let at = text.len() - 1;
    assert_eq!(long.read(format!("{}A\"", &text[..at]).as_bytes()), Read::Refused { at });
}

/// The naive twin of reading: single bytes, one state after the other.
fn read_byte_by_byte(bytes: &ByRule<JsonSchema>, text: &[u8]) -> Read {
    let mut at = bytes.start();
    let refused = text.iter().position(|&byte| bytes.advance(&mut at, id(byte.into())).is_none());
    match (refused, bytes.ending(&at)) {
        (Some(at), _) => Read::Refused { at },
        (None, Ending::No) => Read::Begun,
        (None, _) => Read::Whole,
    }
}

fn single_bytes() -> Arc<TokenBytes> {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    Arc::new(TokenBytes::new(256, bytes.iter().map(|byte| (&byte[..], id(byte[0].into())))).unwrap())
}

const READ: [&str; 5] = [
    r#"{"type": "array", "items": {"type": ["integer", "string", "null"], "maxLength": 90}}"#,
    r#"{"type": "array", "items": {"type": "string", "pattern": "^[a-z ]*[.]$"}}"#,
    r##"{"properties": {"a": {"$ref": "#"}, "b": {"enum": ["ab", "abc", 12]}}, "type": "object"}"##,
    r#"{"type": "array", "items": {"type": "number", "multipleOf": 0.5}, "minItems": 3}"#,
    "{}",
];

fn document(random: &mut Random, depth: usize) -> String {
    let some = |random: &mut Random| random.below(6);
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => format!("\"{}\"", ["ab", "abc", "é日", "\\u0041."][random.below(4)].repeat(random.below(30))),
        1 => format!("\"{}.\"", "ab ".repeat(random.below(40))),
        2 => format!("{}{}", random.below(40), ["", ".5", "e1", ".25"][random.below(4)]),
        3 => ["null", "true", "12"][random.below(3)].to_owned(),
        4 => {
            let parts: Vec<String> = (0..some(random)).map(|_| document(random, depth - 1)).collect();
            format!("[{}]", parts.join([",", ", ", " ,\n"][random.below(3)]))
        }
        _ => {
            let names: Vec<String> =
                ["a", "b", "c"].iter().filter(|_| random.below(2) == 0).map(|name| format!("\"{name}\"")).collect();
            let parts: Vec<String> =
                names.iter().map(|name| format!("{name}: {}", document(random, depth - 1))).collect();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

proptest! {
    #[test]
    fn a_text_is_read_in_pieces_as_byte_by_byte(seed in 1u64.., nth in 0..READ.len(), cut in 0..400usize, byte: u8) {
        let schema = JsonSchema::new(READ[nth], SchemaOptions::default()).unwrap();
        let (rule, bytes) = (schema.clone(), schema.over(&single_bytes()).unwrap());
        let mut random = Random(seed);
        for _ in 0..6 {
            let whole = document(&mut random, 3).into_bytes();
            let mut changed = whole.clone();
            let place = cut % changed.len().max(1);
            changed.splice(place..(place + cut % 2).min(whole.len()), [byte]);
            for text in [&whole[..], &whole[..cut.min(whole.len())], &changed[..]] {
                prop_assert_eq!(rule.read(text), read_byte_by_byte(&bytes, text), "{}", String::from_utf8_lossy(text));
            }
        }
    }
}

#[test]
fn a_mask_tells_of_its_own_text_only() {
    let mut random = Random(11);
    for of in READ {
        let schema = JsonSchema::new(of, SchemaOptions::default()).unwrap();
        let over = || schema.over(&single_bytes()).unwrap();
        // What was asked once is kept, so each text is the first of its kind for a few others only.
        for _ in 0..40 {
            let all = over();
            for _ in 0..6 {
                let mut texts = std::iter::repeat_with(|| document(&mut random, 2).into_bytes());
                let text = texts.find(|text| text.starts_with(b"{") || text.starts_with(b"[")).unwrap();
                let alone = over();
                let (mut one, mut other) = (all.start(), alone.start());
                for &byte in text.iter().take(1 + random.below(12)) {
                    if alone.advance(&mut other, id(byte.into())).is_none() {
                        break;
                    }
                    all.advance(&mut one, id(byte.into())).unwrap();
                }
                assert_eq!(legal(&all, &one), legal(&alone, &other), "{of}: {}", String::from_utf8_lossy(&text));
            }
        }
    }
    // Two texts of one length, both in the blank after a colon: the lexer tells no difference.
    let schema = r#"{"type": "object", "properties": {"b": {"const": 1}}}"#;
    let object = JsonSchema::new(schema, SchemaOptions::default()).unwrap().over(&single_bytes()).unwrap();
    let after = |text: &str| {
        legal(&object, &walk(&object, &text.bytes().map(|byte| id(byte.into())).collect::<Vec<_>>()).unwrap()).0
    };
    assert!(after(r#"{"c": "#).contains(&id(b'{'.into())));
    assert!(!after(r#"{"b": "#).contains(&id(b'{'.into())));
}

#[test]
fn reading_ends_where_its_time_is_over() {
    for schema in [READ[0], READ[1]] {
        let text = format!("[{}", "\"abc.\", ".repeat(4_000_000));
        let read = Work::new(Limits::NONE.seconds(0.05)).run(|| rule(schema).read(text.as_bytes()));
        assert!(matches!(read, Read::Refused { .. } | Read::Unread { .. }), "{read:?}");
    }
}

#[test]
fn a_schema_is_a_rule_like_others() {
    let yes = JsonSchema::new(r#"{"enum": ["yes", 12, [1]]}"#, crate::common::spaced()).unwrap();
    assert!(matches!(yes.texts(10), Err(TextsError::Endless | TextsError::TooMany { .. })));
    let mut options = SchemaOptions::default();
    options.whitespace = trie_schema::Whitespace::None;
    let dense = JsonSchema::new(r#"{"enum": ["yes", 12, [1]]}"#, options).unwrap();
    let texts: Vec<String> =
        dense.texts(10).unwrap().into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
    assert_eq!(texts, ["12", "[1]", "\"yes\""]);
    assert!(yes.check(1000).is_ok());
    let spelled = yes.compile_for(vocab().into(), MaskLimits::default()).unwrap();
    assert!(spelled.after_bytes(b"\"y").unwrap().is_some());
    assert_eq!(spelled.beginnings(100), Some(vec!['"', '1', '[']));
    // Tokens may cross from the text before it, and into the text behind it.
    let placed = yes.compile_between(b"a", &[b"b"], vocab().into(), MaskLimits::default()).unwrap().unwrap();
    let constraint = placed.constraint();
    let quote = TokenId::all(vocab().n_vocab()).find(|&token| vocab().bytes(token) == b"a").unwrap();
    assert!(constraint.advance(&mut constraint.start(), quote).is_some());
}

#[test]
fn a_vocabulary_that_cannot_begin_names_the_bytes() {
    let poor = Arc::new(TokenBytes::new(1, [(&b"x"[..], id(0))]).unwrap());
    let refused = rule(r#"{"type": "object"}"#).compile_for(poor.into(), MaskLimits::default()).unwrap_err();
    assert_eq!(refused, ByRuleError::Unspellable { bytes: b"{".to_vec() });
}

#[test]
fn forced_text_is_in_the_tokenizers_tokens() {
    let options = |mut options: SchemaOptions| {
        options.whitespace = trie_schema::Whitespace::None;
        options
    };
    let schema = r#"{"type": "object", "properties": {"name": {"enum": ["red", "green"]}}, "required": ["name"],
        "additionalProperties": false}"#;
    let schema = JsonSchema::new(schema, options(SchemaOptions::default())).unwrap();
    let constraint = schema.compile_for(spelling(&vocab()), MaskLimits::default()).unwrap().constraint();
    let (mut at, mut scratch, mut written) = (constraint.start(), Scratch::default(), Vec::new());
    while let Some(token) = constraint.forced_token(&at, &mut scratch) {
        constraint.advance(&mut at, token).unwrap();
        written.push(String::from_utf8(pieces()[token.index()].clone()).unwrap());
    }
    // The quote may begin a token that goes on into the value.
    assert_eq!(written, ["{\"", "name"]);
    assert_eq!(constraint.ending(&at), Ending::No);
}
