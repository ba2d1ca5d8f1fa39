//! What does not fit is never lost, and each warning says what was wrong and where.

use chat_format::{ChatFormat, ChatTemplate, Message, ParserOptions, Tools};
use serde_json::json;

const OBJECT: &str = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}<call>\
    {{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}\
    {% if add_generation_prompt %}<|assistant|>{% endif %}";

fn read(reply: &str) -> Message {
    let format = ChatFormat::new(ChatTemplate::new(OBJECT, "", "").unwrap()).unwrap();
    let mut options = ParserOptions::default();
    options.tools = Some(Tools::new(&[json!({"name": "ring"}), json!({"name": "stop"})]).unwrap());
    let mut parser = format.parser(&options).unwrap();
    parser.push(reply.as_bytes());
    parser.finish(false).1
}

/// That a reply is this content, and one warning says these words.
fn check(reply: &str, content: &str, words: &[&str]) {
    let message = read(reply);
    assert_eq!(message.content, content, "{message:?}");
    assert!(!message.warnings.is_empty(), "{message:?}");
    for word in words {
        assert!(message.warnings.iter().any(|warning| warning.contains(word)), "{word}: {:?}", message.warnings);
    }
}

#[test]
fn a_header_that_breaks_off_is_text() {
    for header in ["<call>{\"na", "<call>{\"name\": \"ri", "<call>{\"name\": \"ring\", \"argu"] {
        check(&format!("Ding. {header}"), &format!("Ding. {header}"), &["ends where a call begins", "<call>"]);
    }
    // What begins no call yet needs no warning.
    assert_eq!(read("Ding. <ca").content, "Ding. <ca");
    assert!(read("Ding. <ca").warnings.is_empty());
}

#[test]
fn unknown_tools_are_text() {
    let call = "<call>{\"name\": \"sing\", \"arguments\": {\"a\": 1}}</call>";
    check(call, call, &["\"sing\"", "no such tool", "at byte"]);
    let call = "<call>{\"arguments\": {\"a\": 1}, \"name\": \"sing\"}</call>";
    check(call, call, &["\"sing\"", "no such tool", "at byte"]);
}

#[test]
fn calls_whose_name_never_comes_are_text() {
    for call in [
        "<call>{\"arguments\": {\"a\": 1",
        "<call>{\"arguments\": {\"a\": 1}, \"na",
        "<call>{\"arguments\": {\"a\": 1}} and so on",
    ] {
        let message = read(call);
        assert!(message.tool_calls.is_empty(), "{message:?}");
        assert_eq!(message.content, call, "{message:?}");
        assert!(message.warnings.iter().any(|warning| warning.contains("has no name")), "{message:?}");
    }
}

#[test]
fn broken_arguments_are_told() {
    let message = read("<call>{\"name\": \"ring\", \"arguments\": {\"a\": oh no</call>");
    assert_eq!(message.tool_calls[0].name, "ring");
    assert!(message.content.contains("oh no"), "{message:?}");
    assert!(message.warnings[0].contains("\"ring\"") && message.warnings[0].contains("break off"), "{message:?}");
    let message = read("<call>{\"name\": \"ring\", \"arguments\": {\"a\": 1");
    assert!(message.warnings[0].contains("not whole"), "{message:?}");
    let message = read("<call>{\"name\": \"ring\", \"arguments\": {\"a\": 1}");
    assert!(message.warnings[0].contains("what ends it is missing"), "{message:?}");
    let message = read("<call>{\"name\": \"ring\", \"arguments\": {\"a\": 1}} Done.");
    assert!(message.warnings[0].contains("what ends it is missing"), "{message:?}");
    assert!(message.content.ends_with("Done."), "{message:?}");
    assert_eq!(message.tool_calls[0].arguments, "{\"a\": 1}");
}
