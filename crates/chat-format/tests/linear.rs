//! Replies that repeat themselves: four times as long takes about four times as long, in every template and at every
//! place of a reply, whole or in portions of a byte.

use crate::support::random::Random;
use chat_format::analysis::PromptOptions;
use chat_format::{ChatFormat, ChatTemplate, Message, ParserOptions, ReasoningFormat, Tools};
use serde_json::{Value, json};
use std::time::Duration;
use test_budget::{cases, computed};

/// Bytes of the shorter of two replies.
const SHORT: usize = 1 << 14;
/// So much more time for four times the text is too much: what is quadratic takes sixteen times as long.
const MOST: f64 = 8.0;
/// Less is never too much: so short a time is measured badly.
const LEAST: Duration = Duration::from_millis(25);

fn tools() -> Vec<Value> {
    let schema = json!({"type": "object", "properties": {
        "times": {"type": "integer"},
        "tune": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object"},
        "any": {},
        "either": {"type": ["object", "string"]},
    }});
    vec![json!({"type": "function", "function": {"name": "ring", "description": "d", "parameters": schema}})]
}

/// Replies as the template writes them: text, thoughts, calls with each argument; empty where it refuses.
fn replies(format: &ChatFormat) -> Vec<String> {
    let mut replies = Vec::new();
    let tools = Value::Array(tools());
    let user = json!({"role": "user", "content": "Ring!"});
    let (prompt, _) =
        format.prompt(std::slice::from_ref(&user), Some(&tools), &PromptOptions::default()).unwrap_or_default();
    for (key, value) in [
        ("times", json!(3)),
        ("tune", json!("la")),
        ("list", json!(["a", "b"])),
        ("more", json!({"k": {"l": 1}})),
        ("any", json!({"k": "v"})),
        ("either", json!({"k": [1]})),
        ("other", json!("x")),
    ] {
        let call = json!({"id": "call00001", "type": "function",
            "function": {"name": "ring", "arguments": {key: value, "tune": "do"}}});
        let reply =
            json!({"role": "assistant", "content": "Ding.", "reasoning_content": "A bell.", "tool_calls": [call]});
        let mut options = PromptOptions::default();
        options.render.add_generation_prompt = false;
        if let Ok(text) = format.render(&[user.clone(), reply], Some(&tools), &options.render) {
            let common = prompt.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
            replies.push(text.get(common..).unwrap_or_default().to_owned());
        }
    }
    replies
}

/// What is said again and again; `{}` is another number each time.
fn units(random: &mut Random, replies: &[String]) -> Vec<String> {
    let mut units: Vec<String> = [
        " ",
        "\n",
        "\r\n",
        "\t",
        "a",
        "\u{e4}",
        "\u{1f514}",
        "<",
        "<|",
        "</",
        "<think>",
        "</think",
        "[",
        "]",
        "{",
        "}",
        "(",
        "\"",
        "'",
        "`",
        "```",
        "\\",
        "\\\"",
        "\\u00",
        "0",
        "-",
        "1,",
        "{\"a\":",
        "[{",
        "\"k{}\":1,",
        "\"k\":1,",
        "k{}=1,",
        "k{}: 1,",
        "<k{}>1</k{}>",
        "{\"name\": \"ring\", \"arguments\": {}}",
        "ring",
        " x",
        "\n\nx",
        "]]>",
        "<![CDATA[",
    ]
    .map(str::to_owned)
    .to_vec();
    // What markers begin with, and all of them.
    for _ in 0..12 {
        let reply = random.pick(replies);
        let starts: Vec<usize> = reply.char_indices().map(|(at, _)| at).collect();
        if let Some(&from) = starts.get(random.below(starts.len())) {
            let rest: Vec<char> = reply[from..].chars().take(1 + random.below(24)).collect();
            units.push(rest.into_iter().collect());
        }
    }
    units.extend(replies.iter().cloned());
    units.retain(|unit| !unit.is_empty());
    units
}

fn repeated(before: &str, unit: &str, bytes: usize) -> Vec<u8> {
    let mut reply = before.to_owned();
    for number in 0.. {
        if reply.len() >= bytes {
            break;
        }
        reply.push_str(&if unit.contains("{}") { unit.replace("{}", &number.to_string()) } else { unit.to_owned() });
    }
    reply.into_bytes()
}

fn read(format: &ChatFormat, options: &ParserOptions, reply: &[u8], size: usize) -> (Duration, Message) {
    let mut parser = format.parser(options).unwrap();
    computed(|| {
        reply.chunks(size).for_each(|portion| drop(parser.push(portion)));
        parser.finish(false).1
    })
}

#[test]
fn what_repeats_itself_is_read_in_linear_time() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let known = Tools::new(&tools()).unwrap();
    let templates = crate::support::templates().unwrap_or_else(crate::support::small_templates);
    let mut slow: Vec<String> = Vec::new();
    for (name, text) in templates {
        let Ok(format) = ChatFormat::new(ChatTemplate::new(text, "<s>", "</s>").unwrap()) else { continue };
        let replies = replies(&format);
        if replies.is_empty() {
            continue;
        }
        let units = units(&mut random, &replies);
        for _ in 0..cases(200) {
            if slow.len() > 20 {
                break;
            }
            let (reply, unit) = (random.pick(&replies), random.pick(&units));
            let ends: Vec<usize> = reply.char_indices().map(|(at, _)| at).collect();
            let before = &reply[..ends.get(random.below(ends.len() + 1)).copied().unwrap_or(0)];
            let mut options = ParserOptions::default();
            options.tools = (random.below(2) == 0).then(|| known.clone());
            options.json_content = random.below(3) == 0;
            if random.below(3) == 0 {
                options.reasoning = ReasoningFormat::None;
            }
            let size = *random.pick(&[1, 3, usize::MAX]);
            let (short, long) = (repeated(before, unit, SHORT), repeated(before, unit, 4 * SHORT));
            // What is too long once may be the machine; the last word has the shortest of several.
            let mut ratio = f64::INFINITY;
            let mut best = [Duration::MAX; 2];
            for _ in 0..3 {
                best[0] = best[0].min(read(&format, &options, &short, size).0);
                best[1] = best[1].min(read(&format, &options, &long, size).0);
                ratio = best[1].as_secs_f64() / best[0].as_secs_f64().max(1e-9);
                if ratio < MOST || best[1] < LEAST {
                    break;
                }
            }
            if ratio >= MOST && best[1] >= LEAST {
                slow.push(format!("{ratio:.1} {:?} {name} {before:?} then {unit:?} by {size}, {options:?}", best[1]));
            }
        }
    }
    assert!(slow.is_empty(), "{}: {}", slow.len(), slow[..slow.len().min(40)].join("\n"));
}
