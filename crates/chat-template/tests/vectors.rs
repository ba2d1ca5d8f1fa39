//! Small templates, each with what Jinja2 made of it. Python compares the same file with Jinja2 itself.

use chat_template::{ChatTemplate, Clock, Data, RenderOptions, TemplateError};
use serde_json::Value;

const VECTORS: &str = include_str!("vectors/chat_templates.json");

fn rendered(vectors: &Value, template: &str) -> Result<String, TemplateError> {
    let clock = Clock::from_local_time(2024, 7, 26, 12, 5, 9).unwrap();
    let mut options = RenderOptions::default().with_adapt(false).with_clock(clock);
    for (name, value) in vectors["variables"].as_object().unwrap() {
        options = options.with_variable(name.as_str(), Data::from(value));
    }
    let tools = Data::from(&vectors["tools"]);
    ChatTemplate::new(template, "<s>", "</s>")?.render(&Data::from(&vectors["messages"]), Some(&tools), &options)
}

#[test]
fn small_templates_are_rendered_as_jinja2_does() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() > 250);
    let mut wrong = Vec::new();
    for case in cases {
        let template = case["template"].as_str().unwrap();
        let found = rendered(&vectors, template);
        match (&found, case["text"].as_str()) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(error), None) => assert!(error.line() >= 1, "{template}: {error}"),
            _ => wrong.push(format!("{template}\n  expected {}\n  found {found:?}", case["text"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
