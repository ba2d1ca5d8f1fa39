//! Rules between texts and after bytes that come first, against every text that they may be part of.

use crate::common::{id, pattern, tokens, vocabulary, with_all_bytes};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{AnyRule, ByRule, DelimitedRule, MaskLimits, PlacedState, Read, Regex, fit_behind};

/// What is written: some bytes, a text of the rule, and one of several texts. It is whole at the first text behind the
/// rule.
struct Naive<'t> {
    before: &'t [u8],
    rule: &'t Regex,
    after: Vec<&'t [u8]>,
}

impl Naive<'_> {
    fn matches(&self, text: &[u8]) -> bool {
        self.rule.read(text) == Read::Whole
    }

    /// How many bytes of a text behind the rule's this may end with, and whether they are the whole of it.
    fn ways(&self, written: &[u8]) -> Vec<(usize, bool)> {
        let Some(inside) = written.strip_prefix(self.before) else { return Vec::new() };
        let mut ways = Vec::new();
        for after in &self.after {
            for behind in 0..=after.len().min(inside.len()) {
                let (text, rest) = inside.split_at(inside.len() - behind);
                if rest == &after[..behind] && self.matches(text) {
                    ways.push((behind, behind == after.len()));
                }
            }
        }
        ways
    }

    fn is_whole(&self, written: &[u8]) -> bool {
        self.ways(written).iter().any(|&(_, whole)| whole)
    }

    /// Whether a text goes on from here.
    fn may(&self, written: &[u8]) -> bool {
        let stopped = |length: usize| !self.after[0].is_empty() && self.is_whole(&written[..length]);
        if (0..written.len()).any(stopped) {
            return false;
        }
        if written.len() <= self.before.len() {
            return self.before.starts_with(written);
        }
        let inside = written.strip_prefix(self.before);
        !self.ways(written).is_empty()
            || inside.is_some_and(|text| !matches!(self.rule.read(text), Read::Refused { .. }))
    }
}

fn bytes_of(pieces: &[Vec<u8>], written: &[TokenId]) -> Vec<u8> {
    written.iter().flat_map(|token| pieces[token.index()].clone()).collect()
}

proptest! {
    #[test]
    fn between_texts(
        pattern in pattern(),
        before in "[ab]{0,2}",
        after in prop_oneof![
            "[abc]{0,3}".prop_map(|one| vec![one]),
            prop::collection::btree_set("[abc]{1,3}", 1..5).prop_map(|some| some.into_iter().collect()),
        ],
        pieces in vocabulary(),
    ) {
        let Ok(rule) = Regex::new(&pattern) else { return Ok(()) };
        let behind = after.iter().map(String::as_bytes).collect();
        let naive = Naive { before: before.as_bytes(), rule: &rule, after: behind };
        let pieces = with_all_bytes(&pieces);
        let tokens = tokens(&pieces, &[]);
        let placed = DelimitedRule::new(naive.before, rule.clone(), &naive.after, tokens, MaskLimits::bytes(4096));
        let Ok(placed) = placed else { return Ok(()) };
        let mut queue: VecDeque<(PlacedState<u32>, Vec<TokenId>)> = VecDeque::from([(placed.start(), Vec::new())]);
        let mut seen = HashSet::new();
        while let Some((at, written)) = queue.pop_front() {
            if written.len() > 4 || seen.len() > 60 || !seen.insert(at) {
                continue;
            }
            let text = bytes_of(&pieces, &written);
            let ways = naive.ways(&text);
            let begun = text.len() >= before.len();
            let goes_on = begun && (0..=255u8).any(|byte| {
                let inside = [&text[before.len()..], &[byte]].concat();
                !matches!(rule.read(&inside), Read::Refused { .. })
            });
            let whole = ways.iter().filter(|(behind, whole)| *whole && *behind > 0).map(|(behind, _)| *behind).max();
            let known = ways.first().filter(|first| !goes_on && ways.iter().all(|way| way.0 == first.0));
            let behind = whole.or(known.map(|first| first.0));
            prop_assert_eq!(placed.suffix_written(&at), behind, "after {:?}", text);
            prop_assert_eq!(placed.may_end(&at), ways.iter().any(|way| way.0 == 0), "after {:?}", text);
            let mut scratch = Scratch::default();
            let next = placed.next(&at, &mut scratch);
            if behind.is_some() {
                prop_assert!(next.tokens.is_empty() && next.ending == Ending::Must);
                continue;
            }
            let may = |token: &TokenId| {
                let piece = &pieces[token.index()];
                let all = (1..=piece.len()).all(|length| naive.may(&[text.as_slice(), &piece[..length]].concat()));
                all && !piece.is_empty()
            };
            let want: Vec<TokenId> = (0..pieces.len()).map(id).filter(may).collect();
            prop_assert_eq!(next.tokens.iter().collect::<Vec<_>>(), want.clone(), "after {:?}", text);
            prop_assert_eq!(next.ending != Ending::No, naive.is_whole(&text), "after {:?}", text);
            for token in want.into_iter().rev().take(12) {
                queue.push_back((placed.step(&at, token).unwrap().state, [written.as_slice(), &[token]].concat()));
            }
        }
    }

    /// The same as the pattern with those bytes written before it.
    #[test]
    fn after_bytes(pattern in pattern(), before in "[ab]{1,3}", pieces in vocabulary()) {
        let (Ok(rule), Ok(whole)) = (Regex::new(&pattern), Regex::new(&format!("{before}(?:{pattern})"))) else {
            return Ok(());
        };
        let tokens = tokens(&with_all_bytes(&pieces), &[]);
        let Ok(rule) = rule.compile_for(tokens.clone().into(), MaskLimits::default()) else { return Ok(()) };
        let after = rule.after_bytes(before.as_bytes()).map(Option::unwrap);
        let whole = ByRule::new(whole, tokens);
        let (Ok(after), Ok(whole)) = (after, whole) else { return Ok(()) };
        let mut queue = VecDeque::from([(after.start(), whole.start(), 0)]);
        while let Some((one, other, depth)) = queue.pop_front() {
            let (mut scratch, mut again) = (Scratch::default(), Scratch::default());
            let (next, want) = (after.next(&one, &mut scratch), whole.next(&other, &mut again));
            prop_assert_eq!(next.tokens.iter().collect::<Vec<_>>(), want.tokens.iter().collect::<Vec<_>>());
            prop_assert_eq!((next.ending, after.ending(&one)), (want.ending, want.ending));
            for token in want.tokens.iter().take(if depth < 4 { 5 } else { 0 }) {
                let (one, other) = (after.step(&one, token).unwrap(), whole.step(&other, token).unwrap());
                queue.push_back((one.state, other.state, depth + 1));
            }
        }
    }
}

/// More bytes behind a rule than are looked at.
#[test]
fn long_texts_behind() {
    let bytes: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let behind = "b".repeat(200);
    let rule = Regex::new("[ab]*").unwrap();
    let placed =
        DelimitedRule::new(b"", rule.clone(), &[behind.as_bytes()], tokens(&bytes, &[]), MaskLimits::default());
    let (placed, b) = (placed.unwrap(), id(usize::from(b'b')));
    let mut at = placed.start();
    for written in 0..127 {
        assert_eq!(placed.suffix_written(&at), None, "after {written} bytes");
        at = placed.step(&at, b).unwrap().state;
    }
    assert_eq!(placed.suffix_written(&at), Some(127));
    // Several are cut alike where they are too long together, and not at all where they fit.
    let (long, short) = ("b".repeat(120), "c".repeat(6));
    assert!(fit_behind(&[long.as_bytes(), short.as_bytes()]));
    assert!(!fit_behind(&[long.as_bytes(), short.as_bytes(), b"x"]));
    for (after, most) in
        [(vec![long.as_bytes(), short.as_bytes()], 120), (vec![long.as_bytes(), short.as_bytes(), b"x"], 41)]
    {
        let placed = DelimitedRule::new(b"", rule.clone(), &after, tokens(&bytes, &[]), MaskLimits::default()).unwrap();
        let mut at = placed.start();
        for _ in 0..most {
            assert_eq!(placed.suffix_written(&at), None);
            at = placed.step(&at, b).unwrap().state;
        }
        assert_eq!(placed.suffix_written(&at), Some(most));
    }
}

#[test]
fn characters_that_texts_begin_with() {
    let bytes: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let beginnings = |pattern: &str, limit| {
        let rule = Regex::new(pattern).unwrap().compile_for(tokens(&bytes, &[]).into(), MaskLimits::default()).unwrap();
        let mut found = rule.beginnings(limit)?;
        found.sort_unstable();
        Some(found.into_iter().collect::<String>())
    };
    assert_eq!(beginnings("éa|[b-d]x|東京", 8).as_deref(), Some("bcdé東"));
    assert_eq!(beginnings(".", 64), None);
    assert_eq!(beginnings("[a-c]", 2), None);
}

#[test]
fn how_far_a_text_is_legal() {
    let date = Regex::new("[0-9]{2}-[0-9]").unwrap();
    let read = |text: &str| AnyRule::read(&date, text.as_bytes());
    assert_eq!(
        [read("12-3"), read("12"), read("12-x"), read("12-34")],
        [Read::Whole, Read::Begun, Read::Refused { at: 3 }, Read::Refused { at: 4 }]
    );
}
