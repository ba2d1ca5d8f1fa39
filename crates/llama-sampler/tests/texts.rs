//! Sets of texts: tokens by their bytes on real vocabularies, and every spelling against brute force.

mod common;

use common::{id, tiny_model, vocab_files};
use llama_sampler::{Spelling, TextError, Texts, TokenId, Vocab};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Instant;

fn all(limit: usize) -> Texts<'static> {
    Texts { spelling: Spelling::All { limit }, ..Texts::default() }
}

#[test]
fn tokens_by_their_bytes() {
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = Vocab::from_gguf(&path).unwrap();
        let started = Instant::now();
        let trie = vocab.by_bytes();
        let seconds = started.elapsed().as_secs_f64();
        let (nodes, bytes) = (trie.nodes(), trie.nbytes());
        println!("{}: {} tokens, {nodes} nodes, {bytes} bytes, {seconds:.3} s", path.display(), trie.len());
        assert!(bytes - 4 * trie.len() < 12 * nodes);

        let texts: Vec<TokenId> = (0..vocab.len() as u32).map(id).filter(|&token| vocab.is_text(token)).collect();
        assert_eq!(trie.len(), texts.len());
        assert!(
            vocab.control().iter().chain(vocab.end_of_generation()).all(|token| texts.binary_search(token).is_err())
        );
        let piece = |token: &TokenId| vocab.piece(*token).unwrap();
        for token in texts.iter().step_by(texts.len() / 25) {
            let longer = [piece(token), b" and more"].concat();
            let shorter = &piece(token)[..piece(token).len().div_ceil(2)];
            for text in [piece(token), shorter, &longer, b"", b"\xff", b"\0"] {
                let mut begin: Vec<TokenId> = texts.iter().copied().filter(|t| text.starts_with(piece(t))).collect();
                begin.sort_by_key(|t| piece(t).len());
                assert_eq!(vocab.prefix_tokens(text), begin);
                let longer: Vec<TokenId> = texts.iter().copied().filter(|t| piece(t).starts_with(text)).collect();
                assert_eq!(vocab.tokens_with_prefix(text), longer);
            }
        }
    }
}

/// Every sequence that spells the text, found by trying every token at every place.
fn brute_force(pieces: &[Vec<u8>], text: &[u8]) -> Vec<Vec<TokenId>> {
    if text.is_empty() {
        return vec![Vec::new()];
    }
    let begins = pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty() && text.starts_with(piece));
    begins
        .flat_map(|(token, piece)| {
            let rest = brute_force(pieces, &text[piece.len()..]);
            rest.into_iter().map(move |rest| [vec![id(token as u32)], rest].concat())
        })
        .collect()
}

proptest! {
    #[test]
    fn every_spelling(
        pieces in prop::collection::vec("[ab]{0,3}", 1..9),
        values in prop::collection::vec("[ab]{1,7}", 1..5),
        suffix in "[ab]{0,1}",
    ) {
        let pieces: Vec<Vec<u8>> = pieces.into_iter().map(String::into_bytes).collect();
        let vocab = Vocab::from_tokens(&pieces, Vec::new(), Vec::new()).unwrap();
        let mut expected = BTreeMap::new();
        let mut rows = 0;
        let mut lost = None;
        for (row, value) in values.iter().enumerate() {
            let found = brute_force(&pieces, format!("{value}{suffix}").as_bytes());
            rows += found.len();
            lost = lost.or(found.is_empty().then_some(row));
            for tokens in found {
                expected.entry(tokens).or_insert(row);
            }
        }
        let texts = Texts { suffix: &suffix, ..all(rows) };
        match (texts.trie(&vocab, &values), lost) {
            (Err(TextError::Unspellable { row, .. }), Some(lost)) => prop_assert_eq!(row, lost),
            (Ok(made), None) => {
                let found: BTreeMap<_, _> = made.trie.leaves().map(|leaf| {
                    let row = made.report.value_of(&made.trie, leaf.index).unwrap();
                    assert_eq!(leaf.name.as_deref(), Some(values[row].as_str()));
                    (leaf.tokens, row)
                }).collect();
                prop_assert_eq!(found, expected);
                let over = Texts { suffix: &suffix, ..all(rows - 1) }.trie(&vocab, &values);
                let refused = matches!(over, Err(TextError::TooMany { total, .. }) if total == rows as u64);
                prop_assert!(refused);
            }
            (other, lost) => prop_assert!(false, "{other:?} where {lost:?} is lost"),
        }
    }
}

#[test]
fn far_too_many_spellings() {
    let vocab = Vocab::from_tokens([b"a".as_slice(), b"aa"], Vec::new(), Vec::new()).unwrap();
    let error = all(1000).trie(&vocab, &["a".to_owned(), "a".repeat(100_000)]).unwrap_err();
    assert!(
        matches!(error, TextError::TooMany { row: 1, count: u64::MAX, total: u64::MAX, limit: 1000, .. }),
        "{error}"
    );
}
