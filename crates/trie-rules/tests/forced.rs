//! Text that must come: in the tokenizer's own tokens, and no further than where another token could begin that goes on
//! into what is not forced.

use crate::common::{id, tokens};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{ByRule, Regex, Rule, Spelling, TokenBytes};

/// The longest token at each place.
fn longest(tokens: &TokenBytes, pieces: &[Vec<u8>], text: &str) -> Option<Vec<TokenId>> {
    let (mut rest, mut found) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let begins = (0..pieces.len()).filter(|&n| !pieces[n].is_empty() && rest.starts_with(&pieces[n]));
        let best = begins.max_by_key(|&n| (pieces[n].len(), usize::MAX - n))?;
        found.push(id(best));
        rest = &rest[tokens.bytes(id(best)).len()..];
    }
    Some(found)
}

fn by_rule(pattern: &str, pieces: &[Vec<u8>]) -> Option<ByRule<Regex>> {
    let tokens = tokens(pieces, &[]);
    let (known, copy) = (Arc::clone(&tokens), pieces.to_vec());
    let spelling = Spelling::with_tokenizer(tokens, move |text| longest(&known, &copy, text));
    ByRule::new(Regex::new(pattern).ok()?, spelling).ok()
}

proptest! {
    #[test]
    fn never_beyond_what_another_token_could_cross(
        literal in "[ab]{1,6}",
        rest in prop::sample::select(vec!["", "c", "[ab]", "(?:a|c)b*", "(?:aa|bb)", "[^a]"]),
        extra in prop::collection::vec("[abc]{1,4}", 0..12),
    ) {
        let single = (0..=255u8).map(|byte| vec![byte]);
        let pieces: Vec<Vec<u8>> = single.chain(extra.into_iter().map(String::into_bytes)).collect();
        let Some(by_rule) = by_rule(&format!("{literal}{rest}"), &pieces) else { return Ok(()) };
        let rule = by_rule.rule();
        // The bytes that must come, and the state after them.
        let (mut forced, mut state) = (Vec::new(), rule.start());
        while !rule.is_end(&state) {
            let ways: Vec<u8> = (0..=255).filter(|&byte| rule.step(&state, byte).is_some()).collect();
            let &[only] = ways.as_slice() else { break };
            forced.push(only);
            state = rule.step(&state, only).unwrap();
        }
        let after = |bytes: &[u8]| bytes.iter().try_fold(state, |state, &byte| rule.step(&state, byte));
        let crosses = |from: usize| {
            let longer = |piece: &&Vec<u8>| piece.len() > forced.len() - from && piece.starts_with(&forced[from..]);
            pieces.iter().filter(longer).any(|piece| after(&piece[forced.len() - from..]).is_some())
        };
        let certain = (0..forced.len()).find(|&from| crosses(from)).unwrap_or(forced.len());
        let text = std::str::from_utf8(&forced).unwrap();
        let first = longest(&tokens(&pieces, &[]), &pieces, text).unwrap().into_iter().next();
        let want = first.filter(|first| pieces[first.index()].len() <= certain);
        let mut scratch = Scratch::default();
        let only = by_rule.next(&by_rule.start(), &mut scratch).tokens.single_token();
        prop_assert_eq!(by_rule.forced_token(&by_rule.start(), &mut scratch), only.or(want), "{:?}", text);
    }
}

#[test]
fn a_run_in_the_tokenizers_tokens() {
    let words = ["{\"", "name", "\":", " \"", "\"", "na", "me", " ", "5"];
    let single = (0..=255u8).map(|byte| vec![byte]);
    let pieces: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).chain(single).collect();
    let by_rule = by_rule(r#"\{"name": [0-9]\}"#, &pieces).unwrap();
    let run = |by_rule: &ByRule<Regex>| {
        let (mut at, mut scratch, mut run) = (by_rule.start(), Scratch::default(), Vec::new());
        while let Some(token) = by_rule.forced_token(&at, &mut scratch) {
            by_rule.advance(&mut at, token).unwrap();
            run.push(String::from_utf8(pieces[token.index()].clone()).unwrap());
        }
        (run, by_rule.ending(&at))
    };
    assert_eq!(run(&by_rule), (["{\"", "name", "\":", " "].map(String::from).to_vec(), Ending::No));
    // The space may belong to the quote behind it.
    let quoted = self::by_rule(r#"\{"name": (?:"|[0-9])"#, &pieces).unwrap();
    assert_eq!(run(&quoted).0, ["{\"", "name", "\":"]);
}

/// Pairs of tokens that become one, the first of them first; a token is its number, those of letters come first.
fn merged(pairs: &[(usize, usize)], letters: &[u8], text: &str) -> Vec<usize> {
    let mut found: Vec<usize> =
        text.bytes().map(|byte| letters.iter().position(|&letter| letter == byte).unwrap()).collect();
    loop {
        let rank = |at: usize| pairs.iter().position(|&pair| pair == (found[at], found[at + 1]));
        let best = (0..found.len().saturating_sub(1)).filter_map(|at| Some((rank(at)?, at))).min();
        let Some((rank, at)) = best else { return found };
        found.splice(at..at + 2, [letters.len() + rank]);
    }
}

proptest! {
    /// What follows may change the first token: all that it may become are known.
    #[test]
    fn first_tokens_are_all_that_a_merging_tokenizer_may_begin_with(
        drawn in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..14),
        text in "[abc]{1,7}",
        behind in prop::collection::vec("[abc]{0,4}", 8),
    ) {
        let letters = b"abc";
        let mut pieces: Vec<Vec<u8>> = letters.iter().map(|&letter| vec![letter]).collect();
        let mut pairs = Vec::new();
        for (one, other) in drawn {
            let pair = (one.index(pieces.len()), other.index(pieces.len()));
            let piece = [&pieces[pair.0][..], &pieces[pair.1]].concat();
            if !pieces.contains(&piece) {
                pieces.push(piece);
                pairs.push(pair);
            }
        }
        let known = pairs.clone();
        let spelling = Spelling::with_tokenizer(tokens(&pieces, &[]), move |text| {
            Some(merged(&known, letters, text).into_iter().map(id).collect())
        });
        let firsts = spelling.first_tokens(text.as_bytes(), |_| true).unwrap();
        let certain = spelling.certain_token(text.as_bytes(), true, |_| false);
        for behind in behind {
            let first = id(merged(&pairs, letters, &format!("{text}{behind}"))[0]);
            let goes_on = pieces[first.index()].len() > text.len();
            prop_assert!(goes_on || firsts.contains(&first), "{text}|{behind}: {first:?} is none of {firsts:?}");
            prop_assert!(certain.is_none_or(|certain| certain == first), "{text}|{behind}: {first:?}, {certain:?}");
        }
        let own = id(merged(&pairs, letters, &text)[0]);
        prop_assert_eq!(firsts[0], own);
    }
}

/// Without a tokenizer only what has no other way.
#[test]
fn without_a_tokenizer() {
    let pieces: Vec<Vec<u8>> = [&b"a"[..], b"b", b"ab"].map(<[u8]>::to_vec).to_vec();
    let by_rule = ByRule::new(Regex::new("abb").unwrap(), tokens(&pieces, &[])).unwrap();
    let mut scratch = Scratch::default();
    assert_eq!(by_rule.forced_token(&by_rule.start(), &mut scratch), None);
    let after = by_rule.step(&by_rule.start(), id(2)).unwrap().state;
    assert_eq!(by_rule.forced_token(&after, &mut scratch), Some(id(1)));
}

/// More that must come than is looked at, and characters that are cut in two by a choice.
#[test]
fn long_runs_and_half_characters() {
    let pieces: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).chain([b"aaaa".to_vec()]).collect();
    let by_rule = by_rule("a{2000}é|a{2000}è", &pieces).unwrap();
    let (mut at, mut scratch, mut bytes) = (by_rule.start(), Scratch::default(), 0);
    while let Some(token) = by_rule.forced_token(&at, &mut scratch) {
        bytes += pieces[token.index()].len();
        by_rule.advance(&mut at, token).unwrap();
    }
    // The first byte of both is the same, and has no other token.
    assert_eq!(bytes, 2001);
}
