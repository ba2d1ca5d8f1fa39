//! Masking a row in place, beside the fill of the row (the bytes that must be written) and C's fill and scatter.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tokentrie_benches::{c_mask, ids, row};
use trie_core::{TokenId, Tokens, mask_row};

fn mask(criterion: &mut Criterion) {
    for n in [32_000, 151_936, 262_144] {
        let mut group = criterion.benchmark_group(format!("mask/{n}"));
        group.throughput(Throughput::Bytes(4 * n as u64));
        let mut work = row(n);
        group.bench_function("fill", |b| b.iter(|| black_box(&mut work).fill(f32::NEG_INFINITY)));
        for k in [8, 32, 256, 4096] {
            let raw = ids(n, k);
            let tokens: Vec<TokenId> = raw.iter().filter_map(|&id| TokenId::new(id)).collect();
            let mut scratch = Vec::new();
            let mut saved = vec![0.0; k];

            let (mut ours, mut theirs) = (row(n), row(n));
            mask_row(&mut ours, Tokens::Ids(&tokens), &[], &mut scratch);
            c_mask(&mut theirs, &raw, &mut saved);
            assert!(ours.iter().zip(&theirs).all(|(a, b)| a.to_bits() == b.to_bits()));

            group.bench_function(BenchmarkId::new("kernel", k), |b| {
                b.iter(|| mask_row(black_box(&mut work), Tokens::Ids(black_box(&tokens)), &[], &mut scratch));
            });
            group.bench_function(BenchmarkId::new("c", k), |b| {
                b.iter(|| c_mask(black_box(&mut work), black_box(&raw), &mut saved));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, mask);
criterion_main!(benches);
