//! Vocabularies that are made from a list of tokens.

use trie_core::TokenId;
use trie_text::{TokenKind, Vocab, VocabError};

fn id(id: u32) -> TokenId {
    TokenId::new(id).unwrap()
}

fn ids<const N: usize>(ids: [u32; N]) -> Vec<TokenId> {
    ids.into_iter().map(id).collect()
}

#[test]
fn a_vocabulary_from_a_list() {
    let vocab = Vocab::from_tokens([b"a".as_slice(), b"bc", b"", b"</s>"], ids([3]), ids([3, 3])).unwrap();
    assert_eq!((vocab.len(), vocab.is_empty(), vocab.control()), (4, false, &ids([3])[..]));
    assert_eq!(vocab.piece(id(0)), Some(&b"a"[..]));
    assert_eq!(vocab.piece(id(2)), Some(&b""[..]));
    assert_eq!(vocab.detokenize(&ids([1, 0, 2, 1])).unwrap(), b"bcabc");
    let outside = vocab.detokenize(&ids([0, 4])).unwrap_err();
    assert!(matches!(outside, VocabError::OutsideVocabulary { position: 1, .. }), "{outside}");
    assert!(matches!(vocab.tokenize("a", false, false), Err(VocabError::NoTokenizer)));
    assert!(Vocab::from_tokens([b"a"], ids([1]), vec![]).is_err());
    assert!(Vocab::from_tokens(Vec::<Vec<u8>>::new(), vec![], vec![]).is_err());
    let other = Vocab::from_tokens([b"ab".as_slice(), b"c", b"", b"</s>"], ids([3]), ids([3])).unwrap();
    assert_ne!(vocab.fingerprint(), other.fingerprint());
}

#[test]
fn kinds_of_tokens() {
    let tokens = [("a", TokenKind::Text), ("", TokenKind::Text), ("<s>", TokenKind::Control), ("\n", TokenKind::Byte)];
    let vocab = Vocab::new(tokens, vec![id(0), id(0)], None).unwrap();
    let kinds: Vec<_> = (0..5).map(|token| vocab.kind(id(token)).map(TokenKind::name)).collect();
    assert_eq!(kinds, [Some("text"), Some("unused"), Some("control"), Some("byte"), None]);
    assert_eq!((vocab.end_of_generation(), vocab.control()), (&[id(0)][..], &[id(2)][..]));
    assert_eq!((0..5).map(|token| vocab.is_text(id(token))).collect::<Vec<_>>(), [false, false, false, true, false]);
    assert!(!vocab.can_tokenize());
    assert!(Vocab::new([("a", TokenKind::Text)], vec![id(1)], None).is_err());
}
