//! What chats cost: reading replies, and holding them to a format over a vocabulary of `TOKENTRIE_VOCAB_DIR`.

#[path = "../../trie-rules/tests/common/vocab.rs"]
#[allow(unreachable_pub)]
mod vocab;

use chat_format::{ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, ParserOptions, ToolChoice, Tools};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::{Spelling, TokenBytes};

const TEMPLATE: &str = include_str!("../tests/templates/json-object-in-tags.jinja");

fn spelling() -> Option<Spelling> {
    let path = vocab::files().into_iter().find(|path| path.ends_with("ggml-vocab-qwen2.gguf"))?;
    let pieces = vocab::pieces(&path);
    let text = pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty());
    let text = text.map(|(id, piece)| (piece.as_slice(), TokenId::new(id as u32).unwrap()));
    Some(Arc::new(TokenBytes::new(pieces.len(), text).unwrap()).into())
}

fn least<T>(times: usize, mut what: impl FnMut() -> T) -> (Duration, T) {
    let once = |_| {
        let begin = Instant::now();
        let made = what();
        (begin.elapsed(), made)
    };
    (0..times).map(once).min_by_key(|(time, _)| *time).unwrap()
}

fn tools(count: usize) -> Tools {
    let tool = |n: usize| {
        json!({"type": "function", "function": {"name": format!("tool_{n}_{}", ["read", "write", "find"][n % 3]),
            "description": "Does a thing.", "parameters": {"type": "object", "properties": {
                "path": {"type": "string"}, "lines": {"type": "integer"}, "mode": {"enum": ["fast", "safe"]},
                "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["path", "mode"]}}})
    };
    Tools::new(&(0..count).map(tool).collect::<Vec<_>>()).unwrap()
}

fn main() {
    let format = ChatFormat::new(ChatTemplate::new(TEMPLATE, "", "").unwrap()).unwrap();
    let (analysis, _) = least(5, || ChatFormat::new(ChatTemplate::new(TEMPLATE, "", "").unwrap()).unwrap());
    println!("analysis {analysis:?}");
    let call = "<tool_call>\n{\"name\": \"tool_1_write\", \"arguments\": {\"path\": \"a.txt\", \"mode\": \"safe\"}}\n</tool_call>";
    for (name, reply) in [
        ("plain text", "It is nice weather today, said the fox. ".repeat(25_000)),
        ("text with <", "if a < b then <b>x</b>; ".repeat(40_000)),
        ("calls", format!("{call}\n").repeat(10_000)),
    ] {
        let read = |size: usize| {
            let mut parser = format.parser(&ParserOptions::default()).unwrap();
            reply.as_bytes().chunks(size).for_each(|part| drop(parser.push(part)));
            parser.finish(false).1
        };
        for size in [1, 16, 4096] {
            let (time, _) = least(3, || read(size));
            println!("{name}, portions of {size}: {:.0} MB/s", reply.len() as f64 / time.as_secs_f64() / 1e6);
        }
    }
    let Some(spelling) = spelling() else { return println!("no TOKENTRIE_VOCAB_DIR") };
    let control = ControlTokens::default();
    for count in [5, 300] {
        let mut options = ConstraintOptions::default();
        options.choice = ToolChoice::Auto;
        let (cold, constraint) = least(3, || {
            options.tools = tools(count);
            let begin = Instant::now();
            let made = format.constraint(&options, &spelling, &control).unwrap();
            (begin.elapsed(), made)
        });
        let (cold, constraint) = (constraint.0.min(cold), constraint.1);
        let (kept, _) = least(20, || format.constraint(&options, &spelling, &control).unwrap());
        println!("{count} tools: constraint cold {cold:?}, kept {kept:?}");
        let mut scratch = Scratch::default();
        let mut state = constraint.start();
        let (first, _) = least(1, || constraint.next(&state, &mut scratch).tokens.len());
        let (again, _) =
            least(50, || matches!(constraint.next(&state, &mut scratch).tokens, trie_core::Tokens::Except(_)));
        println!("  free text: first mask {first:?}, again {again:?}");
        let id_of = |text: &str| {
            (0..spelling.tokens().n_vocab() as u32)
                .filter_map(TokenId::new)
                .find(|&id| spelling.tokens().bytes(id) == text.as_bytes())
        };
        let hello = id_of(" weather").unwrap();
        constraint.advance(&mut state, hello).unwrap();
        let (second, _) = least(1, || constraint.next(&state, &mut scratch).tokens.first());
        let (step, _) = least(200, || {
            let mut at = state.clone();
            constraint.advance(&mut at, hello).unwrap();
            constraint.next(&at, &mut scratch).ending
        });
        println!("  after a token: first mask {second:?}; a free token (advance and next) {step:?}");
        for byte in "<tool_call>\n{\"name\": \"".bytes() {
            let token = id_of(std::str::from_utf8(&[byte]).unwrap()).unwrap_or_else(|| panic!("{byte}"));
            let (cold, _) = least(1, || constraint.next(&state, &mut scratch).ending);
            if cold > Duration::from_micros(300) {
                println!("  before {:?}: first mask {cold:?}", char::from(byte));
            }
            constraint.advance(&mut state, token).unwrap();
        }
        let (cold, n) = least(1, || constraint.next(&state, &mut scratch).tokens.len());
        let (warm, _) = least(50, || constraint.next(&state, &mut scratch).tokens.first());
        println!("  first token of a name ({n} may come): cold {cold:?}, warm {warm:?}");
        let mut worst = Duration::ZERO;
        for byte in
            "tool_1_write\", \"arguments\": {\"path\": \"some/file.txt\", \"lines\": 12, \"mode\": \"fast\"}}".bytes()
        {
            let token = id_of(std::str::from_utf8(&[byte]).unwrap()).unwrap_or_else(|| panic!("{byte}"));
            constraint.advance(&mut state, token).unwrap();
            let (cold, n) = least(1, || constraint.next(&state, &mut scratch).tokens.len());
            if cold > Duration::from_micros(200) {
                println!("    after {:?}: {cold:?} ({n})", char::from(byte));
            }
            worst = worst.max(cold);
        }
        println!("  slowest first mask in the arguments {worst:?}");
    }
}
