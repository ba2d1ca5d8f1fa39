//! Parts that several test files use.

#![allow(dead_code, unreachable_pub)]

pub mod naive;
pub mod naive_cfg;
pub mod vocab;

use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{ByRule, MaskLimits, Rule, TokenBytes};

pub fn id(token: usize) -> TokenId {
    TokenId::new(token as u32).unwrap()
}

pub fn tokens(pieces: &[Vec<u8>], control: &[usize]) -> Arc<TokenBytes> {
    let text = pieces.iter().enumerate().filter(|(n, _)| control.binary_search(n).is_err());
    Arc::new(TokenBytes::new(pieces.len(), text.map(|(n, piece)| (piece.as_slice(), id(n)))).unwrap())
}

/// Bytes that leave no text unspelled, and these.
pub fn with_all_bytes(pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    (0..=255).map(|byte| vec![byte]).chain(pieces.iter().cloned()).collect()
}

/// Walks all states that tokens reach, at most so many, and compares.
pub fn compare<R: Rule>(rule: R, pieces: &[Vec<u8>], control: &[usize], most: usize) -> Result<usize, TestCaseError> {
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
        let legal = pieces.iter().enumerate().filter(|(n, _)| control.binary_search(n).is_err());
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

pub fn vocabulary() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let (common, other) = (b"abc".to_vec(), "é0".as_bytes().to_vec());
    let byte = prop_oneof![4 => prop::sample::select(common), 1 => prop::sample::select(other), 1 => any::<u8>()];
    prop::collection::vec(prop::collection::vec(byte, 0..5), 1..60)
}

/// Small patterns.
pub fn pattern() -> impl Strategy<Value = String> {
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
