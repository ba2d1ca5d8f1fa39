//! Masks of a JSON Schema over a real vocabulary, beside llguidance alone in the same run: the same documents, token by
//! token, masks compared before they are timed. And: large enums. `TOKENTRIE_VOCAB_DIR` names the vocabularies.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{JsonCompileOptions, Matcher, ParserFactory};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trie_core::{Constraint, Scratch, TokenId};
use trie_schema::{JsonSchema, SchemaOptions};

#[path = "common/pieces.rs"]
mod pieces;

/// The longest token at each place.
fn tokens_of(text: &[u8], known: &HashMap<&[u8], TokenId>) -> Vec<TokenId> {
    let (mut at, mut found) = (0, Vec::new());
    while at < text.len() {
        let lengths = (1..=32.min(text.len() - at)).rev();
        let token =
            lengths.map(|length| &text[at..at + length]).find_map(|piece| Some((piece.len(), known.get(piece)?)));
        let (length, &token) = token.expect("every byte is a token");
        found.push(token);
        at += length;
    }
    found
}

fn print_times(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    println!(
        "{name}: {} steps, median {:?}, p99 {:?}, most {:?}, mean {mean:?}",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn tool_call() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"enum": ["search", "book_flight", "send_mail"]},
            "arguments": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "maxLength": 200},
                    "from": {"type": "string", "pattern": "^[A-Z]{3}$"},
                    "date": {"type": "string", "format": "date"},
                    "seats": {"type": "integer", "minimum": 1, "maximum": 9},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
                    "options": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
                },
                "required": ["query", "seats"],
                "additionalProperties": false
            }
        },
        "required": ["name", "arguments"],
        "additionalProperties": false
    })
}

fn call(n: usize) -> String {
    format!(
        "{{\"name\": \"{}\", \"arguments\": {{\"query\": \"flights number {} to Tokyo, \\\"cheap\\\" and early\", \
         \"from\": \"BER\", \"date\": \"2025-0{}-1{}\", \"seats\": {}, \"tags\": [\"a{n}\", \"direct flight\"], \
         \"options\": {{\"window\": true, \"meal {n}\": \"vegetarian\", \"limit\": {n}.5}}}}}}",
        ["search", "book_flight", "send_mail"][n % 3],
        n * 7919,
        1 + n % 9,
        n % 10,
        1 + n % 9
    )
}

fn bare(pieces: &[Vec<u8>]) -> ParserFactory {
    let mut words = pieces.to_vec();
    words.push(Vec::new());
    let info = TokRxInfo::new(words.len() as u32, words.len() as u32 - 1);
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
    let mut factory = ParserFactory::new_simple(&env).unwrap();
    factory.quiet();
    factory
}

fn main() {
    let Some(pieces) = pieces::pieces() else {
        return println!("no TOKENTRIE_VOCAB_DIR with ggml-vocab-qwen2.gguf: nothing measured");
    };
    let known: HashMap<&[u8], TokenId> = pieces::text(&pieces).collect();
    let tokens = pieces::tokens(&pieces);
    let begin = Instant::now();
    let factory = bare(&pieces);
    println!("llguidance's vocabulary: {:?}", begin.elapsed());

    let begin = Instant::now();
    let schema = JsonSchema::of(tool_call(), SchemaOptions::default()).unwrap();
    println!("the schema: {:?}", begin.elapsed());
    let begin = Instant::now();
    let ours = schema.over(&tokens).unwrap();
    println!("over a vocabulary that is new: {:?}", begin.elapsed());
    let begin = Instant::now();
    drop(schema.over(&tokens).unwrap());
    println!("over one that is known, with the first mask: {:?}", begin.elapsed());

    let documents: Vec<Vec<TokenId>> = (0..200).map(|n| tokens_of(call(n).as_bytes(), &known)).collect();
    let mut said = tool_call();
    JsonCompileOptions { json_allow_general_unicode_escapes: true, ..Default::default() }.apply_to(&mut said);
    let theirs = factory.create_parser(TopLevelGrammar::from_json_schema(said));
    let theirs = Matcher::new(theirs);
    let (mut ours_took, mut theirs_took, mut again_took) = (Vec::new(), Vec::new(), Vec::new());
    let (mut apart, mut scratch) = (0, Scratch::default());
    let mut steps = Duration::ZERO;
    for document in &documents {
        let mut matcher = theirs.clone();
        let mut state = ours.start();
        for &token in document {
            let begin = Instant::now();
            let mask = matcher.compute_mask().unwrap();
            theirs_took.push(begin.elapsed());
            let begin = Instant::now();
            let next = ours.next(&state, &mut scratch);
            ours_took.push(begin.elapsed());
            apart += usize::from(
                !next.tokens.iter().eq(mask.iter().filter_map(TokenId::new).filter(|id| id.index() < pieces.len())),
            );
            assert!(next.tokens.contains(token), "a legal document is refused");
            let begin = Instant::now();
            std::hint::black_box(ours.next(&state, &mut scratch));
            again_took.push(begin.elapsed());
            let begin = Instant::now();
            matcher.consume_token(token.get()).unwrap();
            *theirs_took.last_mut().unwrap() += begin.elapsed();
            let begin = Instant::now();
            ours.advance(&mut state, token).expect("a legal document is refused");
            steps += begin.elapsed();
        }
        assert!(ours.next(&state, &mut scratch).ending != trie_core::Ending::No);
    }
    let count = ours_took.len() as u32;
    println!("masks that differ: {apart}");
    print_times("llguidance alone, mask and step", theirs_took);
    print_times("ours, mask", ours_took);
    print_times("ours, asked again", again_took);
    println!("ours, a step: {:?}", steps / count);

    for count in [100usize, 1000, 2000, 10_000, 100_000] {
        let values: Vec<String> = (0..count)
            .map(|n| {
                let rest = ["Alpha", "Board", "Cedar", "delta", "Ember", "foxglove", "Garden", "hollow"];
                format!("{} {} {n}", rest[n * 7 % 8], rest[n * 13 / 8 % 8])
            })
            .collect();
        let schema = json!({"type": "array", "items": {"type": "string", "enum": values}});
        let begin = Instant::now();
        let enums = JsonSchema::of(schema, SchemaOptions::default()).unwrap().over(&tokens).unwrap();
        let compiled = begin.elapsed();
        let (mut first, mut later) = (Duration::ZERO, Duration::ZERO);
        for (nth, value) in values.iter().step_by(count.div_ceil(50)).enumerate() {
            let mut state = enums.start();
            for token in tokens_of(format!("[{}]", json!(value)).as_bytes(), &known) {
                let begin = Instant::now();
                let next = enums.next(&state, &mut scratch);
                let most = if nth == 0 { &mut first } else { &mut later };
                *most = begin.elapsed().max(*most);
                assert!(next.tokens.contains(token), "{:?}", enums.problem(&state));
                enums.advance(&mut state, token).unwrap();
            }
        }
        println!(
            "enum of {count}: compiled {compiled:?}, slowest mask of the first value {first:?}, of others {later:?}"
        );
    }
}
