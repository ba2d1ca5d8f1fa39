//! Large tables, and the sets that the `fst` crate makes of them.

#![allow(dead_code, reason = "each bench takes what it needs")]

use tokentrie_benches::Random;
use trie_core::{TokenId, Trie};

/// Bytes of a row of four as a key.
pub(crate) const KEY: usize = 16;

/// Builds a token id.
pub(crate) fn id(raw: u32) -> TokenId {
    TokenId::new(raw).expect("a token id")
}

/// Rows of four, with so many ids in each place.
pub(crate) fn table(rows: usize, ids: [u64; 4]) -> Vec<TokenId> {
    let mut random = Random(4);
    (0..rows).flat_map(|_| ids).map(|below| id(random.number_below(below))).collect()
}

/// The bytes of a row that sort as the row does: each id big-endian.
fn key(row: &[TokenId]) -> [u8; KEY] {
    let mut key = [0; KEY];
    key.chunks_exact_mut(4).zip(row).for_each(|(bytes, token)| bytes.copy_from_slice(&token.get().to_be_bytes()));
    key
}

/// A set of the `fst` crate. It takes keys in order, so sorting them is part of making it.
pub(crate) fn fst(tokens: &[TokenId]) -> fst::Set<Vec<u8>> {
    let mut keys: Vec<_> = tokens.chunks_exact(4).map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    fst::Set::from_iter(keys).expect("sorted keys")
}

/// Returns the node that four bytes lead to, if any.
pub(crate) fn fst_step<D: AsRef<[u8]>>(fst: &fst::raw::Fst<D>, from: usize, token: TokenId) -> Option<usize> {
    let step = |at: usize, byte| {
        let node = fst.node(at);
        node.find_input(byte).map(|nth| node.transition_addr(nth))
    };
    token.get().to_be_bytes().into_iter().try_fold(from, step)
}

/// Panics unless both hold the same leaves.
pub(crate) fn check_fst<D: AsRef<[u8]>>(set: &fst::Set<D>, trie: &Trie) {
    let (mut keys, mut leaves) = (set.stream(), trie.leaves());
    while let Some(found) = fst::Streamer::next(&mut keys) {
        assert_eq!(found, key(&leaves.next().expect("as many leaves").tokens));
    }
    assert!(leaves.next().is_none());
}
