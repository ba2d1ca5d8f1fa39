//! A walk down a set, token by token: what accepting costs beside the choice.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tokentrie_benches::row;
use trie_core::{Sampler, SamplerOptions, Span, SpanRules, TokenId, Trie};

const V: usize = 151_936;

/// Thirty names of three to six tokens, which share their first two by tens.
fn names() -> Vec<Vec<TokenId>> {
    let id = |id: u32| TokenId::new(id).expect("an id");
    let name = |n: u32| {
        let rest = (0..=n % 4).map(move |at| id(1_000 + 97 * n + at));
        [id(10), id(20 + n / 10)].into_iter().chain(rest).collect()
    };
    (0..30).map(name).collect()
}

fn walks(criterion: &mut Criterion) {
    let names = names();
    let mut builder = Trie::builder();
    for tokens in &names {
        builder.push(None, tokens);
    }
    let trie = builder.build().expect("names have tokens");
    assert_eq!(trie.len(), names.len());
    let rules = Arc::new(SpanRules::for_constraint(trie, V).expect("ids inside the vocabulary"));
    let tokens = names.iter().map(Vec::len).sum::<usize>() as u64;
    let mut group = criterion.benchmark_group("span/30-names");
    group.throughput(Throughput::Elements(tokens));
    let mut span = Span::new(Arc::clone(&rules));
    group.bench_function("accept", |b| {
        b.iter(|| {
            for name in &names {
                span.reset();
                for &token in name {
                    black_box(span.accept(token).expect("a token of a name"));
                }
                assert_eq!(span.depth(), name.len());
            }
        });
    });
    let logits = row(V);
    let mut sampler = Sampler::new(rules, SamplerOptions::default()).expect("usable settings");
    group.bench_function("choose-and-accept", |b| {
        b.iter(|| {
            for name in &names {
                sampler.reset();
                for &token in name {
                    black_box(sampler.sample(&logits).expect("a sound set"));
                    sampler.span_mut().accept(token).expect("a token of a name");
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, walks);
criterion_main!(benches);
