//! Texts and what may come after them: the cases of the folder that `TOKENTRIE_CASES_DIR` names (else
//! `../shared/cases`), and cases of our own.

use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use trie_rules::{Grammar, GrammarOptions, Rule, TextOf};

fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    std::env::var_os("TOKENTRIE_CASES_DIR").filter(|name| !name.is_empty()).map_or(here, PathBuf::from)
}

fn bytes(value: &Value) -> Vec<u8> {
    value.as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8).collect()
}

/// Walks the input and compares all that is expected.
fn check(grammar: &Grammar, case: &Value) {
    let (id, expect) = (&case["id"], &case["expect"]);
    let input = case["input"].as_str().unwrap().as_bytes();
    let mut state = grammar.start();
    let mut accepted = 0;
    for &byte in input {
        let Some(next) = grammar.step(&state, byte) else { break };
        state = next;
        accepted += 1;
    }
    assert_eq!(accepted as u64, expect["accepted_bytes"].as_u64().unwrap(), "{id}");
    assert_eq!(accepted == input.len(), expect["accepted_all"] == true, "{id}");
    if let Some(eos) = expect["eos_allowed"].as_bool() {
        assert_eq!(grammar.is_end(&state), eos, "{id}");
    }
    if expect["next_bytes"].is_array() {
        let next: Vec<u8> = (0..=255).filter(|&byte| grammar.step(&state, byte).is_some()).collect();
        assert_eq!(next, bytes(&expect["next_bytes"]), "{id}");
    }
}

/// Grammars that the file gives by text, or that lie beside it as `NAME.y`. The others cannot be looked at.
fn grammars(cases: &Value, beside: &Path) -> HashMap<String, Grammar> {
    let text = |name: &String, given: &Value| {
        let given = given.as_str().unwrap();
        let text = given.contains(':').then(|| given.to_owned()).filter(|given| given.contains(";\n"));
        text.or_else(|| std::fs::read_to_string(beside.join(format!("{name}.y"))).ok())
    };
    // Yacc's C grammar has its dangling else; the cases are about bytes.
    let options = GrammarOptions::default().text_of(TextOf::Bytes).lenient(true);
    let made = cases["grammars"].as_object().unwrap().iter().filter_map(|(name, given)| {
        let grammar = Grammar::with_options(&text(name, given)?, options);
        Some((name.clone(), grammar.unwrap_or_else(|error| panic!("{name}: {error}"))))
    });
    made.collect()
}

fn run(path: &Path) -> Option<(usize, usize)> {
    let cases: Value = serde_json::from_slice(&std::fs::read(path).ok()?).unwrap();
    let grammars = grammars(&cases, path.parent()?);
    let (mut run, mut left_out) = (0, 0);
    for case in cases["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "cfg") {
        let Some(grammar) = grammars.get(case["grammar"].as_str().unwrap()) else {
            left_out += 1;
            continue;
        };
        check(grammar, case);
        run += 1;
    }
    Some((run, left_out))
}

#[test]
fn cases_of_the_folder() {
    let path = folder().join("rules.json");
    match run(&path) {
        None => eprintln!("SKIPPED: no {}", path.display()),
        Some((run, 0)) => eprintln!("{run} cases"),
        Some((run, left_out)) => {
            eprintln!("{run} cases; SKIPPED {left_out}, whose grammar is not beside them as NAME.y");
        }
    }
}

#[test]
fn cases_of_our_own() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/grammar.json");
    let (run, left_out) = run(&path).unwrap();
    assert!(run >= 10 && left_out == 0, "{run} cases, {left_out} left out");
}
