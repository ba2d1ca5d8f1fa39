//! What may come, against every token of every vocabulary, at every state that is reached.

use crate::common::{compare, id, pattern, tokens, vocabulary};
use proptest::prelude::*;
use std::collections::HashSet;
use trie_core::{Constraint, Ending, Scratch};
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

/// Said before anything is written; what can be written in one way is fine.
#[test]
fn what_the_vocabulary_cannot_end() {
    let pieces: Vec<Vec<u8>> = [&b"a"[..], b"b", b"ab", b"aab"].map(<[u8]>::to_vec).to_vec();
    let by_rule = |pattern: &str| ByRule::new(Regex::new(pattern).unwrap(), tokens(&pieces, &[]));
    let refused = by_rule("a[xy]").unwrap_err().to_string();
    assert!(refused.contains("each needs 'x' or 'y'"), "{refused}");
    let refused = by_rule("(?:ab)+(?:a|b{3})z").unwrap_err().to_string();
    assert!(refused.contains("each needs"), "{refused}");
    // A token is legal by its bytes; where no other goes on then, that is said there.
    let stuck = by_rule("ax|b").unwrap();
    let after = stuck.step(&stuck.start(), id(0)).unwrap().state;
    assert_eq!(stuck.next(&after, &mut Scratch::default()).ending, Ending::No);
    assert!(stuck.problem(&after).unwrap().to_string().contains("the rule wants 'x'"));
}

proptest! {
    /// By brute force over all states that tokens reach.
    #[test]
    fn rules_without_a_text_that_tokens_spell_are_refused(pattern in pattern(), pieces in vocabulary()) {
        let Ok(regex) = Regex::new(&pattern) else { return Ok(()) };
        let (mut queue, mut known, mut ends) = (vec![regex.start()], HashSet::new(), regex.is_end(&regex.start()));
        while let Some(from) = queue.pop().filter(|_| !ends) {
            for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                let after = piece.iter().try_fold(from, |state, &byte| regex.step(&state, byte));
                if let Some(after) = after.filter(|after| known.insert(*after)) {
                    ends |= regex.is_end(&after);
                    queue.push(after);
                }
            }
        }
        let nothing = ["only the empty text", "no token of the vocabulary begins"];
        match ByRule::new(regex, tokens(&pieces, &[])) {
            Ok(_) => prop_assert!(ends, "{} over {:?}", pattern, pieces),
            Err(refused) => prop_assert!(!ends || nothing.iter().any(|said| refused.to_string().contains(said))),
        }
    }
}
