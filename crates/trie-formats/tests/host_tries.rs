//! The same payload gives the same trie as in TypeScript and Python: they read the same file.

use crate::common::ids;
use crate::common::vectors::tokens;
use serde_json::Value;
use trie_core::Trie;
use trie_formats::Payload;

fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/host_tries.json");
    let mut all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    serde_json::from_value(all["cases"].take()).unwrap()
}

fn read(case: &Value) -> Result<Payload, trie_formats::PayloadError> {
    let text = case["payload_text"].as_str().map_or_else(|| case["payload"].to_string(), str::to_owned);
    Payload::from_json(text.as_bytes(), None)
}

fn check(what: &Value, trie: &Trie, expect: &Value) {
    assert_eq!(trie.nodes() as u64, expect["nodes"].as_u64().unwrap(), "{what}");
    let leaves: Vec<_> = trie.leaves().map(|leaf| (leaf.name.unwrap_or_default(), leaf.tokens)).collect();
    let named = |leaf: &Value| (leaf["name"].as_str().unwrap().to_owned(), ids(&tokens(&leaf["tokens"])));
    let expected: Vec<_> = expect["leaves"].as_array().unwrap().iter().map(named).collect();
    assert_eq!(leaves, expected, "{what}");
    for at in expect["at"].as_array().unwrap() {
        let prefix = tokens(&at["prefix"]);
        let node = trie.walk(&ids(&prefix)).unwrap();
        assert_eq!(trie.children(node), ids(&tokens(&at["children"])), "{what} {prefix:?}");
        assert_eq!(trie.forced(node).collect::<Vec<_>>(), ids(&tokens(&at["forced"])), "{what} {prefix:?}");
    }
}

#[test]
fn the_same_payload_gives_the_same_trie() {
    let mut refused = 0;
    for case in cases() {
        let what = &case["id"];
        let payload = read(&case);
        if case["error"] == true {
            assert!(payload.is_err(), "{what} is not refused");
            refused += 1;
            continue;
        }
        let payload = payload.unwrap_or_else(|error| panic!("{what}: {error}"));
        let expected = case["tries"].as_array().unwrap();
        let paths: Vec<_> = payload.tries().map(|(path, _)| path).collect();
        assert_eq!(paths, expected.iter().map(|trie| trie["path"].as_str().unwrap()).collect::<Vec<_>>(), "{what}");
        for ((_, trie), expect) in payload.tries().zip(expected) {
            check(what, trie, expect);
        }
    }
    assert!(refused > 10);
}
