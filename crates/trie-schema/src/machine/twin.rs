//! Tests of the walk with tables against a walk without tables: both must find the same tokens.

use super::{DocumentWalk, Place, prepare_vocabulary};
use crate::event::Event;
use crate::schema::{JsonSchema, Order, SchemaOptions, Whitespace};
use crate::shape::Engine;
use serde_json::{Value, json};
use std::sync::Arc;
use trie_core::TokenId;
use trie_rules::{Legal, Rule, TokenBytes, Walker};

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

const PARTS: [&str; 47] = [
    "\"",
    "\\",
    "\\n",
    "\\u00e9",
    "\\ud83d",
    "\\ude00",
    "\\\"",
    "u0061",
    "é",
    "😀",
    "a",
    "b",
    "ab",
    "name",
    "kind",
    " ",
    "  ",
    "\n",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "null",
    "true",
    "false",
    "0",
    "1",
    "12",
    "-",
    ".5",
    "e3",
    "\",\"",
    "\":",
    "\"}",
    "\"]",
    "}]",
    "],[",
    "2024-02-29",
    "@x.org",
    "Tom",
    "https://",
    "c-d",
    "_",
    "Z",
    "\u{7f}",
];

/// Every byte, and random texts of few parts.
fn tokens(random: &mut Random) -> Arc<TokenBytes> {
    let mut pieces: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    for length in 1..=4 {
        for _ in 0..120 {
            let text: Vec<u8> = (0..length).flat_map(|_| random.one(&PARTS).bytes()).collect();
            // Some begin or end inside a character.
            let cut = if random.below(9) == 0 { 1.min(text.len() - 1) } else { 0 };
            pieces.push(if random.below(2) == 0 { text[cut..].to_vec() } else { text[..text.len() - cut].to_vec() });
        }
    }
    let rows = pieces.iter().zip(0..).map(|(piece, id)| (&piece[..], TokenId::new(id).unwrap()));
    Arc::new(TokenBytes::new(pieces.len(), rows).unwrap())
}

/// Patterns that take whole kinds of characters, parts of kinds, so many of them, and some after others.
const PATTERNS: [&str; 18] = [
    "^a+b?$",
    "^[a-z_]*$",
    "a",
    "^\\S{2,5}$",
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "^[A-Za-z][a-z]*( [A-Za-z]+)*$",
    "^.{1,9}$",
    "^(..)*$",
    "^[^@]+@[^@]+\\.[a-z]{2,}$",
    "^[a-f0-9]{4}(-[a-f0-9]{2}){1,3}$",
    "^https?://",
    "^\\p{L}+$",
    "^[\\u0000-\\uffff]*$",
    "^[^\\x00-\\x1f]{0,12}$",
    "^(?!name)[a-z]+$",
    "[\"\\\\]",
    "^[é😀a]*$",
    "^([a-m]{3}){2,3}[^a]",
];

fn scalar(random: &mut Random) -> Value {
    match random.below(12) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "string", "maxLength": random.below(6)}),
        2 => json!({"type": "string", "minLength": 2, "maxLength": 2 + random.below(40)}),
        3 => {
            let mut text = json!({"type": "string", "pattern": random.one(&PATTERNS)});
            if random.below(3) == 0 {
                text["maxLength"] = json!(3 + random.below(30));
            }
            if random.below(4) == 0 {
                text["minLength"] = json!(random.below(4));
            }
            text
        }
        4 => json!({"enum": ["a", "ab", "name", 1, 12, null, [1, "a"], {"a": [true]}]}),
        5 => json!({"type": "string", "format": random.one(&["date", "email", "uuid"])}),
        6 => json!({"type": "integer", "minimum": -3, "maximum": 120}),
        7 => json!({"type": "number", "multipleOf": 0.5}),
        8 => json!({"type": ["number", "null", "boolean"]}),
        9 => json!({"not": {"enum": ["a", 1, "é"]}}),
        10 => json!(true),
        _ => json!({"const": random.one(&["a", "\n\"", "é😀"])}),
    }
}

fn schema(random: &mut Random, deep: usize) -> Value {
    if deep == 0 {
        return scalar(random);
    }
    let mut inner = || schema(random, deep - 1);
    let (one, other, third) = (inner(), inner(), inner());
    match random.below(11) {
        0 => json!({"type": "array", "items": one}),
        1 => json!({"type": "array", "items": one, "uniqueItems": true, "maxItems": 1 + random.below(9)}),
        2 => json!({"type": "array", "prefixItems": [one, other], "items": third, "minItems": random.below(3)}),
        3 => json!({"type": "array", "contains": one, "maxContains": 2, "minItems": 1}),
        4 => json!({"type": "object", "properties": {"a": one, "name": other}, "required": ["name"]}),
        5 => {
            json!({"type": "object", "properties": {"a": one, "ab": other, "é": third}, "additionalProperties": false})
        }
        6 => json!({"type": "object", "patternProperties": {"^a": one, "b$": other}, "additionalProperties": third}),
        7 => {
            json!({"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1,
            "additionalProperties": one})
        }
        8 => json!({"anyOf": [one, other]}),
        9 => {
            json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "b": one}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "a": other}, "required": ["kind"]}]})
        }
        _ => json!({"type": "object", "properties": {"a": one}, "maxProperties": 2, "dependentRequired": {"a": ["b"]}}),
    }
}

fn options(random: &mut Random) -> SchemaOptions {
    SchemaOptions {
        whitespace: random
            .one(&[
                Whitespace::Compact,
                Whitespace::Flexible,
                Whitespace::Any,
                Whitespace::None,
                Whitespace::Pattern("[ \\n]?".to_owned()),
            ])
            .clone(),
        unicode_escapes: random.below(2) == 0,
        order: *random.one(&[Order::Schema, Order::Any]),
        any_numerals: random.below(3) == 0,
        ..SchemaOptions::default()
    }
}

/// Computes the allowed tokens by a walk without tables.
fn plainly(schema: &JsonSchema, tokens: &TokenBytes, place: &Place) -> Vec<TokenId> {
    let mut found = Vec::new();
    tokens.walk(place, |place, byte| schema.engine().step(place, byte), |token| found.push(token));
    found.sort_unstable();
    found
}

fn ids(legal: &Legal, n_vocab: usize) -> Vec<TokenId> {
    TokenId::all(n_vocab).filter(|&token| legal.contains(token)).collect()
}

/// Arrays of few and of many texts that must differ, alone and inside each other.
fn unique(random: &mut Random, deep: usize) -> Value {
    let item = match random.below(8) {
        0 => json!({"type": "object", "properties": {"a": {"type": "string"}, "b": scalar(random)}, "required": ["a"]}),
        1 => json!({"anyOf": [{"type": "string", "maxLength": 2}, {"const": "name"}, {"type": "integer"}]}),
        2 => json!({"type": "string", "pattern": "^[ab]{1,2}$"}),
        3 => json!({"enum": ["a", "ab", "name", ["a"], ["a", "b"], {"a": "b"}]}),
        4 if deep > 0 => json!({"type": "array", "items": {"type": "string"}, "maxItems": 2}),
        _ if deep > 0 => unique(random, deep - 1),
        _ => json!({"type": "string", "pattern": random.one(&PATTERNS), "maxLength": 3 + random.below(30)}),
    };
    let mut array = json!({"type": "array", "items": item, "uniqueItems": true});
    for (bound, most) in [("minItems", 4), ("maxItems", 6)] {
        if random.below(3) == 0 {
            array[bound] = json!(random.below(most));
        }
    }
    match random.below(4) {
        0 => json!({"type": "object", "properties": {"a": array}, "required": ["a"]}),
        1 => json!({"type": "array", "items": array, "uniqueItems": random.below(2) == 0}),
        _ => array,
    }
}

#[test]
fn the_walk_with_tables_finds_what_the_plain_one_finds() {
    compare_walks(Random(3), 250, schema);
}

#[test]
fn items_that_must_differ_are_walked_as_without_tables() {
    compare_walks(Random(5), 250, unique);
}

fn compare_walks(mut random: Random, rounds: u32, schema: impl Fn(&mut Random, usize) -> Value) {
    let (mut made, mut compared) = (0, 0);
    let rounds = test_budget::cases(rounds) as usize;
    for round in 0..rounds {
        let tokens = tokens(&mut random);
        let (of, options) = (schema(&mut random, 1 + round % 3), options(&mut random));
        let Ok(rule) = JsonSchema::of(of.clone(), options.clone()) else { continue };
        made += 1;
        if round % 3 == 0 {
            prepare_vocabulary(&tokens);
        }
        let walk = DocumentWalk::new(&rule, &tokens);
        if round % 4 == 0 {
            // It forgets all the time.
            walk.limit(1);
        }
        for _ in 0..3 {
            let (mut place, mut text) = (rule.start(), Vec::new());
            for _ in 0..16 {
                let plain = plainly(&rule, &tokens, &place);
                let said = || format!("{of}, {options:?}: after {:?}", String::from_utf8_lossy(&text));
                let legal = walk.legal(&place, &mut vec![0; tokens.n_vocab().div_ceil(32)]);
                let found = ids(&legal, tokens.n_vocab());
                let differs = |token: &&TokenId| plain.contains(token) != found.contains(token);
                let other = TokenId::all(tokens.n_vocab()).filter(|token| differs(&token));
                let other: Vec<_> = other.map(|token| String::from_utf8_lossy(tokens.bytes(token))).collect();
                assert!(plain == found, "{}: {other:?}", said());
                let mut words = vec![0; tokens.n_vocab().div_ceil(32)];
                walk.tokens(&place, &mut words);
                assert_eq!(ids(&Legal::from_mask(&words), tokens.n_vocab()), plain, "{}", said());
                compared += 1;
                if plain.is_empty() {
                    assert!(rule.is_end(&place), "{}", said());
                    break;
                }
                // Mostly not one of thousands of letters.
                let short: Vec<_> = plain.iter().filter(|one| tokens.bytes(**one).contains(&b'"')).collect();
                let next =
                    if !short.is_empty() && random.below(3) == 0 { **random.one(&short) } else { *random.one(&plain) };
                let bytes = tokens.bytes(next);
                let stepped = bytes.iter().try_fold(place.clone(), |place, &byte| rule.engine().step(&place, byte));
                let after = rule.steps(&place, bytes);
                assert!(after.is_some() && after == stepped, "{}", said());
                assert_eq!(rule.steps(&place, bytes), after);
                text.extend_from_slice(bytes);
                place = after.unwrap();
            }
        }
    }
    assert!(2 * made > rounds && compared > 5 * made, "{made} {compared}");
}

/// Events that may come somewhere.
fn events() -> Vec<Event> {
    let texts = b"abnmekid \"\\\n\xc3\xa9".iter().map(|&byte| Event::Text(byte));
    let numbers = b"-0125.e+".iter().map(|&byte| Event::Number(byte));
    let others = [
        Event::Null,
        Event::True,
        Event::NumberEnd,
        Event::TextOpen,
        Event::TextClose,
        Event::ObjectOpen,
        Event::ArrayOpen,
        Event::Comma,
        Event::Close,
    ];
    texts.chain(numbers).chain(others).collect()
}

#[test]
fn a_byte_that_is_told_in_place_is_as_one_that_is_made_out_anew() {
    let (mut random, events) = (Random(11), events());
    let (mut compared, mut taken) = (0, 0);
    for round in 0..test_budget::cases(300) as usize {
        let (of, options) = (schema(&mut random, 1 + round % 3), options(&mut random));
        let Ok(rule) = JsonSchema::of(of.clone(), options.clone()) else { continue };
        let engine = rule.engine();
        let mut place = rule.start();
        for _ in 0..40 {
            let mut open = Vec::new();
            for &event in &events {
                let made = engine.tell(&place, event);
                // Beside a clone of it, and alone.
                let mut shared = place.clone();
                if let Some(fits) = Engine::tell_byte(&mut shared, event) {
                    assert!(fits == made.is_some(), "{of}, {options:?}: {event:?}");
                    assert!(!fits || made.as_ref() == Some(&shared), "{of}, {options:?}: {event:?}");
                    compared += 1;
                }
                let Some(next) = made else { continue };
                for _ in 0..3 {
                    let other = *random.one(&events);
                    let mut alone = engine.tell(&place, event).unwrap();
                    let made = engine.tell(&next, other);
                    if let Some(fits) = Engine::tell_byte(&mut alone, other) {
                        assert!(fits == made.is_some(), "{of}, {options:?}: {event:?}, {other:?}");
                        assert!(!fits || made == Some(alone), "{of}, {options:?}: {event:?}, {other:?}");
                        taken += usize::from(fits);
                    }
                }
                open.push(next);
            }
            if open.is_empty() {
                break;
            }
            place = random.one(&open).clone();
        }
    }
    assert!(compared > 500 && taken > 50, "{compared} {taken}");
}
