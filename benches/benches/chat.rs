//! What chats cost: replies read in portions, and a constraint on them over a real vocabulary, beside llama.cpp's lazy
//! grammar on the same reply. `TOKENTRIE_VOCAB_DIR` names the vocabularies; without it only reading is measured.

use chat_format::{ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, Message, ParserOptions, Tools};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::Spelling;

#[path = "common/pieces.rs"]
mod pieces;

const TEMPLATE: &str = include_str!("../../crates/chat-format/tests/templates/json-object-in-tags.jinja");
const CALL: &str = "<tool_call>\n{\"name\": \"tool_1_write\", \"arguments\": {\"path\": \"notes/today.txt\", \
                    \"lines\": 12, \"mode\": \"safe\"}}\n</tool_call>";

fn format() -> ChatFormat {
    ChatFormat::new(ChatTemplate::new(TEMPLATE, "", "").expect("a template")).expect("an analysis")
}

fn tools(count: usize) -> Tools {
    let tool = |n: usize| {
        json!({"type": "function", "function": {"name": format!("tool_{n}_{}", ["read", "write", "find"][n % 3]),
            "description": "Does a thing.", "parameters": {"type": "object", "properties": {
                "path": {"type": "string"}, "lines": {"type": "integer"}, "mode": {"enum": ["fast", "safe"]},
                "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["path", "mode"]}}})
    };
    Tools::new(&(0..count).map(tool).collect::<Vec<_>>()).expect("good tools")
}

fn least<T>(times: usize, mut what: impl FnMut() -> T) -> (Duration, T) {
    let once = |_| {
        let begin = Instant::now();
        let made = what();
        (begin.elapsed(), made)
    };
    (0..times).map(once).min_by_key(|(time, _)| *time).expect("at least once")
}

fn read(format: &ChatFormat, reply: &str, size: usize) -> Message {
    let mut parser = format.parser(&ParserOptions::default()).expect("a parser");
    reply.as_bytes().chunks(size).for_each(|part| drop(parser.push(part)));
    parser.finish(false).1
}

fn reading(format: &ChatFormat) {
    let replies = [
        ("plain text", "It is nice weather today, said the fox. ".repeat(25_000)),
        ("text with <", "if a < b then <b>x</b>; ".repeat(40_000)),
        ("calls", format!("{CALL}\n").repeat(5_000)),
    ];
    for (name, reply) in &replies {
        let whole = read(format, reply, reply.len());
        for size in [1, 16, 4096] {
            assert!(read(format, reply, size) == whole, "portions make another message");
            let (time, _) = least(3, || read(format, reply, size));
            println!("reading {name}, portions of {size}: {:.0} MB/s", reply.len() as f64 / time.as_secs_f64() / 1e6);
        }
    }
    let reply = format!("{}{CALL}", "It is nice weather today. ".repeat(400));
    let (once, message) = least(3, || read(format, &reply, 16));
    let over = |reply: &str| {
        let ends = (16..reply.len()).step_by(16).chain([reply.len()]);
        // Each time the whole again, as those do that keep no state.
        ends.fold(None, |_, end| Some(read(format, &reply[..end], end)))
    };
    let (again, same) = least(1, || over(&reply));
    assert!(same == Some(message), "starting over means something else");
    println!("{} bytes in portions of 16: {once:?}; starting over at each {again:?}", reply.len());
}

/// The longest token at each place.
fn tokens_of(text: &[u8], known: &HashMap<&[u8], TokenId>) -> Vec<TokenId> {
    let (mut at, mut found) = (0, Vec::new());
    while at < text.len() {
        let lengths = (1..=32.min(text.len() - at)).rev();
        let longest = lengths.map(|n| &text[at..at + n]).find_map(|piece| Some((piece.len(), *known.get(piece)?)));
        let (length, token) = longest.expect("every byte is a token");
        found.push(token);
        at += length;
    }
    found
}

fn holding(format: &ChatFormat, spelling: &Spelling, known: &HashMap<&[u8], TokenId>, count: usize) {
    let control = ControlTokens::default();
    let mut options = ConstraintOptions::default();
    options.parallel = true;
    let mut cold = Duration::MAX;
    for _ in 0..5 {
        options.tools = tools(count);
        let begin = Instant::now();
        format.constraint(&options, spelling, &control).expect("a constraint");
        cold = cold.min(begin.elapsed());
    }
    options.tools = tools(count);
    let constraint = format.constraint(&options, spelling, &control).expect("a constraint");
    let (kept, _) = least(50, || format.constraint(&options, spelling, &control));
    println!("{count} tools: a constraint {cold:?} cold, {kept:?} where it is kept");
    let reply = format!("{} {CALL}", "It is nice weather today, so I write it down.".repeat(4));
    let tokens = tokens_of(reply.as_bytes(), known);
    let name = reply.find("tool_1").expect("the name");
    let mut scratch = Scratch::default();
    for visit in ["first visits", "states seen before"] {
        let (mut state, mut at) = (constraint.start(), 0);
        let (mut free, mut call, mut of_name) = (Vec::new(), Vec::new(), Duration::ZERO);
        for &token in &tokens {
            let begin = Instant::now();
            let next = constraint.next(&state, &mut scratch);
            let took = begin.elapsed();
            assert!(next.tokens.contains(token), "a right reply is refused at {at}");
            let begin = Instant::now();
            constraint.advance(&mut state, token).expect("a right reply is refused");
            let took = took + begin.elapsed();
            if at == name {
                of_name = took;
            }
            if at < reply.find('<').unwrap_or(0) {
                free.push(took);
            } else {
                call.push(took);
            }
            at += spelling.tokens().bytes(token).len();
        }
        free.sort_unstable();
        call.sort_unstable();
        let (median, most) = (free[free.len() / 2], free[free.len() - 1]);
        println!("  {visit}: a free token {median:?} (most {most:?}), the first of a name {of_name:?}, ");
        println!("    a token of the call {:?} (most {:?})", call[call.len() / 2], call[call.len() - 1]);
    }
}

/// What llama.cpp does for the same reply: a grammar that waits for its trigger.
fn rival(model: &LlamaModel, tokens: &[TokenId], count: usize) {
    let names: Vec<String> =
        tools(count).iter().map(|tool| serde_json::to_string(&tool.name).expect("a text").replace('"', "")).collect();
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let grammar = format!(
        "root ::= \"<tool_call>\\n{{\\\"name\\\": \\\"\" ({}) \"\\\", \\\"arguments\\\": \" object \"}}\\n\
        </tool_call>\"\n\
         object ::= \"{{\" member (\", \" member)* \"}}\"\nmember ::= string \": \" (string | [0-9]+)\n\
         string ::= \"\\\"\" [^\"\\\\]* \"\\\"\"\n",
        names.join(" | ")
    );
    let trigger = ["[\\s\\S]*?(<tool_call>[\\s\\S]*)".to_owned()];
    let Ok(mut sampler) = LlamaSampler::grammar_lazy_patterns(model, &grammar, "root", &trigger, &[]) else {
        return println!("llama.cpp takes no such grammar");
    };
    let row: Vec<LlamaTokenData> =
        (0..model.n_vocab()).map(|id| LlamaTokenData::new(LlamaToken(id), 0.0, 0.0)).collect();
    let mut times = Vec::new();
    for token in tokens {
        let mut candidates = LlamaTokenDataArray::new(row.clone(), false);
        let begin = Instant::now();
        candidates.apply_sampler(&mut sampler);
        let applied = begin.elapsed();
        let begin = Instant::now();
        sampler.accept(LlamaToken(token.get() as i32));
        times.push(applied + begin.elapsed());
    }
    times.sort_unstable();
    let total: Duration = times.iter().sum();
    println!(
        "llama.cpp's lazy grammar, {count} tools: median {:?}, most {:?}, mean {:?} a token",
        times[times.len() / 2],
        times[times.len() - 1],
        total / times.len() as u32
    );
}

fn main() {
    let (analysis, format) = least(5, format);
    println!("analysis and its check: {analysis:?}");
    reading(&format);
    let Some(pieces) = pieces::pieces() else {
        return println!("no TOKENTRIE_VOCAB_DIR with ggml-vocab-qwen2.gguf: constraints are not measured");
    };
    let known: HashMap<&[u8], TokenId> = pieces::text(&pieces).collect();
    let spelling = Spelling::from(pieces::tokens(&pieces));
    for count in [5, 300] {
        holding(&format, &spelling, &known, count);
    }
    let backend = LlamaBackend::init().expect("llama.cpp starts");
    let folder = PathBuf::from(std::env::var_os("TOKENTRIE_VOCAB_DIR").expect("the pieces are from there"));
    let params = LlamaModelParams::default().with_vocab_only(true);
    let model =
        LlamaModel::load_from_file(&backend, folder.join("ggml-vocab-qwen2.gguf"), &params).expect("a vocabulary");
    let reply = format!("{} {CALL}", "It is nice weather today, so I write it down.".repeat(4));
    for count in [5, 300] {
        rival(&model, &tokens_of(reply.as_bytes(), &known), count);
    }
}
