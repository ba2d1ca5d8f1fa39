//! What may come, against every token of every vocabulary, at every state that is reached.

mod common;

use common::{compare, pattern, tokens, vocabulary};
use proptest::prelude::*;
use trie_rules::{ByRule, Regex, Rule, check_rule};

proptest! {
    #[test]
    fn tokens_are_those_of_brute_force(pattern in pattern(), pieces in vocabulary(), control in 0..4usize) {
        let Ok(regex) = Regex::new(&pattern) else { return Ok(()) };
        compare(regex, &pieces, &[control], 200)?;
    }

    #[test]
    fn whole_texts_are_those_that_match(pattern in pattern(), texts in prop::collection::vec("[abcdé0]{0,6}", 20)) {
        let Ok(ours) = Regex::new(&pattern) else { return Ok(()) };
        let theirs = regex_automata::meta::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        for text in texts {
            let end = text.bytes().try_fold(ours.start(), |state, byte| ours.step(&state, byte));
            prop_assert_eq!(end.is_some_and(|end| ours.is_end(&end)), theirs.is_match(&text), "{:?}", text);
        }
        prop_assert!(check_rule(&ours, 10_000).is_ok(), "a dead end in {}", pattern);
    }
}

/// Every byte, long tokens, duplicates, control tokens.
#[test]
fn odd_vocabularies() {
    let bytes: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let long = vec![b"a".repeat(1024), b"a".repeat(1023), [b"a".repeat(1024), b"b".to_vec()].concat()];
    let twice = vec![b"a".to_vec(), b"ab".to_vec(), b"ab".to_vec(), Vec::new(), b"</s>".to_vec()];
    for pieces in [bytes.clone(), [bytes.clone(), long.clone()].concat(), [bytes, twice].concat(), long] {
        for pattern in ["a*b?", "a{1,2000}", "(?:ab|a)+", "[^b]{3}", "\\PC*", "</s>|a"] {
            let last = pieces.len() - 1;
            compare(Regex::new(pattern).unwrap(), &pieces, &[last], 60).unwrap();
        }
    }
}

#[test]
fn what_nothing_can_begin() {
    let tokens = tokens(&[b"x".to_vec()], &[]);
    let unspellable = ByRule::new(Regex::new("[ab]c").unwrap(), tokens.clone()).unwrap_err();
    assert!(unspellable.to_string().contains("'a' or 'b'"), "{unspellable}");
    let nothing = ByRule::new(Regex::new("").unwrap(), tokens).unwrap_err();
    assert!(nothing.to_string().contains("only the empty text"), "{nothing}");
}

#[test]
fn patterns_that_cannot_be_used() {
    let error = |pattern: &str| Regex::new(pattern).unwrap_err().to_string();
    assert!(error("a(b").contains("position 1: unclosed group"), "{}", error("a(b"));
    assert!(error("(?=a)").contains("look-around"), "{}", error("(?=a)"));
    assert!(error(r"(a)\1").contains("backreference"), "{}", error(r"(a)\1"));
    assert!(error(r"(?:\w{1,300}){1,300}").contains("more than"), "{}", error(r"(?:\w{1,300}){1,300}"));
    assert!(error("a[^\u{0}-\u{10FFFF}]").contains("no text matches"), "{}", error("a[^\u{0}-\u{10FFFF}]"));
    assert!(error(r"a\bb").contains("word boundary") || error(r"a\bb").contains("no text"), "{}", error(r"a\bb"));
}
