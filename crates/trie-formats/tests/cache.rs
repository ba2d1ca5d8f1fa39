//! The session cache: what shares a trie and what must not.

use std::num::NonZeroUsize;
use trie_formats::{Payload, TrieCache};

fn text(model: &str, name: &str, token: u32, space: &str) -> String {
    format!(
        r#"{{"modelId":"{model}",{space}"descriptors":[{{"path":"a","leaves":[{{"name":"{name}","tokens":[1,{token}]}},
            {{"name":"Z","tokens":[9]}}]}}]}}"#
    )
}

fn shares(a: &Payload, b: &Payload) -> bool {
    std::sync::Arc::ptr_eq(&a.constraints, &b.constraints)
}

#[test]
fn same_text_and_same_content_share_a_trie() {
    let mut cache = TrieCache::default();
    let first = cache.payload(text("m", "A", 2, "").as_bytes(), Some(10)).unwrap();
    let again = cache.payload(text("m", "A", 2, "").as_bytes(), Some(10)).unwrap();
    let spaced = cache.payload(text("m", "A", 2, " \n").as_bytes(), Some(10)).unwrap();
    let turned = br#"{"descriptors":[{"leaves":[{"tokens":[9],"name":"Z"},
        {"tokens":[1,2],"name":"A"}],"path":"a"}],"modelId":"m"}"#;
    let turned = cache.payload(turned, Some(10)).unwrap();
    assert!(shares(&first, &again) && shares(&first, &spaced) && shares(&first, &turned));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.content_hits, stats.misses, stats.len, stats.capacity), (1, 2, 1, 3, 128));
}

#[test]
fn another_model_name_token_or_vocabulary_does_not() {
    let mut cache = TrieCache::default();
    let first = cache.payload(text("m", "A", 2, "").as_bytes(), Some(10)).unwrap();
    for (model, name, token) in [("n", "A", 2), ("m", "B", 2), ("m", "A", 3)] {
        let other = cache.payload(text(model, name, token, "").as_bytes(), Some(10)).unwrap();
        assert!(!shares(&first, &other), "{model} {name} {token}");
    }
    // In a vocabulary of 9 tokens, leaf Z is gone.
    let smaller = cache.payload(text("m", "A", 2, "").as_bytes(), Some(9)).unwrap();
    assert_eq!((smaller.tries().next().unwrap().1.len(), smaller.report.out_of_vocabulary), (1, 1));
    assert_eq!(first.tries().next().unwrap().1.len(), 2);
}

#[test]
fn eviction_never_invalidates_a_trie_in_use() {
    let mut cache = TrieCache::new(NonZeroUsize::new(2).unwrap());
    let kept = cache.payload(text("m", "A", 1, "").as_bytes(), None).unwrap();
    for token in 2..10 {
        cache.payload(text("m", "A", token, "").as_bytes(), None).unwrap();
    }
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.evictions, stats.len), (9, 7, 2));
    assert_eq!(kept.tries().next().unwrap().1.len(), 2);
    cache.clear();
    assert_eq!(cache.stats().len, 0);
}

#[test]
fn a_rejected_payload_leaves_no_trace() {
    let mut cache = TrieCache::default();
    assert!(cache.payload(b"{", None).is_err());
    assert_eq!(cache.stats(), TrieCache::default().stats());
}
