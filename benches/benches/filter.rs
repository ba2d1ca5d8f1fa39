//! Filters over a million items: making one of ten thousand denials, and a step with it beside the step without.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::collections::HashSet;
use std::hint::black_box;
use std::sync::Arc;
use tokentrie_benches::{Random, row};
use trie_core::{
    AnyConstraint, FilteredTrie, FlatSequences, LeafId, LeafSet, Sampler, SamplerOptions, Scratch, SpanRules, TokenId,
    Trie,
};

mod common;
use common::table;

const ITEMS: usize = 1_000_000;
const DENIED: usize = 10_000;
const V: usize = 65_536;

fn items(ids: [u64; 4]) -> Trie {
    FlatSequences::even(&table(ITEMS, ids), 4).expect("rows of four").build().expect("usable rows")
}

fn some(trie: &Trie, count: usize, seed: u64) -> Vec<LeafId> {
    let mut random = Random(seed);
    (0..count).map(|_| LeafId::new(random.number_below(trie.len() as u64))).collect()
}

fn filter_trie(trie: &Trie, denied: &[LeafId]) -> FilteredTrie {
    let denied = LeafSet::from_leaves(trie.len(), denied.iter().copied()).expect("leaves of the trie");
    trie.filter(&!denied).expect("some are left")
}

/// No walk ends anywhere but at a leaf that is left, and each of those is found.
fn check(filtered: &FilteredTrie, denied: &[LeafId]) {
    let denied: HashSet<LeafId> = denied.iter().copied().collect();
    let trie = filtered.trie();
    assert_eq!(filtered.len(), trie.len() - denied.len());
    let mut random = Random(3);
    let mut scratch = Scratch::default();
    let rules = SpanRules::for_constraint(filtered.clone(), V).expect("ids inside the vocabulary");
    for _ in 0..2_000 {
        let leaf = LeafId::new(random.number_below(trie.len() as u64));
        let tokens = trie.leaf(leaf).expect("a leaf").tokens;
        let walked = tokens.iter().try_fold(rules.start(), |at, &token| Some(rules.step(&at, token)?.state));
        assert_eq!(walked.is_some(), !denied.contains(&leaf), "{leaf:?}");
        let mut at = rules.start();
        while at.depth() < 4 {
            let legal: Vec<TokenId> = rules.allowed(&at, &mut scratch).iter().collect();
            at = rules.step(&at, legal[random.number_below(legal.len() as u64) as usize]).expect("a legal token").state;
        }
    }
}

fn setting_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("filter/setup/{ITEMS}"));
    for (name, ids) in [("even-256", [256; 4]), ("wide-root", [8_192, 256, 16, 16])] {
        let trie = items(ids);
        let mut denied = some(&trie, DENIED, 9);
        check(&filter_trie(&trie, &denied), &denied);
        group
            .bench_function(BenchmarkId::new("deny-10000-any-order", name), |b| b.iter(|| filter_trie(&trie, &denied)));
        denied.sort_unstable();
        group.bench_function(BenchmarkId::new("deny-10000", name), |b| b.iter(|| filter_trie(&trie, &denied)));
        let few = LeafSet::from_leaves(trie.len(), denied.iter().copied()).expect("leaves of the trie");
        group.bench_function(BenchmarkId::new("allow-10000", name), |b| b.iter(|| trie.filter(&few)));
        let flags: Vec<bool> = (0..trie.len()).map(|leaf| leaf % 3 > 0).collect();
        group.bench_function(BenchmarkId::new("flags-two-thirds", name), |b| {
            b.iter(|| trie.filter(&LeafSet::from_flags(&flags)));
        });
        let all = filter_trie(&trie, &denied);
        let next = (0..trie.len() as u32).map(LeafId::new).find(|&leaf| all.allows(leaf)).expect("one is left");
        group.bench_function(BenchmarkId::new("one-more", name), |b| b.iter(|| all.deny(&[next])));
    }
    group.finish();
}

/// Steps down a thousand leaves that are left: choose among all that may come, accept, four times a leaf.
fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("filter/step/{ITEMS}"));
    let logits = row(V);
    for (name, ids) in [("even-256", [256; 4]), ("wide-root", [8_192, 256, 16, 16])] {
        let trie = items(ids);
        let denied = some(&trie, DENIED, 9);
        let left = filter_trie(&trie, &denied);
        let paths: Vec<Vec<TokenId>> = some(&trie, 2_000, 11)
            .into_iter()
            .filter(|&leaf| left.allows(leaf))
            .take(1_000)
            .map(|leaf| trie.leaf(leaf).expect("a leaf").tokens)
            .collect();
        let mut one = LeafSet::none(trie.len());
        let half: Vec<bool> = (0..trie.len()).map(|leaf| leaf % 2 == 0).collect();
        one = one.or(&LeafSet::from_flags(&half)).expect("one trie");
        let cases: [(&str, AnyConstraint, usize); 3] = [
            ("unfiltered", trie.clone().into(), 0),
            ("deny-10000", left.into(), 0),
            ("every-other", trie.filter(&one).expect("half is left").into(), 1),
        ];
        for (kind, constraint, skip) in cases {
            let rules = Arc::new(SpanRules::for_constraint(constraint, V).expect("ids inside the vocabulary"));
            let mut sampler = Sampler::new(rules, SamplerOptions::default()).expect("usable settings");
            // Of every other leaf some paths are gone: those are left out.
            let paths: Vec<&Vec<TokenId>> =
                paths.iter().filter(|path| skip == 0 || sampler_takes(&mut sampler, path)).take(400).collect();
            assert!(paths.len() == 400, "{} paths", paths.len());
            group.bench_function(BenchmarkId::new(kind, name), |b| {
                b.iter(|| {
                    for path in &paths {
                        sampler.reset();
                        for &token in *path {
                            black_box(sampler.sample(&logits).expect("a sound set"));
                            sampler.span_mut().accept(token).expect("a legal token");
                        }
                    }
                });
            });
        }
    }
    group.finish();
}

fn sampler_takes(sampler: &mut Sampler, path: &[TokenId]) -> bool {
    sampler.reset();
    sampler.span_mut().accept_all(path).is_ok()
}

criterion_group!(benches, setting_up, steps);
criterion_main!(benches);
