//! The best of `k` legal tokens: this crate's kernel, plain C, AVX2, and the whole row masked and searched.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tokentrie_benches::{avx2_argmax, c_argmax, c_mask, ids, row};
use trie_core::{Sampler, SamplerOptions, SpanRules, TokenId, Trie, argmax};

fn sampler(ids: &[TokenId], n_vocab: usize) -> Sampler {
    let mut builder = Trie::builder();
    for id in ids {
        builder.push(None, &[*id, TokenId::default()]);
    }
    let set = builder.build().expect("ids are usable");
    let rules = Arc::new(SpanRules::for_constraint(set, n_vocab).expect("ids are in the vocabulary"));
    Sampler::new(rules, SamplerOptions::default()).expect("default options")
}

/// Masks the row and searches all of it: what a host without a trie does.
fn masked_argmax(row: &[f32], raw: &[u32], scratch: &mut [f32], saved: &mut [f32]) -> u32 {
    scratch.copy_from_slice(row);
    c_mask(scratch, raw, saved);
    let all = scratch.iter().enumerate();
    all.fold((0, f32::NEG_INFINITY), |best, (at, &logit)| if logit > best.1 { (at, logit) } else { best }).0 as u32
}

fn select(criterion: &mut Criterion) {
    for n in [32_000, 128_256, 151_936, 262_144] {
        let row = row(n);
        let (mut scratch, mut saved) = (row.clone(), vec![0.0; n]);
        let mut group = criterion.benchmark_group(format!("select/{n}"));
        for k in [2, 8, 32, 256, 4096] {
            let raw = ids(n, k);
            let tokens: Vec<TokenId> = raw.iter().filter_map(|&id| TokenId::new(id)).collect();
            let mut sampler = sampler(&tokens, n);

            let answer = argmax(&row, &tokens).expect("k > 0").token.get();
            assert_eq!(answer, c_argmax(&row, &raw));
            assert_eq!(answer, sampler.sample(&row).expect("row is long enough").get());
            assert_eq!(answer, masked_argmax(&row, &raw, &mut scratch, &mut saved));
            assert!(avx2_argmax(&row, &raw).is_none_or(|token| token == answer));

            let id = |name| BenchmarkId::new(name, k);
            group.bench_function(id("kernel"), |b| b.iter(|| argmax(black_box(&row), black_box(&tokens))));
            group.bench_function(id("sampler"), |b| b.iter(|| sampler.sample(black_box(&row))));
            group.bench_function(id("c"), |b| b.iter(|| c_argmax(black_box(&row), black_box(&raw))));
            group.bench_function(id("avx2"), |b| b.iter(|| avx2_argmax(black_box(&row), black_box(&raw))));
            if n == 151_936 && k <= 32 {
                let mut whole = || masked_argmax(black_box(&row), &raw, &mut scratch, &mut saved);
                group.bench_function(id("mask-whole-row"), |b| b.iter(&mut whole));
            }
        }
        group.finish();
    }
}

criterion_group!(benches, select);
criterion_main!(benches);
