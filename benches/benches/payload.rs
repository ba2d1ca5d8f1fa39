//! JSON text of thirty names to a sampler that is ready, cold and from the cache, beside its parts alone.

use criterion::{Criterion, criterion_group, criterion_main};
use sha2::{Digest, Sha256};
use std::hint::black_box;
use std::sync::Arc;
use tokentrie_benches::actions_payload;
use trie_core::{Sampler, SamplerOptions, SpanRules};
use trie_formats::{Payload, TrieCache};

const N_VOCAB: usize = 151_936;

/// The same shape through serde alone.
mod shape {
    #[derive(serde::Deserialize)]
    pub(crate) struct Payload<'a> {
        #[serde(rename = "modelId")]
        pub(crate) model_id: &'a str,
        #[serde(borrow)]
        pub(crate) descriptors: Vec<Descriptor<'a>>,
    }

    #[derive(serde::Deserialize)]
    pub(crate) struct Descriptor<'a> {
        pub(crate) path: &'a str,
        #[serde(borrow)]
        pub(crate) leaves: Vec<Leaf<'a>>,
    }

    #[derive(serde::Deserialize)]
    pub(crate) struct Leaf<'a> {
        pub(crate) name: &'a str,
        pub(crate) tokens: Vec<u32>,
    }
}

fn ready(payload: &Payload) -> Sampler {
    let rules = SpanRules::new(payload.constraints.clone(), N_VOCAB).expect("ids are in the vocabulary");
    Sampler::new(Arc::new(rules), SamplerOptions::default()).expect("default options")
}

fn payload(criterion: &mut Criterion) {
    let json = actions_payload();
    let text = json.as_bytes();
    let trie = Payload::from_json(text, Some(N_VOCAB)).expect("a good payload").trie(None).expect("one").clone();
    assert_eq!((trie.len(), trie.max_depth()), (30, 4));
    assert!(trie.nbytes() <= 4096);
    let plain: shape::Payload<'_> = serde_json::from_str(&json).expect("the same shape");
    assert_eq!((plain.model_id, plain.descriptors[0].path), ("bench", "action"));
    for leaf in &plain.descriptors[0].leaves {
        let tokens: Vec<_> = leaf.tokens.iter().filter_map(|&id| trie_core::TokenId::new(id)).collect();
        assert_eq!(trie.find(&tokens).and_then(|found| trie.name(found)).as_deref(), Some(leaf.name));
    }

    let mut group = criterion.benchmark_group(format!("payload/{}-bytes/{}-trie-bytes", text.len(), trie.nbytes()));
    group.bench_function("cold", |b| {
        let mut cache = TrieCache::default();
        b.iter(|| {
            cache.clear();
            ready(&cache.payload(black_box(text), Some(N_VOCAB)).expect("a good payload"))
        });
    });
    group.bench_function("cached", |b| {
        let mut cache = TrieCache::default();
        b.iter(|| ready(&cache.payload(black_box(text), Some(N_VOCAB)).expect("a good payload")));
        assert_eq!(cache.stats().misses, 1);
    });
    group.bench_function("serde_json", |b| {
        b.iter(|| serde_json::from_slice::<shape::Payload<'_>>(black_box(text)).is_ok());
    });
    group.bench_function("sha256", |b| b.iter(|| Sha256::digest(black_box(text))));
    group.finish();
}

criterion_group!(benches, payload);
criterion_main!(benches);
