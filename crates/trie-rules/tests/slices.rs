//! Vocabularies like real ones, with all kinds of tokens, against brute force: slices must be exact.

use crate::common::{compare, id, tokens};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use trie_core::{Constraint, Scratch};
use trie_rules::{ByRule, Example, Grammar, MaskLimits, PrepareLimits, Regex, Rule, TokenBytes};

/// All bytes, words of every kind with and without a blank in front, of all lengths around those of slices, halves of
/// characters, quotes and controls.
fn pieces(count: usize) -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let mut pieces: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut known: HashSet<Vec<u8>> = pieces.iter().cloned().collect();
    let kinds = [
        "[a-c]{1,20}",
        "[a-z]{1,8}",
        "[A-C][a-c]{0,6}",
        "[A-Z]{1,17}",
        "[0-9]{1,18}",
        "_[a-c0-9_]{1,4}",
        "[a-cA-C0-9_.,-]{1,6}",
        "[éяж中한ש]{1,17}",
        "[aé中]{1,6}",
        "[😀é€²–]{1,5}",
        "[a-c,;<>=:.()]{1,5}",
        "[ab\"\\\\,: {}\\[\\]]{1,5}",
        "[a \n\t]{1,6}",
        "[\u{80}-\u{9f}\u{7f}a]{1,3}",
        "[a-c ]{1,20}",
        "[\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{10FFFF}a]{1,3}",
    ];
    let kind = prop::sample::select(kinds.to_vec());
    let one = kind.prop_flat_map(|kind| prop::string::string_regex(kind).unwrap());
    let one = (one, prop::sample::select(vec!["", "", " ", "  "]), 0..12usize).prop_map(|(text, blank, cut)| {
        let mut bytes = [blank, &*text].concat().into_bytes();
        if cut == 0 {
            bytes.pop();
        }
        bytes
    });
    while pieces.len() < count {
        let piece = one.new_tree(&mut runner).unwrap().current();
        // Some twice.
        if known.insert(piece.clone()) || pieces.len().is_multiple_of(500) {
            pieces.push(piece);
        }
    }
    pieces
}

const PATTERNS: [&str; 43] = [
    ".*",
    "(?s).*",
    "[a-c]*",
    "[a-z]*",
    "[a-z]{0,5}|[0-9]+",
    "[a-z]{0,5}|[0-9]{0,3}",
    "[A-Z][a-z]+",
    "[A-Za-z][a-z]*",
    "[A-Za-z]([a-z]|[0-9]{3})*",
    "[a-zA-Z]{2}[a-z0-9]{3}",
    "([a-z][A-Z])*",
    "[A-Za-z_][A-Za-z0-9_]{0,20}",
    r"\w+( \w+)*",
    r"\w{1,4}",
    r"\PC*",
    r"\p{L}+",
    r"[\p{L}&&[^é]]+",
    "[^,]*",
    "[^,]{0,6}",
    "[^\"\\\\\\x00-\\x1f]{0,40}",
    "\"([^\"\\\\\\x00-\\x1f]|\\\\[\"\\\\nu])*\"",
    "( [a-z]+)+",
    "( [a-z]{2}|[a-z]{3})*",
    "(a{3})*",
    "[a-c]{16}",
    "[a-z]{16}",
    "[a-z]{17}",
    "[a-z]{15}|[a-z]{1,3}",
    "(?:[a-b]c)*",
    "(?:[a-z][a-z0-9])*",
    "([éя]|中){2,5}",
    "[a-zé]*",
    ".{0,7}",
    ".{16}",
    ".{17}",
    "[^a]{3,}",
    "(?i)[a-z]+z",
    "\u{e9}*|[a-z]*",
    "[\u{80}-\u{10FFFF}]*",
    "[\u{80}-\u{FFFF}]*",
    "[^\u{D7FF}]*",
    "[a-z]*(, [a-z]+)*",
    "-?[0-9]+(\\.[0-9]{1,2})?",
];

#[test]
fn automata() {
    let pieces = pieces(4000);
    let mut seen = 0;
    for pattern in PATTERNS {
        seen += compare(Regex::new(pattern).unwrap(), &pieces, &[70, 3000], 60).unwrap();
    }
    assert!(seen > 500, "only {seen} states");
}

/// More kinds than slices are made for.
#[test]
fn all_kinds_of_one_vocabulary() {
    let pieces = pieces(3000);
    let tokens = tokens(&pieces, &[]);
    let parts = ["a-z", "A-Z", "0-9", "_", "!#-/:-@\\[\\]^`{-~", "\u{80}-\u{10FFFF}"];
    let before = tokens.nbytes();
    for kinds in 1..64u32 {
        let class: String = (0..6).filter(|n| kinds >> n & 1 == 1).map(|n| parts[n]).collect();
        for pattern in [format!("[{class}]*"), format!("( ?[{class}])*")] {
            let regex = Regex::new(&pattern).unwrap();
            let by_rule = ByRule::new(regex.clone(), Arc::clone(&tokens)).unwrap();
            let mut scratch = Scratch::default();
            let start = by_rule.start();
            let got: Vec<_> = by_rule.next(&start, &mut scratch).tokens.iter().collect();
            let goes =
                |piece: &[u8]| piece.iter().try_fold(regex.start(), |state, &byte| regex.step(&state, byte)).is_some();
            let want: Vec<_> =
                (0..pieces.len()).filter(|&n| !pieces[n].is_empty() && goes(&pieces[n])).map(id).collect();
            assert_eq!(got, want, "{pattern}");
        }
    }
    // 16 slices, each with fewer tokens than all, and 17 masks.
    assert!(tokens.nbytes() < 18 * before, "{} bytes, before {before}", tokens.nbytes());
}

#[test]
fn grammars() {
    let pieces = pieces(2500);
    for example in Example::ALL {
        compare(example.grammar().unwrap(), &pieces, &[], 40).unwrap();
    }
    let inside = r#"
        SKIP : "/[ \n]+/" ; TEXT : "/<[^<>]*>/" ; NAME : "/[a-zé中]+/" ; WORDS : "/#[a-z ]*#/" ; KEY : "abc" ;
        CODE : "/![a-z]{1,3}/" ; MARK : "/%[a-z]*[0-9]?/" ;
        s : | s part ; part : TEXT | NAME "," | WORDS | KEY ";" | CODE "." | MARK "." | MARK NAME ;
    "#;
    compare(Grammar::new(inside).unwrap(), &pieces, &[], 300).unwrap();
}

#[test]
fn memory_is_bounded() {
    let pieces = pieces(4000);
    let tokens = tokens(&pieces, &[]);
    for limit in [0, 20_000, 100_000, 400_000] {
        let by_rule =
            ByRule::with_limits(Example::Json.grammar().unwrap(), Arc::clone(&tokens), MaskLimits::bytes(limit))
                .unwrap();
        let mut scratch = Scratch::default();
        let mut state = by_rule.start();
        // Every byte is a token of its own.
        let text = (1..30).map(|n| format!(r#"[{{"a é": [{n}.5e3, "\n\u00e9", "#)).collect::<Vec<_>>().concat();
        for byte in text.bytes() {
            state = by_rule.step(&state, id(usize::from(byte))).unwrap().state;
            by_rule.next(&state, &mut scratch);
            let held = by_rule.stats();
            assert!(held.bytes + held.walker_bytes <= limit, "{limit}: {held:?}");
        }
        assert!(by_rule.stats().misses > 100, "{:?}", by_rule.stats());
        let kept = by_rule.stats();
        assert!(limit < 100_000 || kept.masks > 20 && kept.walker_bytes > 0, "{kept:?}");
    }
}

#[test]
fn walking_ahead() {
    let tokens: Arc<TokenBytes> = tokens(&pieces(1000), &[]);
    let of = |pattern: &str, bytes| {
        ByRule::with_limits(Regex::new(pattern).unwrap(), Arc::clone(&tokens), MaskLimits::bytes(bytes)).unwrap()
    };
    // All states, and none is walked later.
    let dates = of("[0-9]{4}-[0-9]{2}-[0-9]{2}", 1 << 20);
    let done = dates.prepare(PrepareLimits::default());
    assert!(done.complete && done.states == 11 && done.walked == 11, "{done:?}");
    assert_eq!((dates.stats().misses, dates.stats().masks), (11, 11));
    let done = dates.prepare(PrepareLimits::default());
    assert!(done.complete && dates.stats().misses == 11, "{done:?}");
    // Limits: of states, of time, of memory.
    let long = of("[a-z]{0,300}", 1 << 20);
    let done = long.prepare(PrepareLimits::default().states(10));
    assert!(!done.complete && done.states == 10 && done.walked == 10, "{done:?}");
    let done = long.prepare(PrepareLimits::default().time(Duration::ZERO));
    assert!(!done.complete && done.walked == 0, "{done:?}");
    let small = of("[a-z]{0,300}", 20_000);
    let done = small.prepare(PrepareLimits::default());
    assert!(!done.complete && done.walked < 200 && small.stats().masks >= done.walked, "{done:?} {:?}", small.stats());
    // Rules without an end of states.
    let json = ByRule::new(Example::Json.grammar().unwrap(), tokens).unwrap();
    let done = json.prepare(PrepareLimits::default().states(500));
    assert!(!done.complete && done.states == 500 && done.walked == 500, "{done:?}");
}
