//! Other shapes of a conversation, for templates that refuse the first.

use chat_template::{ChatTemplate, Data, RenderOptions, TemplateError};
use serde_json::{Value, json};

fn render(template: &str, messages: &Value, adapt: bool) -> Result<String, TemplateError> {
    let options = RenderOptions::default().with_adapt(adapt);
    ChatTemplate::new(template, "", "").unwrap().render(&Data::from(messages), None, &options)
}

/// That the template refuses these messages, and takes another shape of them.
fn check(template: &str, messages: &Value, expected: &str) {
    assert!(render(template, messages, false).is_err(), "{template} should refuse {messages}");
    assert_eq!(render(template, messages, true).unwrap(), expected);
}

const ARGUMENTS: &str = "{% for m in messages %}{% for c in m.tool_calls %}{{ CHECK }}{% endfor %}{% endfor %}";

#[test]
fn arguments_become_dicts_or_text() {
    let as_dict = ARGUMENTS.replace("{{ CHECK }}", "{{ c.function.arguments.items()|list }}");
    let text = json!([{"role": "assistant", "tool_calls": [{"function": {"arguments": "{\"a\": 1}"}}]}]);
    check(&as_dict, &text, "[('a', 1)]");
    let as_text = ARGUMENTS.replace("{{ CHECK }}", "{{ '' + c.arguments }}");
    let dict = json!([{"role": "assistant", "tool_calls": [{"arguments": {"a": [1, null], "ü": 0.1}}]}]);
    check(&as_text, &dict, "{\"a\": [1, null], \"ü\": 0.1}");
}

#[test]
fn missing_content_becomes_empty() {
    let template = "{% for m in messages %}[{{ '' + m.content }}]{% endfor %}";
    check(template, &json!([{"role": "assistant", "content": null}, {"role": "assistant"}]), "[][]");
}

#[test]
fn parts_and_text_become_each_other() {
    let text = "{{ messages[0].content + '' }}";
    let parts = json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]);
    check(text, &parts, "ab");
    let wants_parts = "{% for p in messages[0].content %}{{ p.text + '' }}{% endfor %}";
    check(wants_parts, &json!([{"role": "user", "content": "ab"}]), "ab");
    let picture = json!([{"role": "user", "content": [{"type": "image"}]}]);
    assert!(render(text, &picture, true).is_err(), "a picture is no text");
}

#[test]
fn a_system_message_goes_into_the_first_user_message() {
    let template = "{% for m in messages %}{% if m.role != 'user' %}{{ raise_exception('no ' ~ m.role) }}{% endif %}\
        {{ m.content }}|{% endfor %}";
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]);
    check(template, &messages, "Be brief.\n\nHi|");
    let developer = json!([{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]);
    check(template, &developer, "Be brief.\n\nHi|");
}

#[test]
fn the_first_refusal_is_what_is_told() {
    let template = "{{ raise_exception('not with ' ~ messages|length) }}";
    let messages = json!([{"role": "system", "content": "a"}, {"role": "user", "content": null}]);
    let error = render(template, &messages, true).unwrap_err();
    assert_eq!(error, TemplateError::Refused { line: 1, message: "not with 2".into() });
}

#[test]
fn all_shapes_share_one_budget() {
    let template = "{% for i in range(99999) %}{% for j in range(20) %}{% endfor %}{% endfor %}\
        {{ raise_exception('no') }}";
    let messages = json!([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]);
    let error = render(template, &messages, true).unwrap_err();
    assert_eq!(error.line(), 1);
}
