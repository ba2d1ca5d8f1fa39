//! Cost of chats: replies read in portions, and a constraint on them over a real vocabulary, beside llama.cpp's lazy
//! grammar on the same reply. `TOKENTRIE_VOCAB_DIR` names the vocabularies; without it only reading is measured.

use chat_format::analysis::PromptOptions;
use chat_format::{
    ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, Message, ParserOptions, ToolChoice, Tools,
};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_sampler::{Context, ContextOptions, GenerateOptions, Model, ModelOptions};
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trie_core::{AnyConstraint, Constraint, Scratch, SpanRules, TokenId};
use trie_rules::Spelling;

#[path = "common/pieces.rs"]
mod pieces;

const TEMPLATE: &str = include_str!("../../crates/chat-format/tests/templates/json-object-in-tags.jinja");
/// Each tool is a trigger of its own.
const TAGS: &str = include_str!("../../crates/chat-format/tests/templates/tag-is-name.jinja");
const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/tokentrie/models/tiny.gguf");
const CALL: &str = "<tool_call>\n{\"name\": \"tool_1_write\", \"arguments\": {\"path\": \"notes/today.txt\", \
                    \"lines\": 12, \"mode\": \"safe\"}}\n</tool_call>";

fn format(template: &str) -> ChatFormat {
    ChatFormat::new(ChatTemplate::new(template, "", "").expect("a template")).expect("an analysis")
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

/// Measures the time to compute the allowed tokens, and to accept one of them.
fn time_step<C: Constraint>(constraint: &C, state: &mut C::State, token: TokenId, scratch: &mut Scratch) -> Duration {
    let begin = Instant::now();
    let legal = constraint.next(state, scratch).tokens;
    let took = begin.elapsed();
    assert!(legal.contains(token), "a right reply is refused");
    let begin = Instant::now();
    constraint.advance(state, token).expect("a right reply is refused");
    took + begin.elapsed()
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
    for (visit, rounds) in [("first visits", 1), ("states seen before", 20)] {
        let (mut free, mut call, mut of_name) = (Vec::new(), Vec::new(), Duration::MAX);
        let (mut state, mut at) = (constraint.start(), 0);
        for &token in std::iter::repeat_n(&tokens, rounds).flatten() {
            if at == reply.len() {
                (state, at) = (constraint.start(), 0);
            }
            let took = time_step(&constraint, &mut state, token, &mut scratch);
            if at == name {
                of_name = of_name.min(took);
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

/// Free text where each of so many tools begins its calls with a text of its own.
fn triggers(spelling: &Spelling, known: &HashMap<&[u8], TokenId>, count: usize) {
    let format = format(TAGS);
    let mut options = ConstraintOptions::default();
    options.tools = tools(count);
    let constraint = format.constraint(&options, spelling, &ControlTokens::default()).expect("a constraint");
    let text = "It is nice weather today, so if a < b then <b>write</b> it down, or call tool_7_write. ".repeat(20);
    let tokens = tokens_of(text.as_bytes(), known);
    let mut scratch = Scratch::default();
    for visit in ["first visits", "states seen before"] {
        let mut state = constraint.start();
        let mut times = Vec::new();
        for &token in &tokens {
            times.push(time_step(&constraint, &mut state, token, &mut scratch));
        }
        times.sort_unstable();
        let mean = times.iter().sum::<Duration>() / times.len() as u32;
        println!("{count} triggers, {visit}: a free token {:?}, mean {mean:?}", times[times.len() / 2]);
    }
}

/// A whole call by the model in the package: free, held, and held by llama.cpp's grammar, with the same decoding.
fn whole_call() {
    let model = Model::load(TINY, ModelOptions::default()).expect("the model of the package");
    let vocab = Arc::clone(model.vocab());
    let format = ChatFormat::new(model.chat_template().expect("a template").clone()).expect("an analysis");
    let list = json!([
        {"type": "function", "function": {"name": "cancel_meeting", "description": "Cancels a meeting.",
            "parameters": {"type": "object", "properties": {"time": {"type": "string"}}, "required": ["time"]}}},
        {"type": "function", "function": {"name": "send_mail", "description": "Sends a mail.",
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}},
        {"type": "function", "function": {"name": "play_music", "description": "Plays music.",
            "parameters": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}}}]);
    let tools = Tools::new(list.as_array().expect("a list")).expect("good tools");
    let messages = [json!({"role": "user", "content": "Please cancel the meeting at 10:30."})];
    let (text, _) = format.prompt(&messages, Some(&list), &PromptOptions::default()).expect("a prompt");
    let prompt = vocab.tokenize(&text, true, true).expect("tokens");
    let markers = vocab.control().iter().filter(|&&token| !vocab.is_end_of_generation(token));
    let control = ControlTokens::new(markers.filter_map(|&token| Some((vocab.piece(token)?, token))))
        .with_ends(vocab.end_of_generation().to_vec());
    let mut options = ConstraintOptions::default();
    (options.tools, options.choice) = (tools.clone(), ToolChoice::Required);
    let constraint =
        format.constraint(&options, &vocab.spelling_with_control(ControlTokens::BYTE), &control).expect("a constraint");
    let rules = SpanRules::for_constraint(AnyConstraint::new(constraint), vocab.len()).expect("rules");
    let rules = Arc::new(rules.with_end_of_generation(vocab.end_of_generation()).expect("ends"));
    let mut context = model.context(ContextOptions::default().with_n_ctx(2048).with_n_threads(1)).expect("a context");
    let read = |text: &str| {
        let mut parser = format.parser(&ParserOptions::default()).expect("a parser");
        drop(parser.push(text.as_bytes()));
        parser.finish(false).1.tool_calls
    };
    let mut shown = |who: &str, run: &mut dyn FnMut(&mut Context) -> (Vec<TokenId>, u64)| {
        // Everything but the last token of the prompt is in the context.
        run(&mut context);
        let (time, (tokens, passes)) = least(20, || run(&mut context));
        let text = String::from_utf8(vocab.join(&tokens).expect("known tokens")).expect("text");
        let calls = read(&text);
        assert_eq!(calls.len(), 1, "{who}: no call in {text:?}");
        let rate = tokens.len() as f64 / time.as_secs_f64();
        let (count, call) = (tokens.len(), &calls[0]);
        println!(
            "{who}: {count} tokens in {passes} passes, {time:?}, {rate:.0} tokens/s: {}{}",
            call.name, call.arguments
        );
    };
    let generate = GenerateOptions::default().with_max_tokens(80);
    let ours = |rules: Option<&Arc<SpanRules>>, context: &mut Context| {
        let made = context.generate(&prompt, rules, &generate, &mut ()).expect("a reply");
        (made.tokens, made.stats.forward_passes)
    };
    shown("a whole call, free", &mut |context| ours(None, context));
    shown("a whole call, held and skipped ahead", &mut |context| ours(Some(&rules), context));
    let grammar = call_grammar(&tools);
    let trigger = ["[\\s\\S]*?(<tool_call>[\\s\\S]*)".to_owned()];
    shown("a whole call, llama.cpp's lazy grammar", &mut |context| {
        let mut sampler =
            LlamaSampler::grammar_lazy_patterns(model.llama(), &grammar, "root", &trigger, &[]).expect("a grammar");
        let before = context.forward_passes();
        context.prefill(&prompt, &mut || false).expect("a pass");
        let mut tokens = Vec::new();
        while tokens.len() < 80 {
            let row = context.logits().expect("a row");
            let candidates = (0..).zip(row).map(|(id, &logit)| LlamaTokenData::new(LlamaToken(id), logit, 0.0));
            let mut candidates = LlamaTokenDataArray::from_iter(candidates, false);
            candidates.apply_sampler(&mut sampler);
            let best = candidates.data.iter().max_by(|one, other| one.logit().total_cmp(&other.logit()));
            let token = best.expect("a candidate").id();
            sampler.accept(token);
            let token = TokenId::new(token.0 as u32).expect("a token");
            if vocab.is_end_of_generation(token) {
                break;
            }
            tokens.push(token);
            context.feed(&[token], &mut || false).expect("a pass");
        }
        (tokens, context.forward_passes() - before)
    });
}

fn call_grammar(tools: &Tools) -> String {
    let names: Vec<String> = tools.iter().map(|tool| format!("\"{}\"", tool.name)).collect();
    format!(
        "root ::= \"<tool_call>\\n{{\\\"name\\\": \\\"\" ({}) \"\\\", \\\"arguments\\\": \" object \"}}\\n\
        </tool_call>\"\n\
         object ::= \"{{\" member (\", \" member)* \"}}\"\nmember ::= string \": \" (string | [0-9]+)\n\
         string ::= \"\\\"\" [^\"\\\\]* \"\\\"\"\n",
        names.join(" | ")
    )
}

/// Runs llama.cpp's counterpart on the same reply: a grammar that waits for its trigger.
fn rival(model: &LlamaModel, tokens: &[LlamaToken], count: usize) {
    let grammar = call_grammar(&tools(count));
    let trigger = ["[\\s\\S]*?(<tool_call>[\\s\\S]*)".to_owned()];
    let Ok(mut sampler) = LlamaSampler::grammar_lazy_patterns(model, &grammar, "root", &trigger, &[]) else {
        return println!("llama.cpp takes no such grammar");
    };
    let row: Vec<LlamaTokenData> =
        (0..model.n_vocab()).map(|id| LlamaTokenData::new(LlamaToken(id), 0.0, 0.0)).collect();
    let mut times = Vec::new();
    for &token in tokens {
        let mut candidates = LlamaTokenDataArray::new(row.clone(), false);
        let begin = Instant::now();
        candidates.apply_sampler(&mut sampler);
        let applied = begin.elapsed();
        let begin = Instant::now();
        sampler.accept(token);
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

/// Measures a format over a real vocabulary.
fn over_a_vocabulary(format: &ChatFormat) {
    let Some(pieces) = pieces::pieces() else {
        return println!("no TOKENTRIE_VOCAB_DIR with ggml-vocab-qwen2.gguf: constraints are not measured");
    };
    let known: HashMap<&[u8], TokenId> = pieces::text(&pieces).collect();
    let spelling = Spelling::from(pieces::tokens(&pieces));
    for count in [5, 300] {
        holding(format, &spelling, &known, count);
    }
    for count in [10, 1000] {
        triggers(&spelling, &known, count);
    }
}

/// llama.cpp's own grammar, before anything else begins a llama.cpp: there is one in a process.
fn rivals() {
    let Some(folder) = std::env::var_os("TOKENTRIE_VOCAB_DIR") else { return };
    let backend = LlamaBackend::init().expect("llama.cpp starts");
    let params = LlamaModelParams::default().with_vocab_only(true);
    let file = PathBuf::from(folder).join("ggml-vocab-qwen2.gguf");
    let model = LlamaModel::load_from_file(&backend, file, &params).expect("a vocabulary");
    let reply = format!("{} {CALL}", "It is nice weather today, so I write it down.".repeat(4));
    let tokens = model.vocab().tokenize(reply.as_bytes(), false, false);
    for count in [5, 300] {
        rival(&model, &tokens, count);
    }
}

fn main() {
    let (analysis, format) = least(5, || format(TEMPLATE));
    rivals();
    println!("analysis and its check: {analysis:?}");
    reading(&format);
    over_a_vocabulary(&format);
    whole_call();
}
