//! Regular expressions, choices and values: the cases of the folder that `TOKENTRIE_CASES_DIR` names (else
//! `../shared/cases`), and cases of our own.

use crate::common::{id, tokens};
use proptest::prelude::any;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value as Json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{MaskLimits, Regular, RegularState, Rule, StringOptions, Value};

fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    std::env::var_os("TOKENTRIE_CASES_DIR").filter(|name| !name.is_empty()).map_or(here, PathBuf::from)
}

fn numbers(value: &Json) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn texts(value: &Json) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn rule(case: &Json) -> Option<Regular> {
    let bound = |name: &str| case[name].as_i64().map(i128::from);
    let chars = |name: &str| case[name].as_u64().map(|chars| chars as usize);
    Some(match case["kind"].as_str().unwrap() {
        "regex" => Regular::regex(case["pattern"].as_str().unwrap()).unwrap(),
        "choice" => Regular::one_of([], &texts(&case["choices"])).unwrap(),
        "integer" => Regular::integer(bound("low"), bound("high")).unwrap(),
        "date" => Regular::date(),
        "string" => {
            let options = StringOptions::default().quotes(case["quotes"] == true);
            let options = options.min_chars(chars("min_chars").unwrap());
            let options = chars("max_chars").map_or(options, |most| options.max_chars(most));
            Regular::string(options).unwrap()
        }
        _ => return None,
    })
}

fn next_bytes(rule: &Regular, state: &RegularState) -> Vec<u64> {
    (0..=255u8).filter(|&byte| rule.step(state, byte).is_some()).map(u64::from).collect()
}

/// Walks the input and compares all that is expected.
fn check_text(rule: &Regular, case: &Json) {
    let (id, expect) = (&case["id"], &case["expect"]);
    let input = case["input"].as_str().unwrap().as_bytes();
    let mut states = vec![rule.start()];
    for &byte in input {
        let Some(next) = rule.step(states.last().unwrap(), byte) else { break };
        states.push(next);
    }
    let (accepted, state) = (states.len() - 1, states.last().unwrap());
    assert_eq!(accepted as u64, expect["accepted_bytes"].as_u64().unwrap(), "{id}");
    assert_eq!(accepted == input.len(), expect["accepted_all"] == true, "{id}");
    assert_eq!(rule.is_end(state), expect["eos_allowed"] == true, "{id}");
    let next = next_bytes(rule, state);
    if expect["next_bytes"].is_array() {
        assert_eq!(next, numbers(&expect["next_bytes"]), "{id}");
    }
    if expect["next_bytes_ascii"].is_array() {
        let ascii: Vec<u64> = next.into_iter().filter(|&byte| byte < 128).collect();
        assert_eq!(ascii, numbers(&expect["next_bytes_ascii"]), "{id}");
    }
    if !expect["value"].is_null() {
        let found = match rule.value(input).unwrap() {
            Value::Integer(number) => Json::from(i64::try_from(number).unwrap()),
            Value::Date { year, month, day } => Json::from([u64::from(year), month.into(), day.into()].to_vec()),
            Value::Entry { index, .. } => Json::from(index),
            Value::String(text) => Json::from(text),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expect["value"], "{id}");
    }
}

/// Tokens of the small vocabulary of the cases; those in front are special, the first is the end.
fn check_tokens(rule: &Regular, case: &Json, pieces: &[Vec<u8>], special: &[usize]) {
    let (name, expect) = (&case["id"], &case["expect"]);
    let constraint =
        rule.any().compile_for(tokens(pieces, special).into(), MaskLimits::default()).unwrap().constraint();
    let prefix: Vec<usize> = numbers(&case["prefix_tokens"]).into_iter().map(|token| token as usize).collect();
    let state =
        prefix.iter().try_fold(constraint.start(), |state, &token| Some(constraint.step(&state, id(token))?.state));
    let state = state.unwrap_or_else(|| panic!("{name}: refused"));
    let mut scratch = Scratch::default();
    let next = constraint.next(&state, &mut scratch);
    let ends = next.ending != Ending::No;
    let found: Vec<u64> = next.tokens.iter().map(|token: TokenId| u64::from(token.get())).collect();
    let end = if ends { vec![0] } else { Vec::new() };
    assert_eq!([end, found].concat(), numbers(&expect["allowed_tokens"]), "{name}");
    assert_eq!(ends, expect["eos_allowed"] == true, "{name}");
    // Bytes that must come.
    let bytes = prefix.iter().flat_map(|&token| pieces[token].clone());
    let mut state = bytes.fold(rule.start(), |state, byte| rule.step(&state, byte).unwrap());
    let mut forced = String::new();
    while let ([byte], false) = (&next_bytes(rule, &state)[..], rule.is_end(&state)) {
        write!(forced, "{byte:02x}").unwrap();
        state = rule.step(&state, *byte as u8).unwrap();
    }
    assert_eq!(forced, expect["forced_bytes_hex"].as_str().unwrap(), "{name}");
}

/// Random bytes that may come, from the start again where a text is over: always some, or an end.
fn check_lively(rule: &Regular, runner: &mut TestRunner, steps: usize) {
    let mut state = rule.start();
    for _ in 0..steps {
        let next = next_bytes(rule, &state);
        assert!(!next.is_empty() || rule.is_end(&state), "{rule:?}: a dead end");
        let one = any::<proptest::sample::Index>().new_tree(runner).unwrap().current();
        state = match next.len() {
            0 => rule.start(),
            some => rule.step(&state, next[one.index(some)] as u8).unwrap(),
        };
    }
}

fn run(path: &Path) -> Option<usize> {
    let cases: Json = serde_json::from_slice(&std::fs::read(path).ok()?).unwrap();
    let vocabulary = cases["vocab_tiny"].as_array();
    let (mut pieces, mut special) = (Vec::new(), Vec::new());
    for (token, piece) in vocabulary.into_iter().flatten().enumerate() {
        let text = piece[1].as_str().unwrap();
        if piece[0] == "special" {
            special.push(token);
            pieces.push(text.as_bytes().to_vec());
        } else {
            let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            pieces.push((0..text.len()).step_by(2).map(byte).collect());
        }
    }
    let mut run = 0;
    let mut runner = TestRunner::deterministic();
    for case in cases["cases"].as_array().unwrap() {
        let Some(rule) = rule(case) else { continue };
        if case["prefix_tokens"].is_array() {
            check_tokens(&rule, case, &pieces, &special);
        } else {
            check_text(&rule, case);
        }
        check_lively(&rule, &mut runner, 2000);
        run += 1;
    }
    Some(run)
}

#[test]
fn cases_of_the_folder() {
    let path = folder().join("rules.json");
    match run(&path) {
        None => eprintln!("SKIPPED: no {}", path.display()),
        Some(run) => assert!(run >= 14, "{run} cases"),
    }
}

#[test]
fn cases_of_our_own() {
    let run = run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/regular.json")).unwrap();
    assert!(run >= 50, "{run} cases");
}
