//! Any bytes: an error or a trie that can be asked everything; verified ones hold every leaf where they say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trie_core::Trie;
use trie_formats::{FileOptions, TrieFile as _};

fuzz_target!(|file: &[u8]| {
    let file = signed(file);
    if let Ok(trie) = Trie::from_bytes(&file, FileOptions::default().with_verify(true)) {
        for leaf in trie.leaves() {
            assert_eq!(trie.find(&leaf.tokens), Some(leaf.index));
        }
    }
    let Ok(trie) = Trie::from_bytes(&file, FileOptions::default()) else { return };
    for leaf in trie.leaves() {
        let _ = (trie.find(&leaf.tokens), trie.name(leaf.index));
    }
    let mut open = vec![trie.root()];
    for _ in 0..1000 {
        let Some(at) = open.pop() else { break };
        let _ = (trie.leaf_at(at), trie.leaves_below(at), trie.ancestor(at, 2), trie.forced(at).count());
        assert!(trie.children(at).iter().all(|&token| token <= trie.max_token()));
        open.extend(trie.children(at).iter().filter_map(|&token| trie.step(at, token)));
    }
});

/// With the right checksum in the header, which a fuzzer does not find by itself.
fn signed(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    if file.len() >= 64 {
        let sections = usize::from(file[44]).min(16).min((file.len() - 64) / 32);
        let mut sum = crc32fast::Hasher::new();
        sum.update(&file[..60]);
        sum.update(&file[64..64 + 32 * sections]);
        file[60..64].copy_from_slice(&sum.finalize().to_le_bytes());
    }
    file
}
