//! The byte trie against a scan over all tokens.

use proptest::prelude::*;
use trie_core::{ByteTrie, TokenId};

fn id(id: usize) -> TokenId {
    TokenId::try_from(id).unwrap()
}

/// The twin: every question is a pass over the list.
struct Naive(Vec<Vec<u8>>);

impl Naive {
    fn trie(&self) -> ByteTrie {
        ByteTrie::new(self.0.iter().enumerate().map(|(token, bytes)| (&bytes[..], id(token)))).unwrap()
    }

    fn those(&self, keep: impl Fn(&[u8]) -> bool) -> Vec<TokenId> {
        let mut found: Vec<(&[u8], TokenId)> =
            self.0.iter().enumerate().map(|(token, bytes)| (&bytes[..], id(token))).filter(|row| keep(row.0)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, token)| token).collect()
    }

    fn check(&self, trie: &ByteTrie, text: &[u8]) {
        assert_eq!(trie.starting_with(text), self.those(|bytes| bytes.starts_with(text)));
        assert_eq!(trie.equal(text), self.those(|bytes| bytes == text));
        let prefixes: Vec<TokenId> = trie.prefixes(text).flat_map(|(_, tokens)| tokens.iter().copied()).collect();
        assert_eq!(prefixes, self.those(|bytes| text.starts_with(bytes)));
        for (length, tokens) in trie.prefixes(text) {
            assert!(tokens.iter().all(|token| self.0[token.index()] == text[..length]));
        }
    }
}

/// Few different bytes, so that tokens repeat, nest and share; both ends of the range and longer than the sorting key.
fn texts(length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => b'a'..b'd', 1 => Just(0), 1 => Just(255)], 0..length)
}

proptest! {
    #[test]
    fn agrees_with_a_scan(
        tokens in prop::collection::vec(texts(12), 0..60),
        others in prop::collection::vec(texts(14), 20),
    ) {
        let naive = Naive(tokens);
        let trie = naive.trie();
        prop_assert_eq!(trie.len(), naive.0.len());
        for text in naive.0.iter().chain(&others) {
            for end in 0..=text.len() {
                naive.check(&trie, &text[..end]);
            }
        }
    }
}

#[test]
fn small_sets() {
    let empty = Naive(Vec::new());
    assert!(empty.trie().is_empty());
    assert_eq!(empty.trie(), ByteTrie::default());
    empty.check(&empty.trie(), b"");
    empty.check(&empty.trie(), b"a");
    let naive = Naive(vec![b"".to_vec(), b"".to_vec(), b"b".to_vec(), b"ab".to_vec(), b"ba".to_vec()]);
    let trie = naive.trie();
    assert_eq!((trie.len(), trie.nodes()), (5, 5));
    assert!(trie.nbytes() < 12 * trie.nodes() + 4 * trie.len());
    for text in [&b""[..], b"a", b"ab", b"abc", b"b", b"ba", b"bb", b"\0"] {
        naive.check(&trie, text);
    }
}
