//! Sets of texts: every tokenization against brute force.

use proptest::prelude::*;
use std::collections::BTreeMap;
use trie_core::{LeafId, TokenId, Trie};
use trie_text::{TextError, Texts, Tokenization, Vocab};

fn id(id: u32) -> TokenId {
    TokenId::new(id).unwrap()
}

fn all() -> Texts<'static> {
    Texts::default().with_tokenization(Tokenization::All)
}

/// Every sequence that ends at a leaf, with the leaf.
fn sequences(trie: &Trie) -> BTreeMap<Vec<TokenId>, LeafId> {
    let mut found = BTreeMap::new();
    let mut open = vec![(Vec::new(), trie.root())];
    while let Some((tokens, at)) = open.pop() {
        for &token in trie.children(at) {
            open.push(([&tokens[..], &[token]].concat(), trie.step(at, token).unwrap()));
        }
        found.extend(trie.leaf_at(at).map(|leaf| (tokens, leaf)));
    }
    found
}

/// Every sequence that spells the text, found by trying every token at every byte position.
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
    fn every_tokenization(
        pieces in prop::collection::vec("[ab]{0,3}", 1..9),
        values in prop::collection::vec("[ab]{1,7}", 1..5),
        suffix in "[ab]{0,1}",
    ) {
        let pieces: Vec<Vec<u8>> = pieces.into_iter().map(String::into_bytes).collect();
        let vocab = Vocab::from_tokens(&pieces, Vec::new(), Vec::new()).unwrap();
        let mut expected = BTreeMap::new();
        let mut lost = None;
        for (row, value) in values.iter().enumerate() {
            let found = brute_force(&pieces, format!("{value}{suffix}").as_bytes());
            lost = lost.or(found.is_empty().then_some(row));
            for tokens in found {
                expected.entry(tokens).or_insert(row);
            }
        }
        match (all().with_suffix(&suffix).trie(&vocab, &values), lost) {
            (Err(TextError::Unspellable { row, .. }), Some(lost)) => prop_assert_eq!(row, lost),
            (Ok(made), None) => {
                let trie = made.trie;
                let row = |leaf| trie.input_row(leaf).unwrap();
                let found = sequences(&trie).into_iter().map(|(tokens, leaf)| (tokens, row(leaf)));
                let found: BTreeMap<_, _> = found.collect();
                prop_assert_eq!(found, expected);
                for leaf in trie.leaves() {
                    prop_assert_eq!(leaf.name.as_deref(), Some(values[row(leaf.index)].as_str()));
                    prop_assert_eq!(trie.find(&leaf.tokens), Some(leaf.index));
                }
            }
            (other, lost) => prop_assert!(false, "{other:?} where {lost:?} is lost"),
        }
    }
}

#[test]
fn more_tokenizations_than_there_are_numbers() {
    let vocab = Vocab::from_tokens([b"a".as_slice(), b"aa"], Vec::new(), Vec::new()).unwrap();
    let made = all().trie(&vocab, &["a".to_owned(), "a".repeat(100_000)]).unwrap();
    assert_eq!((made.trie.len(), made.trie.nodes(), made.trie.max_depth()), (2, 100_001, 100_000));
    assert_eq!(made.trie.leaf(LeafId::new(1)).unwrap().tokens, [id(1)].repeat(50_000));
}
