//! Templates with lines and expressions lost, doubled or swapped: analysis ends soon and does not claim what is not so.

use crate::support::random::Random;
use chat_format::{ChatFormat, ChatTemplate, Message, ParserOptions, TemplateError, Tools};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const MUTATIONS: usize = 300;

fn templates() -> Vec<(String, String)> {
    let mut found = crate::support::small_templates();
    found.extend(crate::support::templates().unwrap_or_default());
    found
}

/// Lines or blocks of Jinja, some of them lost, doubled or swapped.
fn mutated(text: &str, random: &mut Random) -> String {
    let mut pieces: Vec<&str> = if random.below(2) == 0 {
        text.split_inclusive('\n').collect()
    } else {
        let mut cuts: Vec<usize> = ["{{", "{%", "}}", "%}"]
            .iter()
            .flat_map(|mark| text.match_indices(mark).map(|(at, mark)| at + if mark.starts_with('{') { 0 } else { 2 }))
            .chain([0, text.len()])
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
    };
    for _ in 0..=random.below(3) {
        let at = random.below(pieces.len());
        match random.below(3) {
            0 if pieces.len() > 1 => drop(pieces.remove(at)),
            1 => pieces.insert(at, pieces[at]),
            _ => {
                let other = random.below(pieces.len());
                pieces.swap(at, other);
            }
        }
    }
    pieces.concat()
}

/// The prompt's end, and the reply after it, of a conversation with a call; nothing where the template shows none.
fn rendered(format: &ChatFormat) -> Option<(String, String)> {
    let tools = json!([{"type": "function", "function": {"name": "play_tune", "description": "Plays.",
        "parameters": {"type": "object", "properties": {"tune": {"type": "string"}}}}}]);
    let user = json!({"role": "user", "content": "Spiel was!"});
    let call = json!({"role": "assistant", "content": "", "tool_calls": [{"id": "p0q1r2s3t", "type": "function",
        "function": {"name": "play_tune", "arguments": {"tune": "Zauberlied"}}}]});
    let options = chat_format::analysis::PromptOptions::default().with_thinking(false);
    let (asked, begins) = format.prompt(std::slice::from_ref(&user), Some(&tools), &options).ok()?;
    let mut no_prompt = options;
    no_prompt.continued = chat_format::analysis::ContinuedPart::Nothing;
    let (whole, _) = format.prompt(&[user, call], Some(&tools), &no_prompt).ok()?;
    let same = chat_format::analysis::text::common_prefix(&asked, &whole).len();
    let reply = whole.get(same..)?;
    reply.contains("Zauberlied").then(|| (asked.get(begins..same).unwrap_or_default().to_owned(), reply.to_owned()))
}

fn read(format: &ChatFormat, prompt: &str, reply: &str) -> Message {
    let mut options = ParserOptions::default();
    options.prompt = Some(prompt.to_owned());
    options.tools = Some(Tools::new(&[json!({"name": "play_tune"})]).unwrap());
    let mut parser = format.parser(&options).unwrap();
    parser.push(reply.as_bytes());
    parser.finish(false).1
}

#[test]
fn what_is_not_degraded_reads_its_own_calls() {
    let templates = templates();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut slowest, mut refused, mut degraded, mut read_back) = (Duration::ZERO, 0, 0, 0);
    let mut wrong = Vec::new();
    for number in 0..MUTATIONS {
        let (name, text) = &templates[number % templates.len()];
        let text = mutated(text, &mut random);
        let before = Instant::now();
        let format = ChatTemplate::new(&text[..], "<s>", "</s>").and_then(ChatFormat::new);
        let taken = before.elapsed();
        slowest = slowest.max(taken);
        // Tests without optimization take their time.
        let most = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 10 });
        assert!(taken < most, "{name}, mutation {number}: {taken:?}");
        let format = match format {
            Ok(format) => format,
            Err(TemplateError::Thread { reason }) if reason.contains("fault") => panic!("{name}, {number}: {reason}"),
            Err(_) => {
                refused += 1;
                continue;
            }
        };
        if format.analysis().degraded.is_some() {
            degraded += 1;
            continue;
        }
        let Some((prompt, reply)) = rendered(&format) else { continue };
        let message = read(&format, &prompt, &reply);
        let arguments = message.tool_calls.first().and_then(|call| serde_json::from_str::<Value>(&call.arguments).ok());
        let same = message.tool_calls.len() == 1 && message.tool_calls[0].name == "play_tune";
        if !same || arguments != Some(json!({"tune": "Zauberlied"})) {
            let calls = &format.analysis().dialect.calls;
            wrong.push(format!("{name}, mutation {number}: {reply:?} after {prompt:?} is {message:?} by {calls:?}"));
        }
        read_back += 1;
    }
    println!(
        "{MUTATIONS} mutations: {refused} refused, {degraded} degraded, {read_back} read back; slowest {slowest:?}"
    );
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
