//! Grammars against a naive recogniser, byte by byte and over tokens.

// A state's hash and order depend on nothing that changes inside it.
#![allow(clippy::mutable_key_type)]

use crate::common::naive::Naive;
use crate::common::{compare, vocabulary};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use trie_rules::{Example, Grammar, GrammarState, Rule};

fn after(grammar: &Grammar, text: &[u8]) -> Option<GrammarState> {
    text.iter().try_fold(grammar.start(), |state, &byte| grammar.step(&state, byte))
}

/// A way to an end over bytes and over whole terminals, shallow stacks first; `None` if there is none among so many
/// states.
fn way_out(grammar: &Grammar, from: &GrammarState, terminals: &[Vec<u8>], most: usize) -> Option<Vec<u8>> {
    // Without texts of terminals the grammar is small, and its ways out are long.
    let depth_costs = if terminals.is_empty() { 1000 } else { 2 };
    let bytes = (0..=255).map(|byte| (3, vec![byte]));
    let moves: Vec<(usize, Vec<u8>)> = terminals.iter().map(|text| (1, text.clone())).chain(bytes).collect();
    let mut seen = HashSet::from([from.clone()]);
    let mut texts = vec![(from.clone(), Vec::new(), 0)];
    let mut queue = BinaryHeap::from([(Reverse(0), Reverse(0))]);
    while let Some((_, Reverse(at))) = queue.pop() {
        let (state, text, cost) = texts[at].clone();
        if grammar.is_end(&state) {
            return Some(text);
        }
        for (more, bytes) in &moves {
            let next = bytes.iter().try_fold(state.clone(), |state, &byte| grammar.step(&state, byte));
            let Some(next) = next.filter(|next| seen.insert(next.clone())) else { continue };
            if seen.len() > most {
                return None;
            }
            queue.push((Reverse(depth_costs * next.depth() + cost + more), Reverse(texts.len())));
            texts.push((next, [&*text, bytes].concat(), cost + more));
        }
    }
    None
}

/// All texts of these characters up to a length: legal where the naive recogniser says so, and allowed as long as they
/// can be completed.
fn compare_all(grammar: &Grammar, naive: &Naive, alphabet: &[u8], longest: usize) -> Result<(), TestCaseError> {
    let mut texts = vec![(Vec::new(), Some(grammar.start()))];
    for length in 0..=longest {
        let mut longer = Vec::new();
        for (text, state) in texts {
            let legal = naive.accepts(&text);
            let ours = state.as_ref().is_some_and(|state| grammar.is_end(state));
            prop_assert_eq!(ours, legal, "{:?}", String::from_utf8_lossy(&text));
            if let Some(state) = &state {
                let way = way_out(grammar, state, &[], 100_000);
                prop_assert!(way.is_some(), "a dead end: {:?}", String::from_utf8_lossy(&text));
                let whole = [&*text, &way.unwrap()].concat();
                prop_assert!(naive.accepts(&whole), "{:?}", String::from_utf8_lossy(&whole));
            }
            // What is refused stays refused: one byte more is enough to see whether that was right.
            if length < longest && (state.is_some() || length < 4) {
                for &byte in alphabet {
                    let next = state.as_ref().and_then(|state| grammar.step(state, byte));
                    longer.push(([&*text, &[byte]].concat(), next));
                }
            }
        }
        texts = longer;
    }
    Ok(())
}

fn small_grammar() -> impl Strategy<Value = String> {
    let terminal = prop::sample::select(vec![
        "\"a\"",
        "\"b\"",
        "\"ab\"",
        "\"aa\"",
        "\"/a+/\"",
        "\"/b+/\"",
        "\"/[ab]c?/\"",
        "\"c\"",
        "\"/c+a?/\"",
        "\"abc\"",
        "\"/ca*b/\"",
    ]);
    let rule = prop::sample::select(vec!["s", "t", "u"]);
    let part = prop_oneof![3 => terminal, 2 => rule].prop_map(str::to_owned);
    let parts = prop::collection::vec(part, 0..4).prop_map(|parts| parts.join(" "));
    let rule = prop::collection::vec(parts, 1..4).prop_map(|alternatives| alternatives.join(" | "));
    let skip = prop::sample::select(vec!["", "", "SKIP : \"/ +/\" ;", "SKIP : \"/-c*/\" ;", "SKIP : \"/ b?/\" ;"]);
    (rule.clone(), rule.clone(), rule, skip)
        .prop_map(|(s, t, u, skip)| format!("%start s\n{skip}\ns : {s} ;\nt : {t} ;\nu : {u} ;\n"))
}

/// Random grammars. Most are invalid; those that are left must be exact.
#[test]
fn small_grammars_are_exact() {
    let mut runner =
        TestRunner::new(Config { cases: test_budget::cases(6000), failure_persistence: None, ..Config::default() });
    let made = std::cell::Cell::new(0);
    let result = runner.run(&small_grammar(), |text| {
        let Ok(grammar) = Grammar::new(&text) else { return Ok(()) };
        made.set(made.get() + 1);
        compare_all(&grammar, &Naive::new(&text), b"abc -", 5)
    });
    eprintln!("{} grammars", made.get());
    result.unwrap();
    assert!(made.get() >= test_budget::cases(50), "only {} grammars", made.get());
}

proptest! {
    #![proptest_config(Config { cases: test_budget::cases(400), failure_persistence: None, ..Config::default() })]
    #[test]
    fn tokens_are_those_of_brute_force(text in small_grammar(), pieces in vocabulary(), control in 0..4usize) {
        let Ok(grammar) = Grammar::new(&text) else { return Ok(()) };
        compare(grammar, &pieces, &[control], 60)?;
    }
}

/// Tokens that cross several terminals, in grammars that have SKIP, keywords, and neighbours that run into each other.
#[test]
fn tokens_across_terminals() {
    let mut runner =
        TestRunner::new(Config { cases: test_budget::cases(30), failure_persistence: None, ..Config::default() });
    for example in Example::ALL {
        let (grammar, naive) = (example.grammar().unwrap(), Naive::new(example.text()));
        let mut pieces: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for _ in 0..40 {
            let text = naive.generate(&mut runner, 12).into_bytes();
            pieces.extend(text.chunks(7).chain(text.chunks(3)).map(<[u8]>::to_vec));
            let tight: Vec<u8> = text.into_iter().filter(|&byte| byte != b' ').collect();
            pieces.extend(tight.chunks(4).map(<[u8]>::to_vec));
        }
        compare(grammar, &pieces, &[0], 250).unwrap();
    }
}

#[test]
fn examples_take_what_they_generate() {
    let mut runner = TestRunner::deterministic();
    for example in Example::ALL {
        let (grammar, naive) = (example.grammar().unwrap(), Naive::new(example.text()));
        assert!(grammar.warnings().is_empty());
        for size in (0..200).map(|n| n % 40) {
            let text = naive.generate(&mut runner, size);
            // A pattern's text may be a keyword's, which reads as the keyword: then neither takes it.
            let ours = after(&grammar, text.as_bytes()).is_some_and(|state| grammar.is_end(&state));
            assert_eq!(ours, naive.accepts(text.as_bytes()), "{example:?}: {text:?}");
        }
    }
}

#[test]
fn mutations_agree_and_nothing_is_a_dead_end() {
    let mut runner = TestRunner::deterministic();
    let (mut legal, mut ways) = (0, 0);
    for example in Example::ALL {
        let (grammar, naive) = (example.grammar().unwrap(), Naive::new(example.text()));
        let texts = naive.patterns.iter().flat_map(|(_, terminal)| {
            let text = terminal.sample(&mut runner);
            [text.clone() + " ", " ".to_owned() + &text + " "].map(String::into_bytes)
        });
        let texts: Vec<Vec<u8>> = texts.collect();
        for round in 0..150 {
            let mut text = naive.generate(&mut runner, 5 + round % 20).into_bytes();
            let mutation = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8);
            let (at, other, kind) = mutation.new_tree(&mut runner).unwrap().current();
            let (at, other) = (at.index(text.len()), other.index(text.len()));
            match kind {
                0 => drop(text.remove(at)),
                1 => text.insert(at, text[other]),
                2 => text.swap(at, other),
                _ => text.truncate(at),
            }
            let state = after(&grammar, &text);
            let ours = state.as_ref().is_some_and(|state| grammar.is_end(state));
            assert_eq!(ours, naive.accepts(&text), "{example:?}: {:?}", String::from_utf8_lossy(&text));
            legal += usize::from(ours);
            let longest = (0..=text.len()).rev().find_map(|end| Some((end, after(&grammar, &text[..end])?)));
            let (end, state) = longest.unwrap();
            let way = way_out(&grammar, &state, &texts, 400_000);
            let way = way.unwrap_or_else(|| panic!("{example:?}: {:?}", String::from_utf8_lossy(&text[..end])));
            let whole = [&text[..end], &*way].concat();
            assert!(naive.accepts(&whole), "{example:?}: {:?}", String::from_utf8_lossy(&whole));
            ways += 1;
        }
    }
    eprintln!("{legal} mutated texts are legal, {ways} ways out");
}

/// 100,000 steps over allowed bytes: every state has a next byte or may end.
#[test]
fn random_walks_never_stop() {
    let mut runner = TestRunner::deterministic();
    for example in Example::ALL {
        let grammar = example.grammar().unwrap();
        let mut state = grammar.start();
        for step in 0..100_000 {
            let next: Vec<GrammarState> = (0..128).filter_map(|byte| grammar.step(&state, byte)).collect();
            let more = !next.is_empty() || (128..=255).any(|byte| grammar.step(&state, byte).is_some());
            assert!(more || grammar.is_end(&state), "{example:?}, step {step}: {state:?}");
            if next.is_empty() || step % 2000 == 0 {
                state = grammar.start();
                continue;
            }
            let at = any::<prop::sample::Index>().new_tree(&mut runner).unwrap().current().index(next.len());
            state = next[at].clone();
        }
    }
}

/// Stacks are shared: deep ones cost nothing to clone, compare, drop.
#[test]
fn deep_stacks() {
    let json = Example::Json.grammar().unwrap();
    let deep = after(&json, &b"[".repeat(300_000)).unwrap();
    assert_eq!(deep.depth(), 300_000);
    let again = after(&json, &b"[".repeat(300_000)).unwrap();
    assert_eq!(deep, again);
    let closed = b"]".repeat(300_000).iter().try_fold(deep.clone(), |state, &byte| json.step(&state, byte)).unwrap();
    assert!(json.is_end(&closed));
    drop((deep, again, closed));
}

/// Equal texts lead to equal states, whoever walks them and whatever was dropped in between.
#[test]
fn threads_share_stacks() {
    let json = Example::Json.grammar().unwrap();
    let text = br#"{"a": [[1, {"b": [true, "#;
    let walked = std::thread::scope(|scope| {
        let walk = || {
            for _ in 0..2000 {
                drop(after(&json, text).unwrap());
            }
            after(&json, text).unwrap()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(walk)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(walked.iter().all(|state| *state == walked[0]));
    assert_eq!(walked.into_iter().collect::<HashSet<_>>().len(), 1);
}

fn error(text: &str) -> String {
    Grammar::new(text).unwrap_err().to_string()
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    let error = error(text);
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn grammars_that_cannot_be_used() {
    says("", &["line 1, column 1", "no rule"]);
    says("// only a comment", &["no rule"]);
    says("A : \"a\" ;", &["no rule"]);
    says("s : \"a\"\n  | b ;", &["line 2, column 5", "named b"]);
    says("%start x\ns : \"a\" ;", &["line 1, column 8", "named x"]);
    says("%start A\ns : A ;\nA : \"a\" ;", &["line 1, column 8", "A is a terminal"]);
    says("s : \"a\" ;\ns : \"b\" ;", &["line 2, column 1", "line 1, column 1"]);
    says("s : \"a", &["line 1, column 5", "\" is missing"]);
    says("s : \"a\" ", &["line 1, column 1", "; is missing"]);
    says("s : \"a\"\nt : \"b\" ;", &["line 2, column 3", "misses its ;"]);
    says("s \"a\" ;", &["line 1, column 3", "colon must follow s"]);
    says("s", &["colon must follow s"]);
    says("s : \"a\" { $$ = 1; } ;", &["line 1, column 9", "no actions"]);
    says("s : \"\" ;", &["line 1, column 5", "empty text is not a terminal"]);
    says("s : \"a\" ; /* b", &["line 1, column 11", "comment never ends"]);
    says("s : \"a\" / \"b\" ;", &["comment"]);
    says("s : \"a\" & \"b\" ;", &["line 1, column 9", "'&'"]);
    says("%left '+'\ns : \"a\" ;", &["line 1, column 1", "%left", "one for each level"]);
    says("%union\ns : \"a\" ;", &["%union is not known"]);
    says("s : \"/a(b/\" ;", &["line 1, column 8", "position 1", "unclosed group"]);
    says("s : \"/(?=a)/\" ;", &["look-around"]);
    says("s : \"b\" \"/a*/\" ;", &["line 1, column 9", "matches the empty text"]);
    says("s : \"/[^\\x00-\\x{10FFFF}]/\" | \"a\" ;", &["line 1, column 5", "matches no text"]);
    says(
        "s : NAME KEY ;\nNAME : \"/[a-z]+/\" ;\nKEY : \"/[k]ey/\" ;",
        &["line 3, column 1", "KEY is never read", "NAME"],
    );
    says("s : \"a\" ;\nt : \"b\" ;", &["line 2, column 1", "t cannot be reached from the start s"]);
    says("s : \"a\" ;\nB : \"b\" ;", &["line 2, column 1", "B cannot be reached"]);
    says("s : \"a\" s ;", &["line 1, column 1", "s never ends"]);
    says("s : s ;", &["s never ends"]);
    says("s : \"a\" t ;\nt : s | t ;", &["never ends"]);
    says("SKIP : \" \" ;\ns : \"a\" SKIP ;", &["line 2, column 9", "in no rule"]);
    says("s : \"a\" ;\nSKIP : s ;", &["line 2, column 1", "terminals alone"]);
    // Two numbers are one, and nothing stands between them.
    says("s : N N ;\nN : \"/[0-9]+/\" ;", &["line 1, column 1", "no text is legal"]);
}

#[test]
fn conflicts_say_which_rules() {
    says("s : \"a\" | t ;\nt : \"a\" ;", &["before the end", "s : \"a\" ·", "t : \"a\" ·", "line 2, column 1"]);
    says("s : s \"+\" s | \"a\" ;", &["before \"+\"", "s : s \"+\" s ·", "s : s · \"+\" s"]);
    says("s : s | \"a\" ;", &["conflict before the end"]);
    says("s : | s s | \"a\" ;", &["conflict"]);
    let options = trie_rules::GrammarOptions::default().lenient(true);
    let resolved = Grammar::with_options("s : \"i\" s | \"i\" s \"e\" s | \"x\" ;", options).unwrap();
    assert_eq!(resolved.warnings().len(), 1, "{:?}", resolved.warnings());
    assert!(after(&resolved, b"iixex").is_some_and(|state| resolved.is_end(&state)));
}

#[test]
fn limits() {
    let many = format!("s : {} ;", "\"a\" ".repeat(200));
    let limit = trie_rules::GrammarOptions::default().parts(100);
    let error = Grammar::with_options(&many, limit).unwrap_err().to_string();
    assert!(error.contains("more than 100 parts of rules"), "{error}");
    let small = trie_rules::GrammarOptions::default().automaton(trie_rules::AutomatonLimits::bytes(10_000));
    let error = Grammar::with_options("s : \"/\\w{1,200}/\" ;", small).unwrap_err().to_string();
    assert!(error.contains("more than 10000 bytes"), "{error}");
}

/// Left recursion, right recursion, empty rules, the empty text.
#[test]
fn shapes_of_rules() {
    for (text, legal, illegal) in [
        ("s : | s \"a\" ;", vec!["", "a", "aaa"], vec!["b"]),
        ("s : | \"a\" s ;", vec!["", "a", "aaa"], vec!["b"]),
        ("s : \"a\" s \"b\" | ;", vec!["", "ab", "aabb"], vec!["aab", "ba"]),
        ("s : a b \"c\" ; a : | \"a\" ; b : %empty | \"b\" ;", vec!["c", "ac", "bc", "abc"], vec!["", "bac", "ab"]),
        (
            "%token N\n%start s\n%%\ns : N | '/[a-c]/' ;\nN : \"1\" | \"one\" ;\n%% code",
            vec!["1", "one", "b"],
            vec!["o", "d"],
        ),
    ] {
        let grammar = Grammar::new(text).unwrap();
        let is = |whole: &str| after(&grammar, whole.as_bytes()).is_some_and(|state| grammar.is_end(&state));
        assert!(legal.iter().all(|text| is(text)) && !illegal.iter().any(|text| is(text)), "{text}");
    }
}

#[test]
fn text_is_utf8_unless_bytes_are_asked_for() {
    let text = "s : \"<\" ANY \">\" ;\nANY : \"/[^<>]+/\" ;";
    let grammar = Grammar::new(text).unwrap();
    assert!(after(&grammar, "<é>".as_bytes()).is_some_and(|state| grammar.is_end(&state)));
    assert!(after(&grammar, b"<\xff").is_none() && after(&grammar, b"<\xc3>").is_none());
    let bytes = trie_rules::GrammarOptions::default().text_of(trie_rules::TextOf::Bytes);
    let grammar = Grammar::with_options(text, bytes).unwrap();
    assert!(after(&grammar, b"<\xff>").is_some_and(|state| grammar.is_end(&state)));
}

#[test]
fn the_first_line_comes_after_a_line_feed() {
    let text = "SKIP : \"/\\n(#[^\\n]*)?/\" | \" \" ;\ns : \"a\" ;";
    let grammar = Grammar::new(text).unwrap();
    assert!(after(&grammar, b"#include\n#b\na").is_some_and(|state| grammar.is_end(&state)));
    let options = trie_rules::GrammarOptions::default().after_newline(false);
    assert!(after(&Grammar::with_options(text, options).unwrap(), b"#").is_none());
}
