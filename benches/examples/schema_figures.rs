//! What schemas cost over a vocabulary of `TOKENTRIE_VOCAB_DIR`: to compile, for a mask that nobody asked for before,
//! for one that was asked for, and to accept a token; beside llguidance asked without this crate, in the same run.

#[path = "../../crates/trie-rules/tests/common/vocab.rs"]
#[allow(unreachable_pub)]
mod vocab;

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use llguidance::{JsonCompileOptions, ParserFactory};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::TokenBytes;
use trie_schema::{JsonSchema, SchemaOptions};

fn schemas() -> Vec<(&'static str, Value, Value)> {
    let person = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
        "required": ["name", "age"], "additionalProperties": false});
    let ann = json!({"name": "Ann of Green Gables", "age": 12, "tags": ["a", "b", "a"]});
    let many: serde_json::Map<String, Value> =
        (0..40).map(|nth| (format!("field{nth}"), json!({"type": ["string", "null"]}))).collect();
    let values: serde_json::Map<String, Value> =
        (0..40).map(|nth| (format!("field{nth}"), json!(format!("some text {nth}")))).collect();
    let branch = |kind: &str, own: &str| {
        json!({"type": "object", "properties": {"kind": {"const": kind}, own: {"type": "number", "minimum": 0.5}},
            "required": ["kind", own]})
    };
    vec![
        ("person", person.clone(), ann.clone()),
        ("a list of them", json!({"type": "array", "items": person}), json!([ann, ann, ann])),
        ("40 properties", json!({"type": "object", "properties": many, "additionalProperties": false}), values.into()),
        (
            "a date, open",
            json!({"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}),
            json!({"day": "2024-02-29", "note": "leap day", "more": [1, 2.5, {"deep": null}]}),
        ),
        (
            "anyOf of objects",
            json!({"type": "array", "items": {"anyOf": [branch("a", "x"), branch("b", "y"), branch("c", "z")]}}),
            json!([{"kind": "a", "x": 2.5}, {"kind": "c", "z": 17}]),
        ),
    ]
}

/// The longest token at each place of a text.
fn longest(tokens: &TokenBytes, text: &str) -> Vec<TokenId> {
    let by_bytes: std::collections::HashMap<&[u8], TokenId> =
        TokenId::all(tokens.n_vocab()).map(|token| (tokens.bytes(token), token)).collect();
    let (mut rest, mut found) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let length = (1..=rest.len().min(24)).rev().find(|&length| by_bytes.contains_key(&rest[..length])).unwrap();
        found.push(by_bytes[&rest[..length]]);
        rest = &rest[length..];
    }
    found
}

fn median(mut times: Vec<Duration>) -> (Duration, Duration, Duration) {
    times.sort_unstable();
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    (times[times.len() / 2], mean, times[times.len() - 1])
}

/// Times from short to long.
fn sort_times(times: &[(f64, String)], name: &str) {
    let mut times: Vec<&(f64, String)> = times.iter().collect();
    times.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let at = |share: f64| times.get(((times.len() - 1) as f64 * share) as usize).map_or(0.0, |time| time.0);
    let mean = times.iter().map(|time| time.0).sum::<f64>() / times.len().max(1) as f64;
    println!(
        "{name} (µs, {} times): mean {mean:.3}, p50 {:.3}, p99 {:.2}, p99.9 {:.1}, most {:.0}",
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    for (time, of) in times.iter().rev().take(5) {
        println!("    {time:.0} {of}");
    }
}

/// Every nth schema of a folder of MaskBench with its valid documents: how long it takes to compile, to find masks for
/// the first time and again, and to accept tokens.
fn real(tokens: &Arc<TokenBytes>, folder: &std::path::Path, nth: usize) {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut compiled, mut first, mut new, mut known, mut taken, mut again) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut refused, mut wrong) = (0, 0);
    let mut scratch = Scratch::default();
    let micros = |begin: Instant| begin.elapsed().as_secs_f64() * 1e6;
    for path in paths.iter().step_by(nth) {
        let whole: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let schema = whole["schema"].to_string();
        let mut options = SchemaOptions::default();
        options.order = trie_schema::Order::Any;
        let begin = Instant::now();
        let made = JsonSchema::new(&schema, options);
        compiled.push((micros(begin), name.clone()));
        let Ok(made) = made else {
            refused += 1;
            continue;
        };
        let begin = Instant::now();
        let constraint = made.over(tokens).unwrap();
        first.push((micros(begin), name.clone()));
        for test in whole["tests"].as_array().unwrap() {
            if test["valid"] != Value::Bool(true) {
                continue;
            }
            let text = test["data"].to_string();
            let path = longest(tokens, &text);
            for is_again in [false, true] {
                let mut at = constraint.start();
                for (place, &token) in path.iter().enumerate() {
                    let named = || format!("{name} token {place} {:?}", String::from_utf8_lossy(tokens.bytes(token)));
                    let begin = Instant::now();
                    let next = constraint.next(&at, &mut scratch);
                    let time = micros(begin);
                    let is_legal = next.tokens.contains(token);
                    if is_again { &mut known } else { &mut new }.push((time, named()));
                    let begin = Instant::now();
                    let role = constraint.advance(&mut at, token);
                    let time = micros(begin);
                    if is_again { &mut again } else { &mut taken }.push((time, named()));
                    assert_eq!(is_legal, role.is_some(), "{name}: {text}");
                    if !is_legal {
                        wrong += 1;
                        break;
                    }
                }
            }
        }
    }
    println!("{} schemas, {refused} refused, {wrong} valid documents not taken", compiled.len());
    for (name, times) in [
        ("compile", &compiled),
        ("over a vocabulary, with the first mask", &first),
        ("mask, first walk", &new),
        ("mask, second walk", &known),
        ("accept, first walk", &taken),
        ("accept, second walk", &again),
    ] {
        sort_times(times, name);
    }
}

fn main() {
    let Some(path) = vocab::files().into_iter().find(|path| path.ends_with("ggml-vocab-qwen2.gguf")) else {
        println!("without a vocabulary there is nothing to measure");
        return;
    };
    let pieces = vocab::pieces(&path);
    let text = pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty());
    let text = text.map(|(id, piece)| (piece.as_slice(), TokenId::new(id as u32).unwrap()));
    let tokens = Arc::new(TokenBytes::new(pieces.len(), text).unwrap());
    let mut words = pieces.clone();
    words.push(Vec::new());
    let info = TokRxInfo::new(words.len() as u32, words.len() as u32 - 1);
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
    let slices = SlicedBiasComputer::general_slices();
    let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices).unwrap();
    factory.quiet();
    if let Some(folder) = std::env::args().nth(1) {
        let nth = std::env::args().nth(2).and_then(|nth| nth.parse().ok()).unwrap_or(1);
        return real(&tokens, folder.as_ref(), nth);
    }
    for (name, schema, document) in schemas() {
        let (schema_text, text) = (schema.to_string(), document.to_string());
        let compile = |_| {
            let begin = Instant::now();
            let made = JsonSchema::new(&schema_text, SchemaOptions::default()).unwrap();
            (begin.elapsed(), made)
        };
        let compiled = median((0..50).map(compile).map(|(time, _)| time).collect());
        let path = longest(&tokens, &text);
        let (mut new, mut known, mut taken, mut other) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut scratch = Scratch::default();
        let mut first = Duration::ZERO;
        for round in 0..5 {
            let schema = JsonSchema::new(&schema_text, SchemaOptions::default()).unwrap();
            let begin = Instant::now();
            let constraint = schema.over(&tokens).unwrap();
            constraint.next(&constraint.start(), &mut scratch);
            if round == 0 {
                first = begin.elapsed();
            }
            for again in [false, true] {
                let mut at = constraint.start();
                for &token in &path {
                    let begin = Instant::now();
                    let is_legal = constraint.next(&at, &mut scratch).tokens.contains(token);
                    if again {
                        known.push(begin.elapsed());
                    } else {
                        new.push(begin.elapsed());
                    }
                    assert!(is_legal, "{name}: {text}");
                    let begin = Instant::now();
                    constraint.advance(&mut at, token).unwrap();
                    taken.push(begin.elapsed());
                }
            }
            let mut given = serde_json::from_str(&schema_text).unwrap();
            JsonCompileOptions { json_allow_general_unicode_escapes: true, ..Default::default() }.apply_to(&mut given);
            let mut parser = factory.create_parser(TopLevelGrammar::from_json_schema(given)).unwrap();
            parser.start_without_prompt();
            for &token in &path {
                let begin = Instant::now();
                let mask = parser.compute_mask().unwrap();
                other.push(begin.elapsed());
                assert!(mask.is_allowed(token.get()), "{name}");
                parser.consume_token(token.get()).unwrap();
            }
        }
        println!("{name}: compiled {compiled:?}, first mask {first:?}");
        println!("  masks (median, mean, most): new {:?}, known {:?}", median(new), median(known));
        println!("  accept {:?}; masks of llguidance {:?}", median(taken), median(other));
    }
}
