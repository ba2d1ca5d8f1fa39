//! The bytes of a byte trie: what comes back from them, and what is refused.

use proptest::prelude::*;
use trie_core::{ByteTrie, TokenId};
use trie_formats::{ByteTrieError, ByteTrieImage as _};

/// Token n is the n-th text.
fn trie(texts: &[Vec<u8>]) -> ByteTrie {
    ByteTrie::new(texts.iter().zip(TokenId::all(texts.len())).map(|(bytes, token)| (&bytes[..], token))).unwrap()
}

/// Few different bytes, so that tokens repeat, nest and share; both ends of the range.
fn texts(length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => b'a'..b'd', 1 => Just(0), 1 => Just(255)], 0..length)
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
        let trie = trie(&tokens);
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
        let mut image = trie(&tokens).to_bytes();
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
        let image = trie(&tokens).to_bytes();
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
    let image = trie(&[b"a".to_vec(), b"ab".to_vec(), b"b".to_vec()]).to_bytes();
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
    damaged(60, 1 << 31, "tokens, item 0: 2147483648 is not a token id");
    damaged(72, u32::from_le_bytes(*b"\0bbb"), "bytes, item 2: siblings do not ascend");
    let mut summed = image.clone();
    summed[30] ^= 1;
    assert!(says(&summed).to_string().starts_with("damaged: checksum: 0x"));
    let twice = trie(&[b"a".to_vec(), b"a".to_vec()]).to_bytes();
    let error = says(&patched(&twice, 24 + 4 * 5, 2)).to_string();
    assert_eq!(error, "damaged: tokens, item 1: tokens of the same bytes do not ascend");
}
