//! Sets of texts on real vocabularies: tokens by their bytes, every tokenization, and sets made in portions.

use crate::common::{id, tiny_model, vocab_files};
use llama_sampler::vocab_from_gguf;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;
use trie_core::{BuildError, ByteTrie, LeafId, TokenId, Trie};
use trie_formats::{ByteTrieImage as _, ExternalBuilder};
use trie_text::{TextError, TextStream, Texts, Tokenization};

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

#[test]
fn tokens_by_their_bytes() {
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = vocab_from_gguf(&path).unwrap();
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
        for token in texts.iter().step_by(texts.len() / test_budget::cases(25).max(4) as usize) {
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

/// On every vocabulary there is: what a set allows is what spells its values.
#[test]
fn every_tokenization_and_open_ends_on_real_vocabularies() {
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = vocab_from_gguf(&path).unwrap();
        let values = ["yes", "yes, sir", "naïve", "<|im_end|>", "日本"];
        for (prefix, suffix) in [("", ""), ("answer: \"", "\"")] {
            let texts = all().with_prefix(prefix).with_suffix(suffix).with_healing(true);
            let made = texts.trie(&vocab, &values).unwrap();
            let canonical = texts.with_tokenization(Tokenization::Canonical).trie(&vocab, &values).unwrap();
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

            let open = texts.with_tokenization(Tokenization::OpenEnd).trie(&vocab, &values).unwrap();
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

/// Portions of any size, and hardly any memory, give the set that all values at once give.
#[test]
fn texts_in_portions() {
    let rows = test_budget::cases(2000).max(300) as usize;
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = vocab_from_gguf(&path).unwrap();
        let values: Vec<String> = (0..rows).map(|row| format!("Item {} of {row}é", row * 7919 % 900)).collect();
        for (prefix, suffix) in [("", ""), ("{\"a\": \"", "\"")] {
            let texts = Texts::default().with_prefix(prefix).with_suffix(suffix);
            let expected = texts.trie(&vocab, &values);
            for (portion, budget) in [(1, 0), (rows / 3, 10_000), (5000, usize::MAX)] {
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
    let vocab = vocab_from_gguf(tiny_model()).unwrap();
    for tokenization in [Tokenization::All, Tokenization::OpenEnd] {
        let texts = all().with_tokenization(tokenization);
        let made = texts.trie_unless(&vocab, &["some", "texts"], &|| true);
        assert!(matches!(made, Err(TextError::Build(BuildError::Stopped))), "{made:?}");
        assert!(texts.trie_unless(&vocab, &["some", "texts"], &|| false).is_ok());
    }
}
