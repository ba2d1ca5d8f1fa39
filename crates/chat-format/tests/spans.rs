//! The constraint on outputs that are right, and at the places where names and enums are chosen.

use crate::support::{Cases, text};
use chat_format::ControlTokens;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trie_core::{Constraint, TokenId};
use trie_rules::{Spelling, TokenBytes};

const CONTROL: u8 = ControlTokens::BYTE;

fn id(n: u32) -> TokenId {
    TokenId::new(n).unwrap()
}

/// Each byte is a token.
fn bytes() -> Spelling {
    let all: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let tokens = all.iter().zip(0..).filter(|(byte, _)| byte[0] != CONTROL);
    Arc::new(TokenBytes::new(256, tokens.map(|(byte, n)| (&byte[..], id(n)))).unwrap()).into()
}

fn legal<C: Constraint>(constraint: &C, state: &C::State) -> BTreeSet<u8> {
    (0..CONTROL).filter(|&byte| constraint.step(state, id(u32::from(byte))).is_some()).collect()
}

#[test]
fn right_outputs_are_accepted_and_names_and_enums_are_exact() {
    let Some(mut cases) = Cases::read() else { return };
    let (spelling, control) = (bytes(), ControlTokens::default());
    let mut table: BTreeMap<String, (usize, usize, Vec<String>)> = BTreeMap::new();
    for case in cases.cases() {
        let calls = case["expected"]["tool_calls"].as_array().unwrap();
        if calls.is_empty() || case["is_partial"] == true {
            continue;
        }
        let template = text(&case, "template");
        let options = cases.constraint_options(&case);
        let row = table.entry(template.to_owned()).or_default();
        let constraint = match cases.formats[template].constraint(&options, &spelling, &control) {
            Ok(constraint) => constraint,
            Err(error) => {
                row.2.push(format!("{}: {error}", text(&case, "id")));
                continue;
            }
        };
        let spans = case["spans"].as_array().cloned().unwrap_or_default();
        let mut state = constraint.start();
        let output = text(&case, "model_output").as_bytes();
        let mut refused = None;
        for (at, &byte) in output.iter().enumerate() {
            for span in spans.iter().filter(|span| span["start"] == at) {
                match exact(&constraint, &state, span, &options.tools.iter().map(|t| &t.name[..]).collect::<Vec<_>>()) {
                    Ok(()) => row.1 += 1,
                    Err(why) => row.2.push(format!("{} span at {at}: {why}", text(&case, "id"))),
                }
            }
            if constraint.advance(&mut state, id(u32::from(byte))).is_none() {
                let legal = legal(&constraint, &state);
                let legal: String = legal.iter().take(12).map(|&byte| char::from(byte)).collect();
                refused = Some(format!(
                    "{} refused at {at}: {:?} | {:?}, legal {legal:?}",
                    text(&case, "id"),
                    String::from_utf8_lossy(&output[..at]),
                    String::from_utf8_lossy(&output[at..]),
                ));
                break;
            }
        }
        match refused {
            None => row.0 += 1,
            Some(refused) => row.2.push(refused),
        }
    }
    let mut wrong = 0;
    for (template, (passed, spans, failed)) in &table {
        println!("{template}: {passed} outputs, {spans} spans, {} failed", failed.len());
        failed.iter().take(5).for_each(|failed| println!("    {failed}"));
        wrong += failed.len();
    }
    assert_eq!(wrong, 0, "outputs refused, or spans that are not exact");
}

/// At the start of a span exactly the offered texts go on, each to its end.
fn exact<C: Constraint>(constraint: &C, start: &C::State, span: &Value, tools: &[&str]) -> Result<(), String> {
    let offered: Vec<&str> = match span["choices"].as_array() {
        Some(choices) => choices.iter().map(|choice| choice.as_str().unwrap()).collect(),
        None => tools.to_vec(),
    };
    let after = text(span, "following_text").as_bytes()[0];
    // A message may go to the user instead of a tool.
    let recipients = !span["choices"].is_array() && span["start"] == 0;
    let mut prefixes: BTreeMap<Vec<u8>, BTreeSet<u8>> = BTreeMap::new();
    for text in &offered {
        for at in 0..text.len() {
            prefixes.entry(text.as_bytes()[..at].to_vec()).or_default().insert(text.as_bytes()[at]);
        }
        prefixes.entry(text.as_bytes().to_vec()).or_default().insert(after);
    }
    for (prefix, next) in &prefixes {
        let mut state = start.clone();
        for &byte in prefix {
            constraint.advance(&mut state, id(u32::from(byte))).ok_or_else(|| format!("{prefix:?} is refused"))?;
        }
        let legal = legal(constraint, &state);
        // White space may stand before what follows a value.
        let whole = offered.iter().any(|text| text.as_bytes() == prefix);
        let blank = |byte: &u8| whole && byte.is_ascii_whitespace() && !next.contains(byte);
        let user = |byte: &u8| recipients && b"all\n".contains(byte) && !next.contains(byte);
        let legal: BTreeSet<u8> = legal.iter().copied().filter(|byte| !blank(byte) && !user(byte)).collect();
        if legal != *next {
            let shown = |set: &BTreeSet<u8>| set.iter().map(|&byte| char::from(byte)).collect::<String>();
            let prefix = String::from_utf8_lossy(prefix);
            return Err(format!("after {prefix:?} {:?} may come, not {:?}", shown(&legal), shown(next)));
        }
    }
    Ok(())
}
