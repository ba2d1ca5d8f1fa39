//! The laws of streaming, on every prefix of every case: nothing is taken back, and all portions make one message.

use crate::support::{Cases, text};
use chat_format::{ChatFormat, Event, Message, ParserOptions};

fn events(format: &ChatFormat, options: &ParserOptions, portions: &[&[u8]], partial: bool) -> (Vec<Event>, Message) {
    let mut parser = format.parser(options).unwrap();
    let mut events: Vec<Event> = portions.iter().flat_map(|portion| parser.push(portion)).collect();
    let (last, message) = parser.finish(partial);
    events.extend(last);
    (events, message)
}

fn replayed(events: &[Event]) -> Message {
    let mut message = Message::default();
    for event in events {
        message.add(event);
    }
    message
}

/// One message goes on where another was: everything of it stands.
fn goes_on(before: &Message, after: &Message) -> Result<(), String> {
    let texts = [(&before.content, &after.content), (&before.reasoning, &after.reasoning)];
    for (before, after) in texts {
        if !after.starts_with(&**before) {
            return Err(format!("{before:?} was taken back: {after:?}"));
        }
    }
    if before.tool_calls.len() > after.tool_calls.len() {
        return Err(format!("a call was taken back: {:?}, {:?}", before.tool_calls, after.tool_calls));
    }
    for (before, after) in before.tool_calls.iter().zip(&after.tool_calls) {
        let id = before.id.is_empty() || before.id == after.id;
        if before.name != after.name || !after.arguments.starts_with(&before.arguments) || !id {
            return Err(format!("a call changed: {before:?}, {after:?}"));
        }
    }
    Ok(())
}

#[test]
fn portions_of_any_size_make_the_same_message() {
    let Some(mut cases) = Cases::read() else { return };
    for case in cases.cases() {
        let options = cases.parser_options(&case);
        let format = &cases.formats[text(&case, "template")];
        let output = text(&case, "model_output").as_bytes();
        let partial = case["is_partial"] == true;
        let (whole, message) = events(format, &options, &[output], partial);
        assert_eq!(replayed(&whole), message, "{}", text(&case, "id"));
        for size in [1, 2, 3, 7] {
            let portions: Vec<&[u8]> = output.chunks(size).collect();
            let (portioned, same) = events(format, &options, &portions, partial);
            assert_eq!(same, message, "{} in portions of {size}", text(&case, "id"));
            assert_eq!(replayed(&portioned), message, "{} in portions of {size}", text(&case, "id"));
        }
    }
}

#[test]
fn nothing_is_taken_back() {
    let Some(mut cases) = Cases::read() else { return };
    for case in cases.cases() {
        let options = cases.parser_options(&case);
        let format = &cases.formats[text(&case, "template")];
        let output = text(&case, "model_output");
        let (_, message) = events(format, &options, &[output.as_bytes()], true);
        let mut before = Message::default();
        for (end, _) in output.char_indices().skip(1) {
            // What was said so far, and what a reply that breaks off there says.
            let mut parser = format.parser(&options).unwrap();
            parser.push(&output.as_bytes()[..end]);
            let said = parser.message().clone();
            let (_, cut) = parser.finish(true);
            for (one, other) in [(&before, &said), (&said, &cut), (&said, &message)] {
                goes_on(one, other).unwrap_or_else(|why| panic!("{} at {end}: {why}", text(&case, "id")));
            }
            before = said;
        }
    }
}

#[test]
fn names_come_once_they_are_written() {
    let Some(mut cases) = Cases::read() else { return };
    for case in cases.cases() {
        let options = cases.parser_options(&case);
        let format = &cases.formats[text(&case, "template")];
        let output = text(&case, "model_output").as_bytes();
        let spans = case["spans"].as_array().cloned().unwrap_or_default();
        let mut parser = format.parser(&options).unwrap();
        let mut calls = 0;
        for (at, byte) in output.iter().enumerate() {
            for event in parser.push(&[*byte]) {
                if let Event::CallBegins { name, .. } = event {
                    let span = spans.iter().find(|span| span["kind"] == "tool_name" && span["call"] == calls);
                    if let Some(span) = span {
                        assert_eq!(name, text(span, "value"), "{}", text(&case, "id"));
                        assert!(at >= span["end"].as_u64().unwrap() as usize, "{} at {at}", text(&case, "id"));
                    }
                    calls += 1;
                }
            }
        }
    }
}

#[test]
fn what_others_get_wrong_means_the_ideal() {
    let Some(mut cases) = Cases::read() else { return };
    let failures = cases.data["reference_failures"].as_array().unwrap().clone();
    let mut wrong = Vec::new();
    for case in failures {
        let options = cases.parser_options(&case);
        let format = &cases.formats[text(&case, "template")];
        let (_, message) = events(format, &options, &[text(&case, "model_output").as_bytes()], false);
        let ideal = &case["ideal"];
        let calls = ideal["tool_calls"].as_array().unwrap();
        let same_call = |(want, have): (&serde_json::Value, &chat_format::ToolCall)| {
            let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            text(want, "name") == have.name && json(text(want, "arguments")) == json(&have.arguments)
        };
        let right = text(ideal, "content").trim() == message.content.trim()
            && text(ideal, "reasoning_content").trim() == message.reasoning.trim()
            && calls.len() == message.tool_calls.len()
            && calls.iter().zip(&message.tool_calls).all(same_call);
        if !right {
            wrong.push(format!("{} {}: {message:?}", text(&case, "template"), text(&case, "scenario")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
