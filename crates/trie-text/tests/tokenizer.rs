//! A caller's tokenizer: it is asked in batches, believed in nothing, and blamed for the right value.

use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trie_core::{TokenId, Trie};
use trie_text::{TextError, Texts, TokenKind, Tokenization, Tokenizer, TokenizerError, Vocab};

fn id(id: u32) -> TokenId {
    TokenId::new(id).unwrap()
}

const CONTROL: u32 = 256;
const END: u32 = 257;
const UNKNOWN: u32 = 258;

/// One token a byte; it fails where the text holds a `!`, and has other faults.
#[derive(Debug, Default)]
struct Bytes {
    calls: AtomicUsize,
    /// Puts a space before a text that has none.
    spaced: bool,
    /// Reads `<c>` as the control token, whatever it is told, and `<e>` as the end, and `~` as unknown.
    careless: bool,
    /// Gives this for every `?`.
    odd: Option<u32>,
    /// Forgets the last text.
    short: bool,
}

impl Tokenizer for Bytes {
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, TokenizerError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(at) = text.find('!') {
            return Err(format!("no exclamations, as at {at}").into());
        }
        let mut tokens = Vec::new();
        tokens.extend(add_special.then(|| id(CONTROL)));
        if self.spaced && !text.is_empty() && !text.starts_with(' ') {
            tokens.push(id(32));
        }
        let mut rest = text.as_bytes();
        while let [first, more @ ..] = rest {
            let names: [(&[u8], u32); 3] = [(b"<c>", CONTROL), (b"<e>", END), (b"~", UNKNOWN)];
            let name = names.iter().find(|(name, _)| rest.starts_with(name));
            if let Some((name, token)) = name.filter(|_| parse_special || self.careless) {
                tokens.push(id(*token));
                rest = &rest[name.len()..];
                continue;
            }
            let odd = self.odd.filter(|_| *first == b'?');
            tokens.push(id(odd.unwrap_or(u32::from(*first))));
            rest = more;
        }
        Ok(tokens)
    }

    fn tokenize_batch(
        &self,
        texts: &[&str],
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<Vec<TokenId>>, TokenizerError> {
        let before = self.calls.load(Ordering::Relaxed);
        let texts = &texts[..texts.len() - usize::from(self.short)];
        let rows = texts.iter().map(|text| self.tokenize(text, add_special, parse_special)).collect();
        self.calls.store(before + 1, Ordering::Relaxed);
        rows
    }
}

fn vocab(tokenizer: Bytes) -> (Vocab, Arc<Bytes>) {
    let tokenizer = Arc::new(tokenizer);
    let bytes = (0..=255u8).map(|byte| (vec![byte], TokenKind::Text));
    let others = [("<c>", TokenKind::Control), ("<e>", TokenKind::Text), ("~", TokenKind::Unknown)];
    let tokens = bytes.chain(others.map(|(name, kind)| (name.into(), kind)));
    let vocab = Vocab::new(tokens, vec![id(END)], Some(Arc::clone(&tokenizer) as Arc<dyn Tokenizer>)).unwrap();
    (vocab, tokenizer)
}

fn leaves(trie: &Trie) -> Vec<(String, Vec<TokenId>)> {
    trie.leaves().map(|leaf| (leaf.name.unwrap_or_default(), leaf.tokens)).collect()
}

proptest! {
    #[test]
    fn sets_have_its_tokens(
        values in prop::collection::btree_set("[a-c<>é ]{1,6}", 1..20),
        prefix in "[a-c]{0,3}",
        spaced: bool,
    ) {
        let (vocab, tokenizer) = vocab(Bytes { spaced, ..Bytes::default() });
        let values: Vec<String> = values.into_iter().collect();
        let made = Texts::default().with_prefix(&prefix).with_suffix(";").trie(&vocab, &values);
        // Where a space is put only if there is none, the tokens do not say which it was.
        let lost = values.iter().position(|value| spaced && prefix.is_empty() && value.starts_with(' '));
        if let Some(lost) = lost {
            let refused = matches!(&made, Err(TextError::NoRoundTrip { what, .. }) if *what == format!("value {lost}"));
            prop_assert!(refused, "{:?}", made);
            return Ok(());
        }
        let own = if spaced && prefix.is_empty() { " " } else { "" };
        let mut expected: Vec<(String, Vec<TokenId>)> = values.iter().map(|value| {
            let text = format!("{own}{value};");
            (value.clone(), text.bytes().map(|byte| id(byte.into())).collect())
        }).collect();
        expected.sort_by(|one, other| one.1.cmp(&other.1));
        prop_assert_eq!(leaves(&made.unwrap().trie), expected);
        let calls = tokenizer.calls.load(Ordering::Relaxed);
        prop_assert!(calls <= 3, "{} values in one batch: {} calls", values.len(), calls);
        for value in values.iter().filter(|value| !(spaced && value.starts_with(' '))) {
            let tokens = vocab.tokenize(value, false, false).unwrap();
            prop_assert_eq!(vocab.detokenize(&tokens).unwrap(), value.as_bytes());
        }
    }

    #[test]
    fn the_first_value_that_fails_is_named(
        good in prop::collection::vec("[a-c]{1,3}", 1..40),
        bad in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let (vocab, _) = vocab(Bytes::default());
        let mut values = good;
        for at in bad {
            let at = at.index(values.len());
            values[at] = "no!".to_owned();
        }
        let first = values.iter().position(|value| value == "no!").unwrap();
        let error = Texts::default().trie(&vocab, &values).unwrap_err();
        prop_assert_eq!(error.to_string(), format!("value {first}: the tokenizer: no exclamations, as at 2"));
    }
}

#[test]
fn names_of_control_tokens_are_refused() {
    let (careful, _) = vocab(Bytes::default());
    assert_eq!(careful.tokenize("<c>", false, false).unwrap().len(), 3);
    assert_eq!(careful.tokenize("<c>", false, true).unwrap(), [id(CONTROL)]);
    assert_eq!(careful.tokenize("a", true, false).unwrap(), [id(CONTROL), id(97)]);
    assert_eq!(careful.tokenize_parts(&[("<c>", true), ("<c>", false)], false).unwrap().len(), 4);
    assert!(careful.can_tokenize());
    let (careless, _) = vocab(Bytes { careless: true, ..Bytes::default() });
    for (text, says) in [
        ("a<c>", "it reads a part of \"a<c>\" as the control token 256, \"<c>\""),
        ("<e>", "it reads a part of \"<e>\" as the control token 257, \"<e>\""),
        ("a~", "it reads a part of \"a~\" as the control token 258, \"~\""),
    ] {
        for add_special in [false, true] {
            let error = careless.tokenize(text, add_special, false).unwrap_err().to_string();
            assert_eq!(error, format!("the tokenizer: {says}"));
        }
        for tokenization in [Tokenization::Canonical, Tokenization::All] {
            let texts = Texts::default().with_tokenization(tokenization);
            let error = texts.trie(&careless, &["a", text]).unwrap_err().to_string();
            assert_eq!(error, format!("value 1: the tokenizer: {says}"));
        }
        assert!(careless.tokenize(text, false, true).is_ok());
    }
}

#[test]
fn what_it_gives_is_checked() {
    let (outside, _) = vocab(Bytes { odd: Some(999), ..Bytes::default() });
    let error = Texts::default().trie(&outside, &["a", "b?"]).unwrap_err().to_string();
    assert_eq!(error, "value 1: token id 999 at position 1 is outside the vocabulary of 259 tokens");
    let (unknown, _) = vocab(Bytes { odd: Some(UNKNOWN), ..Bytes::default() });
    assert_eq!(unknown.tokenize("?", false, false).unwrap(), [id(UNKNOWN)]);
    let error = Texts::default().trie(&unknown, &["a", "b?"]).unwrap_err().to_string();
    assert_eq!(error, "value 1: the tokens of \"b?\" spell \"b~\"");
    let short = Arc::new(Bytes { short: true, ..Bytes::default() });
    let short = Vocab::new([("a", TokenKind::Text)], Vec::new(), Some(short as Arc<dyn Tokenizer>)).unwrap();
    let error = short.tokenize_all(&["a"], "", "").unwrap_err().to_string();
    assert_eq!(error, "value 0: the tokenizer: it gave tokens of 0 texts for 1");
}
