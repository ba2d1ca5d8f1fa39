//! What a schema costs to make, with its first mask over a vocabulary of `TOKENTRIE_VOCAB_DIR`: beside llguidance asked
//! without this crate, whose mask must be the same.

#[path = "../../trie-rules/tests/common/vocab.rs"]
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

fn least<T>(mut what: impl FnMut() -> T) -> (Duration, T) {
    let once = |_| {
        let begin = Instant::now();
        let made = what();
        (begin.elapsed(), made)
    };
    (0..15).map(once).min_by_key(|(time, _)| *time).unwrap()
}

fn schemas() -> Vec<(&'static str, Value)> {
    let person = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
        "required": ["name", "age"], "additionalProperties": false});
    let many: serde_json::Map<String, Value> =
        (0..40).map(|nth| (format!("field{nth}"), json!({"type": ["string", "null"]}))).collect();
    let date = json!({"type": "object", "properties": {"day": {"type": "string", "format": "date"}}});
    vec![
        ("person", person.clone()),
        ("a list of them", json!({"type": "array", "items": person})),
        ("40 properties", json!({"type": "object", "properties": many, "additionalProperties": false})),
        ("a date", date),
    ]
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
    for (name, schema) in schemas() {
        let ours = || {
            let constraint = JsonSchema::of(schema.clone(), SchemaOptions::default()).unwrap().over(&tokens).unwrap();
            let mut scratch = Scratch::default();
            constraint.next(&constraint.start(), &mut scratch).tokens.iter().collect::<Vec<_>>()
        };
        let theirs = || {
            let mut given = schema.clone();
            JsonCompileOptions { json_allow_general_unicode_escapes: true, ..Default::default() }.apply_to(&mut given);
            let mut parser = factory.create_parser(TopLevelGrammar::from_json_schema(given)).unwrap();
            parser.start_without_prompt();
            let mask = parser.compute_mask().unwrap();
            TokenId::all(pieces.len()).filter(|token| mask.is_allowed(token.get())).collect::<Vec<_>>()
        };
        let _ = ours();
        let ((our_time, our), (their_time, their)) = (least(ours), least(theirs));
        let same = our == their;
        let times = our_time.as_secs_f64() / their_time.as_secs_f64();
        println!("{name}: {our_time:?}, llguidance {their_time:?}, {times:.2} times; masks equal: {same}");
    }
}
