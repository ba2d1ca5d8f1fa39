//! Values after a prompt: what a list of texts means, against what the tokenizer makes of the whole text.

use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trie_core::{LeafId, TokenId, Trie};
use trie_text::{
    HealingError, Prompt, TextValues, TokenKind, Tokenization, Tokenizer, TokenizerError, ValueSet, ValueSets, Values,
    ValuesError, Vocab,
};

const PIECES: [&str; 12] = ["a", "b", " ", "ab", " a", "ba", "  ", "b ", "aa", "abb", " ab", "<e>"];

/// The longest token, from left to right; counts what it is asked.
#[derive(Debug, Default)]
struct Longest(AtomicUsize);

impl Tokenizer for Longest {
    fn tokenize(&self, text: &str, _: bool, special: bool) -> Result<Vec<TokenId>, TokenizerError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let (mut rest, mut found) = (text, Vec::new());
        while !rest.is_empty() {
            let known = (0..PIECES.len() - usize::from(!special)).filter(|&id| rest.starts_with(PIECES[id]));
            let id = known.max_by_key(|&id| PIECES[id].len()).ok_or_else(|| format!("{rest:?} has no tokens"))?;
            found.push(TokenId::new(id as u32).unwrap());
            rest = &rest[PIECES[id].len()..];
        }
        Ok(found)
    }
}

fn sets() -> (ValueSets, Arc<Longest>) {
    let tokenizer = Arc::new(Longest::default());
    let kind = |piece| if piece == "<e>" { TokenKind::Control } else { TokenKind::Text };
    let tokens = PIECES.map(|piece| (piece, kind(piece)));
    let vocab = Vocab::new(tokens, Vec::new(), Some(Arc::clone(&tokenizer) as Arc<dyn Tokenizer>)).unwrap();
    (ValueSets::new(Arc::new(vocab)), tokenizer)
}

fn text(prompt: &str) -> Prompt {
    Prompt::Text(prompt.to_owned())
}

fn tokens(text: &str) -> Vec<TokenId> {
    Longest::default().tokenize(text, false, true).unwrap()
}

/// What is decoded of the prompt, and each leaf by the index of its value.
fn whole(prompt: &[TokenId], set: &ValueSet, of: usize) -> Vec<Vec<TokenId>> {
    let mut healed = set.trie().heal_bytes();
    let mut kept = prompt;
    while healed > 0 {
        let (last, before) = kept.split_last().unwrap();
        healed -= PIECES[last.index()].len();
        kept = before;
    }
    let mut rows = vec![Vec::new(); of];
    for leaf in set.trie().leaves() {
        rows[set.index_of(leaf.index)] = [kept, &leaf.tokens].concat();
    }
    rows
}

proptest! {
    /// Prompt and value together are the tokens of the whole text, wherever a token crosses the boundary, unless all of
    /// the prompt would be taken back.
    #[test]
    fn a_value_is_tokenised_with_the_prompt(
        prompt in "[ab ]{1,12}",
        values in prop::collection::btree_set("[ab ]{1,6}", 1..5),
    ) {
        let values: Vec<String> = values.into_iter().rev().collect();
        let (sets, _) = sets();
        let texts = TextValues::new(values.clone()).with_distinct(true);
        let together: Vec<_> = values.iter().map(|value| tokens(&format!("{prompt}{value}"))).collect();
        let before = tokens(&prompt);
        let common = together.iter().map(|row| row.iter().zip(&before).take_while(|(a, b)| a == b).count()).min();
        let placed = sets.place(text(&prompt), &Values::Texts(texts.clone()));
        if common == Some(0) {
            let refused = matches!(placed, Err(ValuesError::Healing(HealingError::AllTakenBack { .. })));
            prop_assert!(refused, "{:?}", placed);
        } else {
            let (placed, set) = placed.unwrap();
            prop_assert_eq!(&placed, &before);
            prop_assert_eq!(whole(&placed, &set, values.len()), together);
            for (index, value) in values.iter().enumerate() {
                let leaf = set.trie().leaves().find(|leaf| set.index_of(leaf.index) == index).unwrap();
                prop_assert_eq!(leaf.name.as_deref(), Some(value.as_str()));
            }
        }

        // After token ids they stand alone, since ids say where tokens begin.
        let (placed, set) = sets.place_texts(Prompt::Tokens(tokens(&prompt)), &texts).unwrap();
        let alone: Vec<_> = values.iter().map(|value| [tokens(&prompt), tokens(value)].concat()).collect();
        prop_assert_eq!(whole(&placed, &set, values.len()), alone);
    }
}

#[test]
fn what_is_known_of_leaves_is_put_in_the_order_of_values() {
    let (sets, _) = sets();
    let set = sets.get(&TextValues::new(["b", "ab", "a"])).unwrap();
    let names: Vec<_> = set.trie().leaves().map(|leaf| leaf.name.unwrap()).collect();
    assert_eq!(names, ["a", "b", "ab"]);
    assert_eq!(set.by_value(&[0.1, 0.2, 0.3]), [0.2, 0.3, 0.1]);
    let plain = ValueSet::from(set.trie().clone());
    assert_eq!((plain.by_value(&[0.1, 0.2, 0.3]), plain.index_of(LeafId::new(2))), (vec![0.1, 0.2, 0.3], 2));

    // Of equal texts the first has the leaf.
    let twice = sets.get(&TextValues::new(["b", "b", "a"])).unwrap();
    let by_value = twice.by_value(&[0.1, 0.2]);
    assert_eq!((by_value[0], by_value[2]), (0.2, 0.1));
    assert!(by_value[1].is_nan());
}

#[test]
fn a_set_is_made_once_for_prompts_that_end_alike() {
    let (sets, asked) = sets();
    let texts = TextValues::new(["a", "b"]);
    let first = sets.get(&texts).unwrap();
    let before = asked.0.load(Ordering::Relaxed);
    assert_eq!(sets.get(&texts).unwrap(), first);
    assert_eq!(asked.0.load(Ordering::Relaxed), before);
    assert_ne!(sets.get(&texts.with_suffix(" ")).unwrap(), first);
    assert!(asked.0.load(Ordering::Relaxed) > before);
}

#[test]
fn a_prefix_says_where_the_boundary_is() {
    let (sets, _) = sets();
    let texts = TextValues::new(["bb"]).with_prefix("a");
    let (prompt, set) = sets.place_texts(text("b a"), &texts).unwrap();
    // "abb" is one token, so the set begins before the "a", and so does a token of the prompt.
    assert_eq!((set.trie().heal_bytes(), prompt), (1, [tokens("b "), tokens("a")].concat()));
    let set = Values::Set(set);
    let (prompt, same) = sets.place(text("b a"), &set).unwrap();
    assert_eq!((same.trie().heal_bytes(), prompt.len()), (1, 2));
}

#[test]
fn names_of_control_tokens_count_in_a_prompt_alone() {
    let (sets, _) = sets();
    let (prompt, _) = sets.place_texts(text("<e>a"), &TextValues::new(["b"])).unwrap();
    assert_eq!(prompt, tokens("<e>a"));
    let refused = sets.get(&TextValues::new(["<e>"])).unwrap_err();
    assert!(matches!(refused, ValuesError::Text(_)), "{refused}");
}

/// A tokenizer for which two texts are one.
#[derive(Debug)]
struct Folding;
impl Tokenizer for Folding {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
        Ok(text.chars().filter(|&letter| letter != '\u{301}').map(|_| TokenId::default()).collect())
    }
    fn detokenize(&self, _: &[TokenId]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn what_cannot_be_told_apart_is_named() {
    let (sets, _) = sets();
    let refused = |values: &[&str]| {
        let texts = TextValues::new(values.iter().copied());
        sets.get(&texts.with_distinct(true)).unwrap_err().to_string()
    };
    assert_eq!(refused(&["a", ""]), "value 1 is empty: leave it out, or give a suffix");
    assert_eq!(refused(&["a", "b", "a"]), "value 2, \"a\", repeats value 0");
    assert!(matches!(sets.get(&TextValues::new(["a", "x"])).unwrap_err(), ValuesError::Text(_)));
    // Without tokens of its own a value needs a suffix, and then it may be empty.
    let empty = TextValues::new(["", "a"]).with_suffix(" ");
    assert_eq!(sets.get(&empty).unwrap().trie().len(), 2);

    let tokens = [("a", TokenKind::Text), ("b", TokenKind::Text)];
    let vocab = Vocab::new(tokens, Vec::new(), Some(Arc::new(Folding))).unwrap();
    let folded = TextValues::new(["a", "a\u{301}"]).with_distinct(true).set(&vocab).unwrap_err();
    assert!(matches!(folded, ValuesError::Text(_) | ValuesError::SameTokens), "{folded}");
}

#[test]
fn every_tokenisation_of_a_value_has_its_index() {
    let (sets, _) = sets();
    let texts = TextValues::new(["b", "abb"]).with_tokenization(Tokenization::All);
    let set = sets.get(&texts).unwrap();
    let names: Vec<_> = set.trie().leaves().map(|leaf| (set.index_of(leaf.index), leaf.name.unwrap())).collect();
    assert_eq!(names, [(1, "abb".to_owned()), (0, "b".to_owned())]);
    let walked = |pieces: &[u32]| {
        let tokens: Vec<TokenId> = pieces.iter().map(|&id| TokenId::new(id).unwrap()).collect();
        Trie::find(set.trie(), &tokens)
    };
    assert!(walked(&[9]).is_some() && walked(&[0, 1, 1]).is_some() && walked(&[3, 1]).is_some());
}
