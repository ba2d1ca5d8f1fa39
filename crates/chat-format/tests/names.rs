//! Names of elements that may be any: masks are what the tokens that may be taken are, and their states are few.

use crate::support::random::Random;
use chat_format::{ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, ReplyConstraint, ToolChoice, Tools};
use serde_json::json;
use std::sync::Arc;
use test_budget::cases;
use trie_core::{Constraint, Scratch, TokenId, Tokens};
use trie_rules::TokenBytes;

const ELEMENTS: &str = include_str!("templates/elements-named-as-keys.jinja");

fn id(n: usize) -> TokenId {
    TokenId::new(n as u32).unwrap()
}

/// Each byte, and random joints of what calls are written with.
fn pieces(random: &mut Random, mark: &str) -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> =
        (0..=255).map(|byte| if byte == ControlTokens::BYTE { vec![] } else { vec![byte] }).collect();
    let known = [
        "<", "</", ">", "/", "k", "ke", "key", "item", "it", "more", "list", "1", "\"", "{", "}", "<key>", "</key>",
        "\n", " ", mark,
    ];
    for _ in 0..600 {
        let piece: String = (0..2 + random.below(5)).map(|_| *random.pick(&known)).collect();
        pieces.push(piece.into_bytes());
    }
    pieces
}

/// Templates with elements, each with the mark before them and without.
fn formats() -> Vec<(String, ChatFormat)> {
    let mut given = vec![(ELEMENTS.to_owned(), "]<]mark[>[")];
    given.extend(crate::support::template("MiniMax-M3.jinja").map(|found| (found.text().to_owned(), "]<]minimax[>[")));
    let marked = given.into_iter().flat_map(|(text, mark)| {
        ["", "]<]m[>["].map(|other| (other.to_owned(), ChatTemplate::new(text.replace(mark, other), "", "").unwrap()))
    });
    marked.map(|(mark, template)| (mark, ChatFormat::new(template).unwrap())).collect()
}

fn constraint(format: &ChatFormat, pieces: &[Vec<u8>]) -> ReplyConstraint {
    let schema = json!({"type": "object", "properties": {
        "more": {"type": "object"}, "list": {"type": "array", "items": {"type": "object"}}, "any": {},
    }, "required": ["more", "list"]});
    let mut options = ConstraintOptions::default();
    options.tools = Tools::new(&[json!({"name": "ring", "parameters": schema})]).unwrap();
    options.choice = ToolChoice::Required;
    let tokens = pieces.iter().enumerate().map(|(n, piece)| (&piece[..], id(n)));
    let spelling = Arc::new(TokenBytes::new(pieces.len(), tokens).unwrap()).into();
    format.constraint(&options, &spelling, &ControlTokens::default()).unwrap()
}

/// The state after a text, written in bytes.
fn after(constraint: &ReplyConstraint, text: &[u8]) -> Option<<ReplyConstraint as Constraint>::State> {
    let mut state = constraint.start();
    text.iter().all(|&byte| constraint.advance(&mut state, id(byte.into())).is_some()).then_some(state)
}

/// What a reply begins with, up to the first key.
fn begun(constraint: &ReplyConstraint, mark: &str) -> Vec<u8> {
    let call = format!("{mark}<tool_call>\n{mark}<invoke name=\"ring\">");
    let ways = ["", "</mm:think>"].map(|thought| format!("{thought}{call}").into_bytes());
    ways.into_iter().find(|text| after(constraint, text).is_some()).expect("a call may come")
}

#[test]
fn masks_are_what_may_be_taken() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    for (mark, format) in formats() {
        let pieces = pieces(&mut random, &mark);
        let constraint = constraint(&format, &pieces);
        let (mut wrong, mut states) = (Vec::new(), 0);
        for _ in 0..cases(100) {
            let mut text = begun(&constraint, &mark);
            let mut state = after(&constraint, &text).unwrap();
            for _ in 0..80 {
                let mut scratch = Scratch::default();
                let legal = constraint.next(&state, &mut scratch).tokens;
                if matches!(legal, Tokens::Except(_)) {
                    // The call is over.
                    break;
                }
                let mut legal_tokens = Vec::new();
                for token in (0..pieces.len()).map(id).filter(|token| !pieces[token.index()].is_empty()) {
                    let may = constraint.advance(&mut state.clone(), token).is_some();
                    if may != legal.names(token) {
                        let (text, piece) =
                            (String::from_utf8_lossy(&text), String::from_utf8_lossy(&pieces[token.index()]));
                        wrong.push(format!("{mark:?}: after {text:?} {piece:?} may come: {may}"));
                    }
                    if may {
                        legal_tokens.push(token);
                    }
                }
                states += 1;
                // Longer ones, lest all is written in bytes.
                let long: Vec<TokenId> = legal_tokens.iter().copied().filter(|token| token.index() > 255).collect();
                let from = if long.is_empty() || random.below(3) == 0 { &legal_tokens } else { &long };
                if from.is_empty() {
                    break;
                }
                let token = *random.pick(from);
                text.extend_from_slice(&pieces[token.index()]);
                constraint.advance(&mut state, token);
            }
        }
        assert!(
            states > 100 && wrong.is_empty(),
            "{} of {states} states: {}",
            wrong.len(),
            wrong[..wrong.len().min(10)].join("\n")
        );
    }
}

#[test]
fn beginnings_of_names_are_one_state_for_walks() {
    for (mark, format) in formats() {
        // Each beginning of a name by these tokens was a state of its own: some thousand, of a kilobyte.
        let letters = b"abcdefghijkl";
        let mut pieces: Vec<Vec<u8>> =
            (0..=255).map(|byte| if byte == ControlTokens::BYTE { vec![] } else { vec![byte] }).collect();
        for (one, two) in letters.iter().flat_map(|one| letters.map(|two| (*one, two))) {
            pieces.push(vec![one, two]);
            pieces.extend(letters.map(|three| vec![one, two, three]));
        }
        let constraint = constraint(&format, &pieces);
        let mut masks = 0;
        for name in ["a", "ab", "abc", "abcdefgh", "lkjihgf"] {
            let text = [&begun(&constraint, &mark)[..], format!("{mark}<more>{mark}<{name}").as_bytes()].concat();
            // Where objects are JSON there are no such names.
            let Some(state) = after(&constraint, &text) else { continue };
            constraint.next(&state, &mut Scratch::default());
            masks += 1;
        }
        let bytes = constraint.stats().walker_bytes;
        assert!(bytes < 1 << 20, "{mark:?}: {bytes} bytes for {masks} masks");
    }
}
