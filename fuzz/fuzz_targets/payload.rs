//! Any bytes: an error or a trie in which every leaf is found again, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trie_formats::Payload;

fuzz_target!(|text: &[u8]| {
    let Ok(payload) = Payload::from_json(text, Some(1 << 20)) else { return };
    for (_, trie) in payload.tries() {
        for leaf in trie.leaves() {
            assert_eq!(trie.find(&leaf.tokens), Some(leaf.index));
        }
    }
});
