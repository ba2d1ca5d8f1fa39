//! Replies that are noise: nothing panics, no text is lost, all portions make one message, and time is linear.

use crate::support::random::Random;
use chat_format::analysis::PromptOptions;
use chat_format::{ChatFormat, ChatTemplate, Message, ParserOptions, Tools};
use serde_json::json;
use std::time::{Duration, Instant};

fn formats() -> Vec<(String, ChatFormat)> {
    let made = |(name, text): (String, String)| {
        (name, ChatFormat::new(ChatTemplate::new(text, "<s>", "</s>").unwrap()).unwrap())
    };
    crate::support::templates().unwrap_or_default().into_iter().map(made).collect()
}

fn options(tools: &Tools) -> ParserOptions {
    let mut options = ParserOptions::default();
    options.tools = Some(tools.clone());
    options
}

fn tools() -> Tools {
    let schema = json!({"type": "object", "properties": {"times": {"type": "integer"}, "tune": {"type": "string"}}});
    Tools::new(&[json!({"name": "ring", "parameters": schema}), json!({"name": "stop"})]).unwrap()
}

fn read(format: &ChatFormat, tools: &Tools, reply: &[u8], size: usize, partial: bool) -> Message {
    let mut parser = format.parser(&options(tools)).unwrap();
    reply.chunks(size.max(1)).for_each(|portion| drop(parser.push(portion)));
    parser.finish(partial).1
}

/// Markers of the format, names, JSON, and words.
fn pieces(format: &ChatFormat) -> Vec<String> {
    let analysis = format.analysis();
    let mut pieces = analysis.preserved.clone();
    pieces.extend(analysis.triggers.iter().cloned());
    for text in [
        "ring",
        "stop",
        "sing",
        "wort",
        " und\n",
        "{\"name\": \"",
        "\", \"arguments\": ",
        "{\"times\": 3}",
        "}",
        "]",
        "[",
        "{",
        "\"",
        "(",
        ")",
        "tune=",
        "'x'",
        ", ",
        "\n",
        "\u{e4}\u{20ac}",
        "\\",
        "0",
        ":",
        "null",
        "<",
        "functions.",
    ] {
        pieces.push(text.to_owned());
    }
    pieces
}

#[test]
fn noise_is_read() {
    let tools = tools();
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    for (name, format) in formats() {
        let pieces = pieces(&format);
        let dialect = &format.analysis().dialect;
        for round in 0..200 {
            let mut reply: Vec<u8> = Vec::new();
            for _ in 0..random.below(24) {
                if round % 4 == 0 {
                    reply.extend((0..random.below(9)).map(|_| random.next() as u8));
                } else {
                    let piece = random.pick(&pieces);
                    let end = if random.below(6) == 0 { random.below(piece.len() + 1) } else { piece.len() };
                    reply.extend_from_slice(&piece.as_bytes()[..end]);
                }
            }
            let shown = String::from_utf8_lossy(&reply).into_owned();
            let whole = read(&format, &tools, &reply, reply.len(), false);
            for size in [1, 3] {
                assert_eq!(read(&format, &tools, &reply, size, false), whole, "{name}: {shown:?} by {size}");
            }
            read(&format, &tools, &reply, 1, true);
            // Headers say who a text is for, and what stops a reply ends it; a marker alone is no text.
            let headed = !dialect.joints.is_empty();
            let stopped = dialect.stops.iter().any(|stop| shown.contains(stop.trim()));
            let empty = whole.content.is_empty() && whole.reasoning.is_empty() && whole.tool_calls.is_empty();
            let lost = empty && !headed && !stopped && shown.contains("wort");
            assert!(!lost, "{name}: {shown:?} was lost: {whole:?}");
        }
    }
}

#[test]
fn plain_text_comes_back_whole() {
    let tools = tools();
    let text = "Ein Satz, \u{fc}ber \"alles\": 3 < 5, [a], {b}, f(x) & co.\n\n- eins\n- zwei";
    for (name, format) in formats() {
        let message = read(&format, &tools, text.as_bytes(), 1, false);
        let headed = !format.analysis().dialect.joints.is_empty();
        let all = format!("{}{}", message.reasoning, message.content);
        // What the prompt begins may stand before it.
        assert!(headed || all.ends_with(text), "{name}: {message:?}");
    }
}

#[test]
fn time_is_linear() {
    let tools = tools();
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    for (name, format) in formats() {
        let calls = pieces(&format).concat();
        let markers = format.analysis().preserved.concat();
        let begins = format.analysis().triggers.first().cloned().unwrap_or_default();
        let kinds =
            [("text", "Ein Satz mit Worten. ".to_owned()), ("markers", markers), ("pieces", calls), ("heads", begins)];
        for (kind, unit) in kinds.into_iter().filter(|(_, unit)| !unit.is_empty()) {
            let reply: Vec<u8> = unit.bytes().cycle().take(100_000).collect();
            let before = Instant::now();
            read(&format, &tools, &reply, 1, false);
            slowest.push((before.elapsed(), format!("{name}, {kind}")));
        }
    }
    slowest.sort();
    for (taken, what) in slowest.iter().rev().take(5) {
        println!("{:.1} MB/s: {what}", 0.1 / taken.as_secs_f64());
    }
    if let Some((taken, what)) = slowest.get(slowest.len() / 2) {
        println!("the median: {:.1} MB/s: {what}", 0.1 / taken.as_secs_f64());
    }
    // Tests without optimization take their time.
    let most = if cfg!(debug_assertions) { 60 } else { 10 };
    assert!(slowest.iter().all(|(taken, _)| *taken < Duration::from_secs(most)), "{:?}", slowest.last());
}

#[test]
fn what_users_write_does_not_move_the_reply() {
    // The reply is read from where its turn begins: markers in a message before it are nobody's.
    for (name, format) in formats() {
        let prompt = |said: &str| {
            let (prompt, begins) =
                format.prompt(&[json!({"role": "user", "content": said})], None, &PromptOptions::default()).unwrap();
            prompt[begins..].to_owned()
        };
        let plain = prompt("Hallo");
        for marker in &format.analysis().preserved {
            let said = format!("Was hei\u{df}t {marker} hier? {marker}{{\"name\": \"ring\"}}");
            assert_eq!(prompt(&said), plain, "{name}: {marker:?}");
        }
    }
}
