//! Any text as a chat template: a text or an error, never a panic, and the same one twice.
#![no_main]

use chat_template::{ChatTemplate, Clock, Data, RenderOptions, TemplateError};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|text: &str| {
    let Ok(template) = ChatTemplate::new(text, "<s>", "</s>") else { return };
    let messages = Data::from(&json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1.5]}}}]},
    ]));
    let clock = Clock::from_local_time(2024, 7, 26, 12, 5, 9).expect("a date");
    let options = RenderOptions::default().with_clock(clock);
    let first = template.render(&messages, None, &options);
    // A panic inside is this error.
    assert!(!matches!(first, Err(TemplateError::Thread { .. })));
    assert_eq!(first, template.render(&messages, None, &options));
});
