//! Sets of texts: tokens by their bytes on real vocabularies, and every spelling against brute force.

mod common;

use common::{id, tiny_model, vocab_files};
use llama_sampler::{
    BuildError, ByteTrie, ExternalBuilder, LeafId, Spelling, TextError, TextStream, Texts, TokenId, Trie, Vocab,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

const ALL: Texts<'static> = Texts { prefix: "", suffix: "", spelling: Spelling::All, heal: false };

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
        let image = trie.to_bytes();
        let started = Instant::now();
        assert_eq!(ByteTrie::from_bytes(&image).as_ref(), Ok(trie), "from {} bytes", image.len());
        println!("{:.3} s from its bytes", started.elapsed().as_secs_f64());

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
        let mut lost = None;
        for (row, value) in values.iter().enumerate() {
            let found = brute_force(&pieces, format!("{value}{suffix}").as_bytes());
            lost = lost.or(found.is_empty().then_some(row));
            for tokens in found {
                expected.entry(tokens).or_insert(row);
            }
        }
        match (Texts { suffix: &suffix, ..ALL }.trie(&vocab, &values), lost) {
            (Err(TextError::Unspellable { row, .. }), Some(lost)) => prop_assert_eq!(row, lost),
            (Ok(made), None) => {
                let trie = made.trie;
                let row = |leaf| trie.input_row(leaf).unwrap();
                let found: BTreeMap<_, _> = sequences(&trie).into_iter().map(|(tokens, leaf)| (tokens, row(leaf))).collect();
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

/// On every vocabulary there is: what a set allows is what spells its values.
#[test]
fn every_spelling_and_open_ends_on_real_vocabularies() {
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = Vocab::from_gguf(&path).unwrap();
        let values = ["yes", "yes, sir", "naïve", "<|im_end|>", "日本"];
        for (prefix, suffix) in [("", ""), ("answer: \"", "\"")] {
            let texts = Texts { prefix, suffix, heal: true, ..ALL };
            let made = texts.trie(&vocab, &values).unwrap();
            let canonical = Texts { spelling: Spelling::Canonical, ..texts }.trie(&vocab, &values).unwrap();
            assert_eq!(made.trie.len(), values.len(), "{}", path.display());
            let own: BTreeMap<_, _> = canonical.trie.leaves().map(|leaf| (leaf.name, leaf.tokens)).collect();
            let other: BTreeMap<_, _> = made.trie.leaves().map(|leaf| (leaf.name, leaf.tokens)).collect();
            assert_eq!(own, other, "canonical sequences: {}", path.display());
            let mut forced = made.trie.forced(made.trie.root());
            assert!(forced.by_ref().count() <= 12);
            let found = sequences(&made.trie);
            assert!(found.len() > 2 * values.len(), "{} sequences in {}", found.len(), path.display());
            let bytes: BTreeMap<_, _> =
                canonical.trie.leaves().map(|leaf| (leaf.name, vocab.join(&leaf.tokens).unwrap())).collect();
            for (tokens, leaf) in found {
                let name = made.trie.name(leaf).map(Cow::into_owned);
                assert_eq!(vocab.join(&tokens).unwrap(), bytes[&name], "{tokens:?}");
                assert!(tokens.iter().all(|&token| vocab.is_text(token)));
            }

            let open = Texts { spelling: Spelling::OpenEnd, ..texts }.trie(&vocab, &values).unwrap();
            let mut beyond = 0;
            for (tokens, leaf) in sequences(&open.trie) {
                let name = open.trie.name(leaf).map(Cow::into_owned);
                let (spelled, value) = (vocab.join(&tokens).unwrap(), &bytes[&name]);
                assert!(spelled.starts_with(value), "{tokens:?}");
                if own[&name] != tokens {
                    let (&last, kept) = tokens.split_last().unwrap();
                    assert!(own[&name].starts_with(kept) && spelled.len() > value.len());
                    assert!(vocab.join(kept).unwrap().len() < value.len() && vocab.is_text(last));
                    beyond += 1;
                }
            }
            assert!(beyond > 0, "{}", path.display());
        }
    }
}

#[test]
fn more_spellings_than_there_are_numbers() {
    let vocab = Vocab::from_tokens([b"a".as_slice(), b"aa"], Vec::new(), Vec::new()).unwrap();
    let made = ALL.trie(&vocab, &["a".to_owned(), "a".repeat(100_000)]).unwrap();
    assert_eq!((made.trie.len(), made.trie.nodes(), made.trie.max_depth()), (2, 100_001, 100_000));
    assert_eq!(made.trie.leaf(LeafId::new(1)).unwrap().tokens, [id(1)].repeat(50_000));
}

/// Portions of any size, and hardly any memory, give the set that all values at once give.
#[test]
fn texts_in_portions() {
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = Vocab::from_gguf(&path).unwrap();
        let values: Vec<String> = (0..2000).map(|row| format!("Item {} of {row}é", row * 7919 % 900)).collect();
        for (prefix, suffix) in [("", ""), ("{\"a\": \"", "\"")] {
            let texts = Texts { prefix, suffix, ..Texts::default() };
            let expected = texts.trie(&vocab, &values);
            for (portion, budget) in [(1, 0), (700, 10_000), (5000, usize::MAX)] {
                let mut stream = TextStream::new(&vocab, &texts, ExternalBuilder::new(budget)).unwrap();
                let pushed = values.chunks(portion).try_for_each(|values| stream.push(values));
                let made = pushed.and_then(|()| stream.finish());
                match (&expected, made) {
                    (Ok(expected), Ok((trie, report))) => {
                        assert!(trie == expected.trie && report == expected.report);
                        assert!(
                            trie.leaves().all(|leaf| trie.input_row(leaf.index) == expected.trie.input_row(leaf.index))
                        );
                    }
                    (Err(expected), Err(error)) => assert_eq!(error.to_string(), expected.to_string()),
                    (expected, made) => panic!("{}: {expected:?}, {made:?}", path.display()),
                }
            }
        }
    }
}

#[test]
fn whoever_waits_can_stop_it() {
    let vocab = Vocab::from_gguf(tiny_model()).unwrap();
    for spelling in [Spelling::All, Spelling::OpenEnd] {
        let texts = Texts { spelling, ..ALL };
        let made = texts.trie_unless(&vocab, &["some", "texts"], &|| true);
        assert!(matches!(made, Err(TextError::Build(BuildError::Stopped))), "{made:?}");
        assert!(texts.trie_unless(&vocab, &["some", "texts"], &|| false).is_ok());
    }
}
