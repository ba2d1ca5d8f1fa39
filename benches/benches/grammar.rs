//! Masks of the JSON grammar over a real vocabulary: documents replayed token by token, each token looked for in its
//! mask. `TOKENTRIE_VOCAB_DIR` names the vocabularies; `TOKENTRIE_JSON_DIR` a folder of `*.json`, else documents are
//! made up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::{ByRule, Example};

#[path = "common/pieces.rs"]
mod pieces;

fn documents() -> Vec<Vec<u8>> {
    let folder = std::env::var_os("TOKENTRIE_JSON_DIR").and_then(|folder| std::fs::read_dir(folder).ok());
    if let Some(folder) = folder {
        let paths = folder.flatten().map(|entry| entry.path());
        return paths.filter_map(|path| std::fs::read(path).ok()).collect();
    }
    println!("no TOKENTRIE_JSON_DIR: documents that are made up");
    let person = |n: usize| {
        let tags: Vec<String> = (0..n % 7).map(|tag| format!("\"tag {tag} of {}\"", n * 31)).collect();
        format!(
            "{{\"id\": {n}, \"name\": \"Jörg \\\"{}\\\" \\u00e9\", \"score\": {}.{}e-3, \"tags\": [{}], \"ok\": {}}}",
            n * 7919,
            n % 90,
            n % 1000,
            tags.join(", "),
            n.is_multiple_of(2)
        )
    };
    (0..2000)
        .map(|n| format!("[{}]", (n..n + n % 9).map(person).collect::<Vec<_>>().join(",\n  ")).into_bytes())
        .collect()
}

/// The longest token at each place, or now and then a shorter one.
fn tokens_of(text: &[u8], known: &HashMap<&[u8], TokenId>, shorter: bool) -> Vec<TokenId> {
    let (mut at, mut found) = (0, Vec::new());
    while at < text.len() {
        let longest = if shorter && found.len() % 3 == 0 { 1 + found.len() % 4 } else { 32 };
        let lengths = (1..=longest.min(text.len() - at)).rev();
        let token =
            lengths.map(|length| &text[at..at + length]).find_map(|piece| Some((piece.len(), known.get(piece)?)));
        let (length, &token) = token.expect("every byte is a token");
        found.push(token);
        at += length;
    }
    found
}

fn quantile(sorted: &[Duration], share: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn print_times(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    let (median, high, most) = (quantile(&times, 0.5), quantile(&times, 0.99), times[times.len() - 1]);
    println!("{name}: {} masks, median {median:?}, p99 {high:?}, most {most:?}, mean {mean:?}", times.len());
}

fn main() {
    let Some(pieces) = pieces::pieces() else {
        return println!("no TOKENTRIE_VOCAB_DIR with ggml-vocab-qwen2.gguf: nothing measured");
    };
    let known: HashMap<&[u8], TokenId> = pieces::text(&pieces).collect();
    let tokens = pieces::tokens(&pieces);
    let begin = Instant::now();
    let json = Example::Json.grammar().unwrap();
    println!("the grammar: {:?}", begin.elapsed());
    let documents = documents();
    for (name, shorter) in [("longest tokens", false), ("tokens of all lengths", true)] {
        let begin = Instant::now();
        let by_rule = ByRule::new(json.clone(), Arc::clone(&tokens)).unwrap();
        println!("{name}: the constraint, with its first mask: {:?}", begin.elapsed());
        let (mut first, mut hits, mut steps) = (Vec::new(), Vec::new(), Duration::ZERO);
        let mut scratch = Scratch::default();
        for document in &documents {
            let mut state = by_rule.start();
            for token in tokens_of(document, &known, shorter) {
                let misses = by_rule.stats().misses;
                let begin = Instant::now();
                let next = by_rule.next(&state, &mut scratch);
                let took = begin.elapsed();
                assert!(next.tokens.contains(token), "a legal document is refused");
                if by_rule.stats().misses == misses {
                    hits.push(took);
                } else {
                    first.push(took);
                }
                let begin = Instant::now();
                by_rule.advance(&mut state, token).expect("a legal document is refused");
                steps += begin.elapsed();
            }
            assert!(by_rule.next(&state, &mut scratch).ending != trie_core::Ending::No);
        }
        let count = hits.len() + first.len();
        print_times(&format!("{name}, all"), hits.iter().chain(&first).copied().collect());
        print_times(&format!("{name}, states seen before"), hits);
        print_times(&format!("{name}, first visits"), first);
        println!("{name}: {} documents, a step {:?}; {:?}", documents.len(), steps / count as u32, by_rule.stats());
    }
}
