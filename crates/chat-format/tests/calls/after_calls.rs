//! Replies that must call a tool, walked at random in all templates: what may come after the calls.

use crate::support::random::Random;
use chat_format::analysis::PromptOptions;
use chat_format::{
    ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, Message, ParserOptions, ToolChoice, Tools,
};
use serde_json::{Value, json};
use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId, Tokens};
use trie_rules::{Spelling, TokenBytes};

fn id(byte: u8) -> TokenId {
    TokenId::new(u32::from(byte)).unwrap()
}

/// One token a byte.
fn bytes() -> Spelling {
    let all: Vec<[u8; 1]> = (0..ControlTokens::BYTE).map(|byte| [byte]).collect();
    let tokens = all.iter().map(|byte| (&byte[..], id(byte[0])));
    Arc::new(TokenBytes::new(256, tokens).unwrap()).into()
}

/// A reply up to where it may end and something draws that it does.
fn walked(format: &ChatFormat, options: &ConstraintOptions, random: &mut Random) -> Result<String, String> {
    let constraint =
        format.constraint(options, &bytes(), &ControlTokens::default()).map_err(|error| error.to_string())?;
    let closing = format.analysis().dialect.reasoning.end.clone();
    let (mut state, mut scratch, mut text) = (constraint.start(), Scratch::default(), Vec::new());
    let mut thought = closing.bytes().cycle();
    for _ in 0..2000 {
        let next = constraint.next(&state, &mut scratch);
        let legal: Vec<u8> = match next.tokens {
            // A thought is ended.
            Tokens::Except(_) if next.ending == Ending::No => vec![thought.next().unwrap_or(b'x')],
            tokens => (0..ControlTokens::BYTE).filter(|&byte| tokens.contains(id(byte))).collect(),
        };
        if next.ending == Ending::Free {
            return Err(format!("anything may come after {:?}", String::from_utf8_lossy(&text)));
        }
        if next.ending != Ending::No && (legal.is_empty() || text.len() > 400 || random.below(12) == 0) {
            return Ok(String::from_utf8(text).unwrap());
        }
        let words: Vec<u8> = legal.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let from = if words.is_empty() || random.below(8) == 0 { &legal } else { &words };
        if from.is_empty() {
            return Err(format!("nothing may come after {:?}", String::from_utf8_lossy(&text)));
        }
        let byte = from[random.below(from.len())];
        constraint.advance(&mut state, id(byte)).ok_or_else(|| format!("{byte} is refused after {text:?}"))?;
        text.push(byte);
    }
    Err(format!("no end after {:?}", String::from_utf8_lossy(&text)))
}

fn read(format: &ChatFormat, options: &ConstraintOptions, text: &str) -> Message {
    let mut given = ParserOptions::default();
    (given.tools, given.tool_choice) = (Some(options.tools.clone()), options.choice.clone());
    given.prompt.clone_from(&options.prompt);
    let mut parser = format.parser(&given).unwrap();
    parser.push(text.as_bytes());
    parser.finish(false).1
}

#[test]
fn after_a_call_that_had_to_come_only_calls_or_the_end_do() {
    let mut templates = crate::support::small_templates();
    templates.extend(crate::support::templates().into_iter().flatten());
    let (mut wrong, mut walks) = (Vec::new(), 0);
    let mut random = Random(51);
    for (name, text) in templates {
        let format = ChatFormat::new(ChatTemplate::new(text, "<s>", "</s>").unwrap()).unwrap();
        if format.analysis().dialect.calls.is_none() {
            continue;
        }
        let tools = json!([
            {"name": "ring", "parameters": {"type": "object", "properties": {"loud": {"type": "boolean"}}}},
            {"name": "stop"}
        ]);
        let asked = [json!({"role": "user", "content": "Ring!"})];
        let quiet = PromptOptions::default().with_thinking(false);
        let (prompt, begins) = format.prompt(&asked, Some(&tools), &quiet).unwrap();
        for parallel in [false, true] {
            for choice in [ToolChoice::Required, ToolChoice::Tool("ring".into())] {
                let mut options = ConstraintOptions::default();
                options.tools = Tools::new(tools.as_array().unwrap()).unwrap();
                (options.choice, options.parallel) = (choice, parallel);
                options.prompt = Some(prompt[begins..].to_owned());
                for _ in 0..3 {
                    walks += 1;
                    let reply = match walked(&format, &options, &mut random) {
                        Ok(reply) => reply,
                        Err(how) => {
                            wrong.push(format!("{name}, {:?}: {how}", options.choice));
                            continue;
                        }
                    };
                    let message = read(&format, &options, &reply);
                    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
                    let whole = message.tool_calls.iter().all(|call| is_json(&call.arguments));
                    let count = message.tool_calls.len();
                    if !whole || count == 0 || (count > 1 && !parallel) || !message.content.trim().is_empty() {
                        wrong.push(format!("{name}, parallel {parallel}: {reply:?} is {message:?}"));
                    }
                }
            }
        }
    }
    assert!(walks > 200, "only {walks} walks");
    assert!(wrong.is_empty(), "{} of {walks}:\n{}", wrong.len(), wrong.join("\n"));
}
