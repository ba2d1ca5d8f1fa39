//! Cost of calls through the C ABI beside the same calls in Rust, and time that a session takes to follow a payload.

#[path = "../../crates/tokentrie-c/tests/common/mod.rs"]
mod common;

use common::{input, output, put, text};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
#[allow(clippy::wildcard_imports, reason = "the functions of the header")]
use tokentrie_c::abi::*;
use tokentrie_c::status::{TOKENTRIE_ALLOWED_ONLY, TOKENTRIE_OK};
use tokentrie_c::{In, Out};
use trie_core::{Sampler, SamplerOptions, SpanRules, TokenId};
use trie_formats::Payload;

const N_VOCAB: usize = 151_936;

/// `leaves` leaves of `length` tokens each; no two begin alike.
fn payload(leaves: usize, length: usize) -> String {
    let leaf = |leaf: usize| {
        let tokens: Vec<String> = (0..length).map(|at| (1000 + leaf * 37 + at * 977).to_string()).collect();
        format!(r#"{{"name":"ACTION_NUMBER_{leaf}","tokens":[{}]}}"#, tokens.join(","))
    };
    let leaves: Vec<String> = (0..leaves).map(leaf).collect();
    format!(r#"{{"modelId":"bench","descriptors":[{{"path":"action","leaves":[{}]}}]}}"#, leaves.join(","))
}

type Sample = extern "C" fn(tokentrie_sampler, In<f32>, usize, Out<i32>) -> i32;
type AllowedFn = extern "C" fn(tokentrie_sampler, Out<i32>, usize, Out<usize>, Out<i32>) -> i32;

fn steps(criterion: &mut Criterion) {
    let row: Vec<f32> = (0..N_VOCAB).map(|id| ((id * 7919) % 1000) as f32 / 100.0).collect();
    let mut vocab = 0;
    assert_eq!(tokentrie_vocab_new(N_VOCAB, In::null(), 0, put(&mut vocab)), TOKENTRIE_OK);
    for k in [2, 8, 32, 512] {
        let json = payload(k, 3);
        let constraints = Payload::from_json(json.as_bytes(), Some(N_VOCAB)).expect("a payload").constraints;
        let rules = Arc::new(SpanRules::new(constraints, N_VOCAB).expect("rules"));
        let mut ours = Sampler::new(rules, SamplerOptions::default()).expect("options");
        let (mut trie, mut sampler, mut token) = (0, 0, -1);
        assert_eq!(tokentrie_trie_from_json(text(&json), json.len(), vocab, 0, put(&mut trie)), TOKENTRIE_OK);
        let made = tokentrie_sampler_new(trie, vocab, In::null(), In::null(), 0, put(&mut sampler));
        assert_eq!(made, TOKENTRIE_OK);
        // As C calls them: by their addresses.
        let (sample, allowed): (Sample, AllowedFn) =
            (black_box(tokentrie_sampler_sample), black_box(tokentrie_sampler_allowed));
        assert_eq!(sample(sampler, input(&row), N_VOCAB, put(&mut token)), TOKENTRIE_OK);
        assert_eq!(token, ours.sample(&row).expect("long enough").as_i32());
        let (mut ids, mut count, mut what) = (vec![-1; k], 0, -1);
        assert_eq!(allowed(sampler, output(&mut ids), k, put(&mut count), put(&mut what)), TOKENTRIE_OK);
        assert_eq!((what, count), (TOKENTRIE_ALLOWED_ONLY, k));
        assert!(ours.allowed().iter().map(TokenId::as_i32).eq(ids.iter().copied()));

        let mut group = criterion.benchmark_group("c_abi/sample");
        group.bench_function(BenchmarkId::new("rust", k), |b| b.iter(|| ours.sample(black_box(&row))));
        group.bench_function(BenchmarkId::new("c", k), |b| {
            b.iter(|| sample(black_box(sampler), input(&row), N_VOCAB, put(&mut token)));
        });
        group.finish();
        criterion.benchmark_group("c_abi/allowed").bench_function(BenchmarkId::new("c", k), |b| {
            b.iter(|| allowed(black_box(sampler), output(&mut ids), k, put(&mut count), put(&mut what)));
        });
        assert_eq!(tokentrie_sampler_free(sampler) + tokentrie_trie_free(trie), TOKENTRIE_OK);
    }
    assert_eq!(tokentrie_vocab_free(vocab), TOKENTRIE_OK);
}

fn set_token_trie(criterion: &mut Criterion) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/tokentrie/models/tiny.gguf");
    let mut session = 0;
    assert_eq!(tokentrie_session_open(text(path), path.len(), In::null(), put(&mut session)), TOKENTRIE_OK);
    // Ids that the tiny vocabulary has.
    let texts: Vec<String> = (0..256)
        .map(|first| {
            let tokens = |leaf: usize| {
                (0..4).map(|at| (100 + first + leaf * 29 + at * 7).to_string()).collect::<Vec<_>>().join(",")
            };
            let leaves: Vec<String> = (0..30)
                .map(|leaf| format!(r#"{{"name":"ACTION_NUMBER_{leaf}","tokens":[{}]}}"#, tokens(leaf)))
                .collect();
            format!(r#"{{"modelId":"bench","descriptors":[{{"path":"action","leaves":[{}]}}]}}"#, leaves.join(","))
        })
        .collect();
    let mut group = criterion.benchmark_group("c_abi/set_token_trie");
    let mut next = 0;
    // The cache holds 128: with 256 in turn each is built anew.
    group.bench_function("30x4, new", |b| {
        b.iter(|| {
            let json = &texts[next % texts.len()];
            next += 1;
            assert_eq!(tokentrie_session_set_token_trie(session, text(json), json.len(), 0), TOKENTRIE_OK);
        });
    });
    group.bench_function("30x4, known", |b| {
        let json = &texts[0];
        b.iter(|| assert_eq!(tokentrie_session_set_token_trie(session, text(json), json.len(), 0), TOKENTRIE_OK));
    });
    group.finish();
    assert_eq!(tokentrie_session_close(session), TOKENTRIE_OK);
}

criterion_group!(benches, steps, set_token_trie);
criterion_main!(benches);
