//! Many texts at once: in parts and on several threads they have the tokens that they have one by one.

use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trie_core::TokenId;
use trie_text::{SplitPoints, SplitRule, TokenKind, Tokenizer, TokenizerError, Vocab};

/// Single bytes, some words, and one token that goes from one word into the next.
const WORDS: [&str; 6] = ["the", " the", " city", "city", " a", "s the"];

/// The longest tokens, from left to right.
#[derive(Debug)]
struct Longest {
    /// Whether all of a text is looked at, or one word after the other, as its split points say.
    whole: bool,
    bytes: AtomicUsize,
}

fn longest(mut text: &[u8], found: &mut Vec<TokenId>) {
    while let Some(&first) = text.first() {
        let fits = (256..).zip(WORDS).filter(|(_, word)| text.starts_with(word.as_bytes()));
        let word = fits.max_by_key(|(_, word)| word.len()).map(|(id, word)| (id, word.len()));
        let (id, length) = word.unwrap_or((first.into(), 1));
        found.push(TokenId::new(id).unwrap());
        text = &text[length..];
    }
}

fn points() -> SplitPoints {
    SplitPoints::new(SplitRule::Words { contractions: false }, false, [], []).unwrap()
}

impl Tokenizer for Longest {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        let mut found = Vec::new();
        if self.whole {
            longest(text.as_bytes(), &mut found);
        } else {
            points().parts(text).for_each(|part| longest(part.as_bytes(), &mut found));
        }
        Ok(found)
    }

    fn is_parallel(&self) -> bool {
        true
    }

    fn split_points(&self) -> Option<SplitPoints> {
        Some(points())
    }
}

fn vocab(whole: bool) -> (Vocab, Arc<Longest>) {
    let tokenizer = Arc::new(Longest { whole, bytes: AtomicUsize::new(0) });
    let pieces = (0..=255u8).map(|byte| vec![byte]).chain(WORDS.map(|word| word.as_bytes().to_vec()));
    let tokens = pieces.map(|piece| (piece, TokenKind::Text));
    let vocab = Vocab::new(tokens, Vec::new(), Some(Arc::clone(&tokenizer) as Arc<dyn Tokenizer>)).unwrap();
    (vocab, tokenizer)
}

fn one_by_one(vocab: &Vocab, texts: &[String], suffix: &str) -> Vec<Vec<TokenId>> {
    texts.iter().map(|text| vocab.tokenize(&format!("{text}{suffix}"), false, false).unwrap()).collect()
}

fn at_once(vocab: &Vocab, texts: &[String], suffix: &str) -> (Vec<Vec<TokenId>>, bool) {
    let found = vocab.tokenize_all(texts, "", suffix).unwrap();
    (found.iter().map(<[_]>::to_vec).collect(), found.in_parts())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(4)))]
    #[test]
    fn parts_have_the_tokens_of_the_whole(
        texts in prop::collection::vec("((the|city|s|a|é|'s)[ .]{0,2}){0,6}", 900..1100),
        suffix in "[ .]?",
    ) {
        let (vocab, _) = vocab(false);
        prop_assert_eq!(at_once(&vocab, &texts, &suffix), (one_by_one(&vocab, &texts, &suffix), true));
    }
}

#[test]
fn a_part_that_comes_again_is_looked_up() {
    let texts: Vec<String> = (0..5000).map(|row| format!("the city of {}", row % 50)).collect();
    let (vocab, tokenizer) = vocab(false);
    let before = tokenizer.bytes.load(Ordering::Relaxed);
    let (found, _) = at_once(&vocab, &texts, "");
    let asked = tokenizer.bytes.load(Ordering::Relaxed) - before;
    let all: usize = texts.iter().map(String::len).sum();
    assert!(asked < all / 20, "{asked} of {all} bytes were tokenized");
    assert_eq!(found, one_by_one(&vocab, &texts, ""));
}

#[test]
fn split_points_that_are_wrong_are_found_out() {
    let texts: Vec<String> = (0..2000).map(|row| format!("rivers the city {row}")).collect();
    let (vocab, _) = vocab(true);
    assert_eq!(at_once(&vocab, &texts, ""), (one_by_one(&vocab, &texts, ""), false));
}
