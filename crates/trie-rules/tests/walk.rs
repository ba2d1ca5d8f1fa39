//! What may come, against every token of every vocabulary, at every state that is reached.

use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{ByRule, MaskLimits, Regex, Rule, TokenBytes, check_rule};

fn id(token: usize) -> TokenId {
    TokenId::new(token as u32).unwrap()
}

fn tokens(pieces: &[Vec<u8>], control: &[usize]) -> Arc<TokenBytes> {
    let text = pieces.iter().enumerate().filter(|(n, _)| !control.contains(n));
    Arc::new(TokenBytes::new(pieces.len(), text.map(|(n, piece)| (piece.as_slice(), id(n)))).unwrap())
}

/// Walks all states that tokens reach, at most so many, and compares.
fn compare<R: Rule>(rule: R, pieces: &[Vec<u8>], control: &[usize], most: usize) -> Result<usize, TestCaseError> {
    let tokens = tokens(pieces, control);
    // So little room that masks are thrown away and walked again.
    let Ok(by_rule) = ByRule::with_limits(rule, tokens, MaskLimits::bytes(4096)) else { return Ok(0) };
    let rule = by_rule.rule();
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([(by_rule.start(), rule.start())]);
    while let Some((at, state)) = queue.pop_front() {
        if seen.len() > most || !seen.insert(state.clone()) {
            continue;
        }
        let mut scratch = Scratch::default();
        let next = by_rule.next(&at, &mut scratch);
        let got: Vec<TokenId> = next.tokens.iter().collect();
        let after = |piece: &Vec<u8>| {
            let walked = piece.iter().try_fold(state.clone(), |state, &byte| rule.step(&state, byte));
            walked.filter(|_| !piece.is_empty())
        };
        let legal = pieces.iter().enumerate().filter(|(n, _)| !control.contains(n));
        let want: Vec<(TokenId, R::State)> = legal.filter_map(|(n, piece)| Some((id(n), after(piece)?))).collect();
        prop_assert_eq!(&got, &want.iter().map(|(token, _)| *token).collect::<Vec<_>>(), "{:?}", state);
        let ending = match (rule.is_end(&state), got.is_empty()) {
            (false, _) => Ending::No,
            (true, false) => Ending::May,
            (true, true) => Ending::Must,
        };
        prop_assert_eq!(next.ending, ending);
        for (token, state) in want {
            let step = by_rule.step(&at, token).unwrap();
            queue.push_back((step.state, state));
        }
        let refused = (0..pieces.len()).map(id).find(|token| !got.contains(token));
        prop_assert!(refused.is_none_or(|token| by_rule.step(&at, token).is_none()));
    }
    Ok(seen.len())
}

fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("ab".to_owned()),
        Just("[a-c]".to_owned()),
        Just("é".to_owned()),
        Just(".".to_owned()),
        Just("[^a]".to_owned()),
        Just("\\d".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("{one}{other}")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("(?:{one}|{other})")),
            (inner.clone(), 0..3u32, 0..3u32)
                .prop_map(|(one, least, more)| format!("(?:{one}){{{least},{}}}", least + more)),
            inner.prop_map(|one| format!("(?:{one})*")),
        ]
    })
}

fn vocabulary() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![4 => prop::sample::select(b"abc".to_vec()), 1 => prop::sample::select("é0".as_bytes().to_vec()), 1 => any::<u8>()];
    prop::collection::vec(prop::collection::vec(byte, 0..5), 1..60)
}

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
