//! The language-neutral cases of `tests/vectors/`, on the core. Chains of other samplers run in `llama-sampler`.
//!
//! `estimate_bytes` there describes another implementation's structure and is not checked.

use crate::common::vectors::{cases_of, tokens};
use crate::common::{id, ids};
use serde_json::Value;
use std::sync::Arc;
use trie_core::{Mode, Sampler, SamplerOptions, SpanRules, Status, Trie};
use trie_formats::{Payload, TrieCache};

fn cases(kind: &str) -> Vec<Value> {
    cases_of("payload_and_sampler", kind)
}

#[test]
fn build_trie() {
    for case in cases("build_trie") {
        let what = &case["id"];
        let mut builder = Trie::builder();
        for leaf in case["input"]["leaves"].as_array().unwrap() {
            builder.push(leaf["name"].as_str(), &ids(&tokens(&leaf["tokens"])));
        }
        let trie = builder.build().unwrap();
        let expect = &case["expect"];
        assert_eq!(trie.len() as u64, expect["terminals"].as_u64().unwrap(), "{what}");
        assert_eq!(trie.nodes() as u64, expect["node_count_including_root"].as_u64().unwrap(), "{what}");
        for node in expect["nodes"].as_array().unwrap() {
            let path = tokens(&node["path"]);
            let at = trie.walk(&ids(&path));
            assert_eq!(at.is_ok(), node["exists"].as_bool().unwrap(), "{what} {path:?}");
            let Ok(at) = at else { continue };
            assert_eq!(trie.is_terminal(at), node["is_terminal"].as_bool().unwrap(), "{what} {path:?}");
            assert_eq!(trie.children(at), ids(&tokens(&node["children"])), "{what} {path:?}");
            let unique = trie.leaf_at(at).is_some() && trie.children(at).is_empty();
            assert_eq!(unique, node["unique_continuation"].as_bool().unwrap(), "{what} {path:?}");
            let name = trie.leaf_at(at).and_then(|leaf| trie.name(leaf));
            assert_eq!(name.as_deref(), node["leaf_name"].as_str(), "{what} {path:?}");
        }
    }
}

#[test]
fn cache() {
    for case in cases("cache") {
        let input = &case["input"];
        match case["id"].as_str().unwrap() {
            // That its key is the digest is tested where keys can be seen.
            "cache-key-sha256" => every_byte_is_in_the_key(input["payload_text"].as_str().unwrap()),
            "cache-same-names-other-tokens" => {
                let mut cache = TrieCache::default();
                for text in input["inits"].as_array().unwrap() {
                    cache.payload(text.as_str().unwrap().as_bytes(), None).unwrap();
                }
                assert_eq!(case["expect"]["distinct_tries"], cache.stats().misses);
            }
            "cache-free-twice-safe-clone" => a_clone_outlives_the_cache(),
            other => panic!("unknown case {other}"),
        }
    }
}

fn every_byte_is_in_the_key(text: &str) {
    let mut cache = TrieCache::default();
    for expected in [0, 1] {
        cache.payload(text.as_bytes(), None).unwrap();
        assert_eq!((cache.stats().hits, cache.stats().misses), (expected, 1));
    }
    let (mut changed, mut usable) = (text.as_bytes().to_vec(), 0);
    for at in 0..text.len() {
        changed[at] ^= 1;
        usable += usize::from(cache.payload(&changed, None).is_ok());
        changed[at] ^= 1;
    }
    assert!(usable > 20, "{usable} texts that differ in one byte are payloads");
    assert_eq!(cache.stats().hits, 1);
    cache.payload(text.as_bytes(), Some(1000)).unwrap();
    assert_eq!(cache.stats().hits, 1, "the vocabulary is in the key");
}

fn a_clone_outlives_the_cache() {
    let mut cache = TrieCache::default();
    let text = br#"{"descriptors":[{"path":"a","leaves":[{"name":"A","tokens":[1,2]},{"name":"B","tokens":[3]}]}]}"#;
    let first = cache.payload(text, None).unwrap();
    let (clone, gone) = (Arc::clone(&first), Arc::downgrade(&first));
    drop((first, cache));
    let (_, trie) = clone.tries().next().unwrap();
    assert_eq!(trie.find(&ids(&[3])).and_then(|leaf| trie.name(leaf)).as_deref(), Some("B"));
    drop(clone);
    assert!(gone.upgrade().is_none(), "nothing holds it any more");
}

/// A row that holds the candidates of a case; what is no candidate cannot be chosen.
fn row(candidates: &Value, n_vocab: usize) -> Vec<f32> {
    let mut row = vec![f32::NEG_INFINITY; n_vocab];
    for pair in candidates.as_array().unwrap() {
        row[pair[0].as_u64().unwrap() as usize] = pair[1].as_f64().unwrap() as f32;
    }
    row
}

fn run(case: &Value) {
    let (input, what) = (&case["input"], &case["id"]);
    let text = input["payload_text"].as_str().map_or_else(|| input["payload"].to_string(), str::to_owned);
    let steps = input["steps"].as_array().unwrap();
    let n_vocab = steps[0]["options"]["n_vocab"].as_u64().unwrap_or(1000) as usize;
    let payload = Payload::from_json(text.as_bytes(), Some(n_vocab));
    assert_eq!(payload.is_ok(), steps[0]["expect"] == "non_null", "{what}: {payload:?}");
    let Ok(payload) = payload else { return };
    assert_eq!(payload.report.out_of_vocabulary > 0, steps[0]["expect_warning"] == true, "{what}");
    let rules = Arc::new(SpanRules::new(payload.constraints, n_vocab).unwrap());
    let mode = if input["mode"] == 0 { Mode::Greedy } else { Mode::Sampled };
    let new =
        |seed| Sampler::new(rules.clone(), SamplerOptions { mode, seed: Some(seed), ..Default::default() }).unwrap();
    let mut sampler = new(0);
    for step in &steps[1..] {
        match step["op"].as_str().unwrap() {
            "apply" => {
                let mut masked = row(&step["candidates"], n_vocab);
                sampler.mask(&mut masked).unwrap();
                for (token, expected) in step["expect_logit_by_id"].as_object().unwrap() {
                    let expected = expected.as_f64().map_or(f32::NEG_INFINITY, |logit| logit as f32);
                    assert_eq!(masked[token.parse::<usize>().unwrap()], expected, "{what} token {token}");
                }
            }
            "accept" => _ = sampler.span_mut().accept(id(step["token"].as_u64().unwrap() as u32)).unwrap(),
            "reset" => sampler.reset(),
            "activate" => sampler.span_mut().activate(step["path"].as_str().unwrap()).unwrap(),
            "chain_sample" => {
                // The draw at the chain's temperature; greedy needs none.
                let row = row(&step["candidates"], n_vocab);
                let drawn: Vec<u64> = (0..step["seeds"].as_u64().unwrap() as u32)
                    .map(|seed| {
                        let mut fresh = new(seed);
                        *fresh.span_mut() = sampler.span().clone();
                        u64::from(fresh.sample(&row).unwrap().get())
                    })
                    .collect();
                if let Some(all) = step["expect_all"].as_u64() {
                    assert!(drawn.iter().all(|&token| token == all), "{what}: {drawn:?}");
                }
                for token in step["expect_support"].as_array().into_iter().flatten() {
                    let count = drawn.iter().filter(|&&drawn| drawn == token.as_u64().unwrap()).count() as u64;
                    assert!(count >= step["expect_min_count_each"].as_u64().unwrap(), "{what}: {token} {count} times");
                }
            }
            "state" => {
                let leaf = sampler.span().leaf().and_then(|leaf| leaf.name);
                assert_eq!(leaf.as_deref(), step["expect"]["completed_leaf"].as_str(), "{what}");
                assert_eq!(sampler.status() == Status::Active, step["expect"]["active"].as_bool().unwrap(), "{what}");
            }
            other => panic!("{what}: unknown step {other}"),
        }
    }
}

#[test]
fn sampler_scripts() {
    cases("sampler_script").iter().for_each(run);
}
