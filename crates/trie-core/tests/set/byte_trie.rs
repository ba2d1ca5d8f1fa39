//! The byte trie against a scan over all tokens.

use proptest::prelude::*;
use trie_core::{ByteTrie, ByteTrieError, TokenId};

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

/// The trie that a list of what is in this one makes.
fn rebuilt(trie: &ByteTrie) -> ByteTrie {
    let mut found: Vec<(Vec<u8>, TokenId)> = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(bytes) = open.pop() {
        found.extend(trie.equal(&bytes).iter().map(|&token| (bytes.clone(), token)));
        let longer = (0..=255).map(|byte| [&bytes[..], &[byte]].concat());
        open.extend(longer.filter(|bytes| !trie.starting_with(bytes).is_empty()));
    }
    ByteTrie::new(found.iter().map(|(bytes, token)| (&bytes[..], *token))).unwrap()
}

/// Writes a word and makes the checksum right again, which is CRC-32 of all but itself.
fn patched(image: &[u8], at: usize, word: u32) -> Vec<u8> {
    let mut image = image.to_vec();
    let end = image.len().min(at + 4);
    image[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
    let sum = crc32fast::hash(&[&image[..20], &image[24..]].concat());
    image[20..24].copy_from_slice(&sum.to_le_bytes());
    image
}

proptest! {
    #[test]
    fn comes_back_from_bytes(tokens in prop::collection::vec(texts(12), 0..60)) {
        let trie = Naive(tokens).trie();
        let image = trie.to_bytes();
        prop_assert_eq!(image.len(), 24 + trie.nbytes());
        prop_assert_eq!(ByteTrie::from_bytes(&image), Ok(trie.clone()));
        prop_assert_eq!(rebuilt(&trie), trie);
    }

    /// With a right checksum, so that the arrays themselves must be checked.
    #[test]
    fn what_is_accepted_is_a_trie(
        tokens in prop::collection::vec(texts(5), 0..12),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![3 => 0..20u32, 1 => any::<u32>()]),
            1..4,
        ),
    ) {
        let mut image = Naive(tokens).trie().to_bytes();
        for (at, word) in changes {
            let words = (image.len() - 12).div_ceil(4);
            let at = 12 + 4 * at.index(words);
            image = patched(&image, at, word);
        }
        if let Ok(trie) = ByteTrie::from_bytes(&image) {
            prop_assert_eq!(&trie.to_bytes(), &image);
            prop_assert_eq!(rebuilt(&trie), trie);
        }
    }

    #[test]
    fn other_bytes_are_refused(
        tokens in prop::collection::vec(texts(5), 0..12),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
        length in any::<prop::sample::Index>(),
    ) {
        let image = Naive(tokens).trie().to_bytes();
        let mut flipped = image.clone();
        flipped[at.index(image.len())] ^= 1 << bit;
        prop_assert!(ByteTrie::from_bytes(&flipped).is_err());
        prop_assert!(ByteTrie::from_bytes(&image[..length.index(image.len())]).is_err());
        prop_assert!(ByteTrie::from_bytes(&[&image[..], b"\0"].concat()).is_err());
    }
}

#[test]
fn damage_has_a_name() {
    // Nodes: root, a, b, ab; tokens by bytes: a (0), ab (1), b (2).
    let image = Naive(vec![b"a".to_vec(), b"ab".to_vec(), b"b".to_vec()]).trie().to_bytes();
    let says = |image: &[u8]| ByteTrie::from_bytes(image).unwrap_err();
    let damaged = |at, word, what: &str| {
        let message = says(&patched(&image, at, word)).to_string();
        assert_eq!(message, format!("damaged: {what}"));
    };
    assert_eq!(says(b"GGUF"), ByteTrieError::NotAByteTrie { found: b"GGUF".to_vec() });
    assert_eq!(says(b""), ByteTrieError::Length { bytes: 0, need: 24 });
    assert_eq!(says(&patched(&image, 8, 2)), ByteTrieError::Version { found: 2, known: 1 });
    assert_eq!(says(&patched(&image, 12, u32::MAX)), ByteTrieError::Length { bytes: 76, need: 38_654_705_695 });
    damaged(24, 2, "first_child, item 4: the nodes are not numbered from the root to the last");
    damaged(28, 1, "first_child, item 1: 1 after 1, of 4 nodes");
    damaged(44, 1, "first_token, item 0: the root has all tokens");
    damaged(48, 3, "first_token, item 1: tokens 3..2");
    damaged(56, 9, "first_token, item 3: 9 is not in 0..2 of node 1");
    damaged(60, 1 << 31, "tokens, item 0: 2147483648 is no token id");
    damaged(72, u32::from_le_bytes(*b"\0bbb"), "bytes, item 2: siblings do not ascend");
    let mut summed = image.clone();
    summed[30] ^= 1;
    assert!(says(&summed).to_string().starts_with("damaged: checksum: 0x"));
    let twice = Naive(vec![b"a".to_vec(), b"a".to_vec()]).trie().to_bytes();
    let error = says(&patched(&twice, 24 + 4 * 5, 2)).to_string();
    assert_eq!(error, "damaged: tokens, item 1: tokens of the same bytes do not ascend");
}
