//! Messages in every shape that users have: each real template renders them, or says why not.

use chat_format::analysis::PromptOptions;
use chat_format::{ChatFormat, ChatTemplate, Clock, TemplateError};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn format(text: &str) -> ChatFormat {
    ChatFormat::new(ChatTemplate::new(text, "<s>", "</s>").unwrap()).unwrap()
}

fn prompt(format: &ChatFormat, messages: &Value, tools: Option<&Value>) -> Result<String, TemplateError> {
    let messages = messages.as_array().unwrap();
    let mut options = PromptOptions::default();
    // Prompts that tell the time are compared.
    options.render = options.render.with_clock(Clock::from_local_time(2024, 7, 26, 12, 0, 0).expect("a date"));
    format.prompt(messages, tools, &options).map(|(prompt, _)| prompt)
}

/// A conversation, what of it must be seen, and what may be dropped with a reason in the template.
struct Shape {
    name: &'static str,
    messages: Value,
    tools: Option<Value>,
    seen: Vec<&'static str>,
}

fn shapes() -> Vec<Shape> {
    let user = || json!({"role": "user", "content": "Frage eins"});
    let wrapped = || {
        json!([{"type": "function", "function": {"name": "ring_bell", "description": "Rings.",
        "parameters": {"type": "object", "properties": {"times": {"type": "integer", "description": "How often."}}}}}])
    };
    let bare = || json!([wrapped()[0]["function"].clone()]);
    let call = |arguments: Value| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "abcde1234", "type": "function", "function": {"name": "ring_bell", "arguments": arguments}}]})
    };
    let result = |more: Value| {
        let mut message = json!({"role": "tool", "content": "Ergebnis drei"});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let plain = |name: &'static str, messages: Value, seen: &[&'static str]| Shape {
        name,
        messages,
        tools: None,
        seen: seen.to_vec(),
    };
    let called = |name: &'static str, arguments: Value, more: Value, tools: Value| Shape {
        name,
        messages: json!([user(), call(arguments), result(more)]),
        tools: Some(tools),
        seen: vec!["Frage eins", "ring_bell", "31", "Ergebnis drei"],
    };
    let (text, dict) = (json!("{\"times\": 31}"), json!({"times": 31}));
    let both = json!({"tool_call_id": "abcde1234", "name": "ring_bell"});
    let said =
        |key: &str| json!([user(), {"role": "assistant", "content": "Antwort zwei", key: "Gedanke vier"}, user()]);
    let parts = |text: &str| json!([{"type": "text", "text": text}]);
    vec![
        plain("text", json!([user()]), &["Frage eins"]),
        plain("parts", json!([{"role": "user", "content": parts("Frage eins")}]), &["Frage eins"]),
        plain(
            "parts of the system and the assistant",
            json!([{"role": "system", "content": parts("Regel null")}, user(),
                {"role": "assistant", "content": parts("Antwort zwei")}, user()]),
            &["Regel null", "Frage eins", "Antwort zwei"],
        ),
        plain("system", json!([{"role": "system", "content": "Regel null"}, user()]), &["Regel null", "Frage eins"]),
        plain("developer", json!([{"role": "developer", "content": "Regel null"}, user()]), &["Frage eins"]),
        plain("reasoning_content", said("reasoning_content"), &["Frage eins", "Antwort zwei"]),
        plain("reasoning", said("reasoning"), &["Frage eins", "Antwort zwei"]),
        plain("thinking", said("thinking"), &["Frage eins", "Antwort zwei"]),
        Shape { name: "tools, wrapped", messages: json!([user()]), tools: Some(wrapped()), seen: vec!["Frage eins"] },
        Shape { name: "tools, bare", messages: json!([user()]), tools: Some(bare()), seen: vec!["Frage eins"] },
        called("arguments as a dict", dict.clone(), both.clone(), wrapped()),
        called("arguments as text", text, both, wrapped()),
        called("a result without a name", dict.clone(), json!({"tool_call_id": "abcde1234"}), wrapped()),
        called("a result without an id", dict.clone(), json!({"name": "ring_bell"}), wrapped()),
        called("a result without both, bare tools", dict, json!({}), bare()),
    ]
}

#[test]
fn each_template_renders_each_shape_or_says_why_not() {
    let Some(templates) = crate::support::templates() else { return };
    let (mut wrong, mut refused) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for (name, text) in templates {
        let format = format(&text);
        let able = format.analysis().capabilities;
        let mut prompts: BTreeMap<&str, String> = BTreeMap::new();
        for shape in shapes() {
            let calls = shape.seen.contains(&"31");
            match prompt(&format, &shape.messages, shape.tools.as_ref()) {
                Ok(prompt) => {
                    let missing: Vec<_> = shape.seen.iter().filter(|text| !prompt.contains(**text)).collect();
                    let system = shape.seen.contains(&"Regel null") && !able.system_role;
                    if !missing.is_empty() && !system && (able.tool_calls || !calls) {
                        wrong.push(format!("{name}: {}: {missing:?} is missing", shape.name));
                    }
                    if prompt.contains("None") && !text.contains("None") || prompt.contains("{'type': 'text'") {
                        wrong.push(format!("{name}: {}: a value as Python prints it: {prompt}", shape.name));
                    }
                    prompts.insert(shape.name, prompt);
                }
                // A role or calls that the template has no place for.
                Err(TemplateError::Refused { message, .. }) => {
                    refused.entry(name.clone()).or_default().push(format!("{}: {message}", shape.name));
                }
                Err(error) => wrong.push(format!("{name}: {}: {error}", shape.name)),
            }
        }
        let pairs = [
            ("text", "parts"),
            ("tools, wrapped", "tools, bare"),
            ("arguments as a dict", "arguments as text"),
            ("arguments as a dict", "a result without a name"),
            ("arguments as a dict", "a result without an id"),
            ("reasoning_content", "reasoning"),
            ("reasoning_content", "thinking"),
        ];
        for (one, other) in pairs {
            if prompts.get(one) != prompts.get(other) && (able.tool_calls || !one.starts_with("arg")) {
                wrong.push(format!("{name}: {one} and {other} are not rendered alike"));
            }
        }
    }
    for (name, refused) in &refused {
        println!("{name}: {refused:?}");
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// As older templates do: each call wants its result, right after it.
const ANSWERED: &str = "{%- for m in messages -%}
{%- if m.role == 'user' -%}[INST] {{ m.content }}[/INST]
{%- elif m.tool_calls -%}
{%- if loop.last or messages[loop.index].role != 'tool' -%}{{ raise_exception('calls must be answered') }}{%- endif -%}
[TOOL_CALLS] [{% for c in m.tool_calls %}{% if not loop.first %}, {% endif -%}
{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments|tojson }}, \"id\": \"{{ c.id }}\"}
{%- endfor %}]{{ eos_token }}
{%- elif m.role == 'tool' -%}[TOOL_RESULTS] {\"content\": {{ m.content|tojson }}, \"call_id\": \"{{ m.tool_call_id \
}}\"}[/TOOL_RESULTS]
{%- else -%}{{ ' ' + m.content + eos_token }}
{%- endif -%}{%- endfor -%}";

#[test]
fn calls_that_must_be_answered_are_found() {
    for eos in ["", "</s>"] {
        let format = ChatFormat::new(ChatTemplate::new(ANSWERED, "<s>", eos).unwrap()).unwrap();
        let calls = format.analysis().dialect.calls.clone().expect("the template renders calls");
        assert_eq!(calls.section.start, "[TOOL_CALLS] ", "{eos:?}: {calls:?}");
        assert!(calls.list && calls.parallel, "{calls:?}");
        assert_eq!(format.analysis().degraded, None);
        let mut parser = format.parser(&chat_format::ParserOptions::default()).unwrap();
        parser.push(br#"[TOOL_CALLS] [{"name": "ring", "arguments": {"times": 2}, "id": "abc123456"}]"#);
        let (_, message) = parser.finish(false);
        assert_eq!((&message.tool_calls[0].name[..], &message.tool_calls[0].id[..]), ("ring", "abc123456"));
    }
}

/// Arguments as a text in a JSON object.
const TEXT: &str = "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content or '' }}
{%- for c in m.tool_calls -%}
<call>{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ (c.function.arguments + '')|tojson }}}</call>
{%- endfor -%}<|end|>{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}";

#[test]
fn arguments_as_json_text_in_an_object_are_read() {
    let format = format(TEXT);
    assert_eq!(format.analysis().degraded, None);
    let calls = format.analysis().to_json()["tool_calls"]["patterns"][0].to_string();
    assert!(calls.contains("\"text\":true"), "{calls}");
    for arguments in
        [r#""{\"city\": \"K\\u00f6ln \\\"\u00fc\\\"\", \"n\": [1]}""#, r#"{"city": "Köln \"ü\"", "n": [1]}"#]
    {
        let mut parser = format.parser(&chat_format::ParserOptions::default()).unwrap();
        parser.push(format!(r#"<call>{{"name": "go", "arguments": {arguments}}}</call>"#).as_bytes());
        let (_, message) = parser.finish(false);
        assert_eq!(message.tool_calls.len(), 1, "{message:?}");
        let read: Value = serde_json::from_str(&message.tool_calls[0].arguments).unwrap();
        assert_eq!(read, json!({"city": "Köln \"ü\"", "n": [1]}));
        assert_eq!((&message.content[..], message.warnings.len()), ("", 0));
    }
}

#[test]
fn json_text_is_read_where_an_object_is_usual() {
    let object = TEXT.replace("(c.function.arguments + '')", "c.function.arguments");
    let mut parser = format(&object).parser(&chat_format::ParserOptions::default()).unwrap();
    parser.push(
        br#"<call>{"name": "go", "arguments": "{\"n\": 1}"}</call><call>{"name": "stop", "arguments": ""}</call>"#,
    );
    let (_, message) = parser.finish(false);
    let read: Vec<_> = message.tool_calls.iter().map(|call| (&call.name[..], &call.arguments[..])).collect();
    assert_eq!(read, [("go", "{\"n\": 1}"), ("stop", "{}")]);
}

#[test]
fn lists_of_templates_grow_and_those_of_callers_do_not() {
    let text = "{% set seen = [] %}{% set ns = namespace(all=[]) %}{% macro note(x) %}{% set _ = ns.all.append(x) %}\
        {% endmacro %}\
        {% for m in messages %}{% set _ = seen.append(m.role) %}{{ note(m.content) }}{% set _ = messages.append(1) %}\
        {% endfor %}{{ seen|join(',') }}|{{ ns.all|join(',') }}";
    let format = format(text);
    let messages = json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]);
    assert_eq!(prompt(&format, &messages, None).unwrap(), "user,user|a,b");
    assert!(format.analysis().warnings.iter().any(|warning| warning.contains("changes lists")));
    let bomb = "{% set l = [] %}{% for i in range(99999) %}{% set _ = l.append(l) %}{% endfor %}{{ l }}";
    let error = ChatFormat::new(ChatTemplate::new(bomb, "", "").unwrap());
    let error = error.map(|format| prompt(&format, &messages, None));
    assert!(error.is_err() || error.is_ok_and(|prompt| prompt.is_err()));
}

#[test]
fn templates_get_functions_and_the_time() {
    let format = format("{{ functions }}|{{ datetime|length }}|{% for m in messages %}{{ m.content }}{% endfor %}");
    let tools = json!([{"name": "ring"}]);
    let text = prompt(&format, &json!([{"role": "user", "content": "a"}]), Some(&tools)).unwrap();
    assert!(text.contains("\"name\": \"ring\"") && text.ends_with("|19|a"), "{text}");
    let mut options = PromptOptions::default();
    options.render = options.render.with_variable("functions", "mine");
    let messages = [json!({"role": "user", "content": "a"})];
    assert!(format.prompt(&messages, Some(&tools), &options).unwrap().0.starts_with("mine|"));
}

#[test]
fn optional_fields_of_tools_may_be_missing_or_null() {
    let tool = json!({"type": "function", "function": {"name": "ring_bell", "description": "Rings.", "parameters": {
        "type": "object", "required": ["times"], "properties": {
            "times": {"type": "integer", "description": "How often."},
            "at": {"type": "array", "description": "When.", "items": {"type": "string", "description": "An hour."}},
            "how": {"type": "object", "description": "How.", "properties": {"kind": {"type": "string"}}, "required": []}
    }}}});
    let of = "/function/parameters/properties";
    let places = [
        ("/function", "description"),
        ("/function", "parameters"),
        ("/function/parameters", "type"),
        ("/function/parameters", "properties"),
        ("/function/parameters", "required"),
        (&format!("{of}/times"), "description"),
        (&format!("{of}/times"), "type"),
        (&format!("{of}/at"), "description"),
        (&format!("{of}/at"), "items"),
        (&format!("{of}/at/items"), "type"),
        (&format!("{of}/how"), "properties"),
        (&format!("{of}/how"), "required"),
    ];
    let messages = json!([{"role": "user", "content": "Ring!"}]);
    let Some(templates) = crate::support::templates() else { return };
    let mut wrong = Vec::new();
    for (name, text) in templates {
        let format = format(&text);
        let shown = prompt(&format, &messages, Some(&json!([tool]))).is_ok_and(|text| text.contains("ring_bell"));
        for (place, key) in places {
            for null in [false, true] {
                let mut tool = tool.clone();
                let fields = tool.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
                if null {
                    fields.insert(key.into(), Value::Null)
                } else {
                    fields.remove(key)
                };
                match prompt(&format, &messages, Some(&json!([tool]))) {
                    Ok(prompt) if shown && !prompt.contains("ring_bell") => {
                        wrong.push(format!("{name}: without {place}/{key} the tool is not shown"));
                    }
                    Ok(_) => {}
                    Err(error) => wrong.push(format!("{name}: {place}/{key}, null {null}: {error}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
