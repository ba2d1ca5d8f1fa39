//! Response templates: read as transformers reads them, written so that they read what formats read, and followed.

use crate::support::{small_templates, template, templates};
use chat_format::response_template::{RegionEvent, ResponseError, ResponseTemplate};
use chat_format::{
    ChatFormat, ChatTemplate, ConstraintOptions, Message, ParserOptions, RenderOptions, ToolChoice, Tools,
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Replies that transformers' own parser read, with what it made of them.
fn vectors() -> Value {
    let path = format!("{}/../../tests/vectors/response_templates.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).expect("the file is in the repository")).expect("it is JSON")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().expect("a text")
}

fn as_json(events: &[RegionEvent]) -> Value {
    events.iter().map(RegionEvent::to_json).collect()
}

/// Events with the texts of a region joined.
fn joined(events: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for event in events {
        match joined.last_mut() {
            Some(last) if last["type"] == "region_chunk" && event["type"] == "region_chunk" => {
                last["text"] = json!(format!("{}{}", text(last, "text"), text(event, "text")));
            }
            _ => joined.push(event.clone()),
        }
    }
    joined
}

#[test]
fn replies_are_read_as_transformers_reads_them() {
    let vectors = vectors();
    let of = |(name, source): (&String, &Value)| (name.clone(), ResponseTemplate::new(source).expect(name));
    let templates: HashMap<String, ResponseTemplate> =
        vectors["templates"].as_object().unwrap().iter().map(of).collect();
    let tools = vectors["tools"].as_array().unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 500, "{} cases are too few", cases.len());
    for case in cases {
        let said = &templates[text(case, "template")];
        let tools = if case["tools"] == true { &tools[..] } else { &[] };
        let read = said.parse(text(case, "prompt"), text(case, "reply"), tools);
        if case["error"] == true {
            assert!(read.is_err(), "transformers refuses this: {case}");
            continue;
        }
        let read = read.unwrap_or_else(|error| panic!("{error}: {case}"));
        // The order of the keys counts too.
        assert_eq!(read.to_string(), case["message"].to_string(), "{case}");
        let (Some(parts), Some(events)) = (case["parts"].as_array(), case["events"].as_array()) else { continue };
        let mut parser = said.parser(text(case, "prompt"), tools).unwrap();
        let mut got = vec![as_json(parser.first_events())];
        got.extend(parts.iter().map(|part| as_json(&parser.push(part.as_str().unwrap()).unwrap())));
        got.push(as_json(&parser.finish().unwrap().1));
        assert_eq!(&got, events, "{case}");
    }
}

/// A pattern that ends with `$`, or begins with what may be missing, matches less of what came so far than of the
/// whole: the places of the cuts matter to it, in transformers too.
#[test]
fn a_cut_anywhere_changes_no_region() {
    let vectors = vectors();
    let is_sure = |case: &Value| {
        let name = text(case, "template");
        let source = vectors["templates"][name].to_string();
        !(source.contains('$') || name.starts_with("random") && source.contains("_pattern"))
    };
    let tools = vectors["tools"].as_array().unwrap();
    for case in vectors["cases"].as_array().unwrap().iter().filter(|case| case["error"].is_null()).step_by(3) {
        if !is_sure(case) {
            continue;
        }
        let said = ResponseTemplate::new(&vectors["templates"][text(case, "template")]).unwrap();
        let tools = if case["tools"] == true { &tools[..] } else { &[] };
        let events = |parts: &[String]| -> Vec<Value> {
            let mut parser = said.parser(text(case, "prompt"), tools).unwrap();
            let mut events = parser.first_events().to_vec();
            for part in parts {
                events.extend(parser.push(part).unwrap());
            }
            let (message, last) = parser.finish().unwrap();
            assert_eq!(message, case["message"], "{parts:?} {case}");
            events.extend(last);
            joined(as_json(&events).as_array().unwrap())
        };
        let reply = text(case, "reply");
        let signs: Vec<String> = reply.chars().map(String::from).collect();
        assert_eq!(events(&signs), events(&[reply.to_owned()]), "{case}");
    }
}

fn refusal(source: &Value) -> String {
    ResponseTemplate::new(source).expect_err("it is no response template").to_string()
}

#[test]
fn what_is_no_response_template_is_refused_with_the_place() {
    let field = |field: Value| json!({"start_anchor": "<s>", "fields": {"content": field}});
    let cases = [
        (json!([]), "expected an object, got []"),
        (json!({"start_anchor": "<s>", "fields": {}}), "invalid fields"),
        (json!({"fields": {"content": {}}}), "it needs start_anchor or start_anchor_pattern"),
        (json!({"start_anchor": "<s>", "fields": {"content": {}}, "colour": 1}), "unknown key \"colour\""),
        (json!({"start_anchor": "<s>", "fields": {"content": {}}, "version": 2}), "version 2 is not supported"),
        (json!({"start_anchor": "<s>", "fields": {"a": {}, "b": {}}}), "fields \"a\" and \"b\" have no open"),
        (field(json!({"content": "yaml"})), "field \"content\": unknown content parser \"yaml\""),
        (field(json!({"open": ""})), "invalid open"),
        (field(json!({"open": "a", "open_pattern": "b"})), "both open and open_pattern"),
        (field(json!({"close_pattern": "(a"})), "invalid close_pattern \"(a\": at character 2: a ( without )"),
        (field(json!({"close_pattern": "a(?<=b)"})), "is not supported"),
        (field(json!({"close_pattern": "(a)\\1"})), "\\1 is not supported"),
        (field(json!({"close_pattern": "a++"})), "a possessive repetition is not supported"),
        (field(json!({"close_pattern": "(?:(?:a{999}){999})"})), "it repeats too much"),
        (field(json!({"open_pattern": "<(?P<x>a)>"})), "the group \"x\" of a pattern needs a transform"),
        (field(json!({"join": ","})), "join needs \"repeats\": true"),
        (field(json!({"transform": {"a": "x {content}"}})), "mixes a placeholder with a text"),
        (field(json!({"transform_each": true})), "transform_each needs a transform"),
        (field(json!({"content": "xml-inline"})), "tag_pattern"),
    ];
    for (source, reason) in cases {
        let said = refusal(&source);
        assert!(said.starts_with("invalid response template: ") && said.contains(reason), "{source}: {said}");
    }
}

#[test]
fn a_reply_that_is_not_what_the_template_says_is_an_error_of_its_field() {
    let said = json!({"start_anchor": "<s>", "fields": {
        "calls": {"open": "<c>", "close": "</c>", "content": "json"},
        "content": {"optional": false},
    }});
    let said = ResponseTemplate::new(&said).unwrap();
    let error = said.parse("", "a<c>{</c>", &[]).unwrap_err();
    assert!(matches!(&error, ResponseError::Field { field, .. } if field == "calls"), "{error}");
    let error = said.parse("", "<c>{}</c>", &[]).unwrap_err();
    assert_eq!(error, ResponseError::Missing { field: "content".into() });
    let mut parser = said.parser("", &[]).unwrap();
    parser.push("a").unwrap();
    parser.finish().unwrap();
    assert_eq!(parser.push("b").unwrap_err(), ResponseError::Over);
}

/// A pattern that a backtracking search of Python's takes years for.
#[test]
fn nested_repetitions_take_linear_time() {
    let said = json!({"start_anchor": "<s>", "fields": {
        "x": {"open_pattern": "<(?:a|a?)+(?:b|c*)*>", "close": "</x>"},
        "y": {"open_pattern": r"(?=[\s\S]*?</y>)", "close": "</y>"},
        "content": {},
    }});
    let said = ResponseTemplate::new(&said).unwrap();
    let reply = format!("<{}", "a".repeat(20_000));
    let begun = std::time::Instant::now();
    assert_eq!(said.parse("", &reply, &[]).unwrap(), json!({"content": reply}));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

fn format_of(text: &str) -> ChatFormat {
    ChatFormat::new(ChatTemplate::new(text, "<s>", "</s>").unwrap()).unwrap()
}

/// Formats of the small templates for which no response template can be written, with the reason.
const UNWRITABLE: [(&str, &str); 7] = [
    ("elements-named-as-keys", "elements are named after their keys"),
    ("name-as-key", "the name of a call is a key of JSON"),
    ("python-calls-on-lines", "Python calls stand in no list"),
    ("recipients-on-lines", ""),
    ("tag-is-name", "nothing but the name marks the beginning of a call"),
    ("told-in-the-system-message", "content has marks only after reasoning"),
    ("pairs-with-quotes-of-their-own", ""),
];

#[test]
fn what_is_written_reads_what_the_format_reads() {
    let mut written = 0;
    for (name, text) in small_templates() {
        let name = name.trim_end_matches(".jinja");
        match format_of(&text).response_template() {
            // Writing checks it against each reply of the template.
            Ok(_) => written += 1,
            Err(error) => {
                let known = UNWRITABLE.iter().find(|(known, _)| *known == name);
                let (_, reason) = known.unwrap_or_else(|| panic!("{name}: {error}"));
                assert!(error.to_string().contains(reason), "{name}: {error}");
            }
        }
    }
    assert!(written >= 29, "only {written} are written");
}

#[test]
fn most_real_templates_have_one() {
    let Some(templates) = templates() else { return };
    let written = templates.iter().filter(|(_, text)| format_of(text).response_template().is_ok()).count();
    assert!(written * 41 >= templates.len() * 34, "only {written} of {}", templates.len());
}

fn said(name: &str) -> ResponseTemplate {
    ResponseTemplate::new(&vectors()["templates"][name]).unwrap()
}

fn read(format: &ChatFormat, reply: &str) -> Message {
    let mut parser = format.parser(&ParserOptions::default()).unwrap();
    parser.push(reply.as_bytes());
    parser.finish(false).1
}

#[test]
fn a_format_follows_a_response_template_alone() {
    let known = [
        ("transformers-qwen2", "<tool_call>\n{\"name\": \"ring\", \"arguments\": {\"times\": 2}}\n</tool_call>"),
        ("doc-smollm", "<tool_call>{\"name\": \"ring\", \"arguments\": {\"times\": 2}}</tool_call>"),
        ("transformers-gemma4", "<|tool_call>call:ring{times:2}<tool_call|>"),
        ("doc-cohere", "<|START_ACTION|>[{\"tool_name\": \"ring\", \"parameters\": {\"times\": 2}}]<|END_ACTION|>"),
        ("doc-python-calls", "<|tool_call_start|>[ring(times=2)]<|tool_call_end|>"),
        ("doc-qwen3-xml", "<tool_call><function=ring><parameter=times>2</parameter></tool_call>"),
        ("trl-llama3", "{\"name\": \"ring\", \"parameters\": {\"times\": 2}}<|eot_id|>"),
    ];
    let tools = [json!({"type": "function", "function": {"name": "ring", "parameters": {"type": "object",
        "properties": {"times": {"type": "integer"}}}}})];
    for (name, reply) in known {
        let format = ChatFormat::from_response_template(&said(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut options = ParserOptions::default();
        options.tools = Some(Tools::new(&tools).unwrap());
        let mut parser = format.parser(&options).unwrap();
        parser.push(reply.as_bytes());
        let message = parser.finish(false).1;
        assert_eq!(message.tool_calls.len(), 1, "{name}: {message:?}");
        let call = &message.tool_calls[0];
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!((&call.name[..], arguments), ("ring", json!({"times": 2})), "{name}");
        assert!(format.renders_nothing());
        let error =
            format.render(&[json!({"role": "user", "content": "Hi"})], None, &RenderOptions::default()).unwrap_err();
        assert!(error.to_string().contains("there is no chat template"), "{error}");
    }
    for (name, reason) in [("trl-lfm2-2-5", "not free text"), ("trl-glm4moe", "tag_pattern requires white space")] {
        let error = ChatFormat::from_response_template(&said(name)).unwrap_err();
        assert!(error.to_string().contains(reason), "{name}: {error}");
    }
}

#[test]
fn calls_that_a_template_does_not_show_are_those_of_the_response_template() {
    let bare = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let format = format_of(bare);
    assert!(format.analysis().dialect.calls.is_none());
    let format = format.with_response_template(&said("doc-smollm"));
    assert_eq!(format.analysis().differences, Vec::<String>::new());
    let message =
        read(&format, "<think>A bell.</think>Ding.<tool_call>{\"name\": \"ring\", \"arguments\": {}}</tool_call>");
    assert_eq!((&message.reasoning[..], &message.content[..], message.tool_calls.len()), ("A bell.", "Ding.", 1));
    assert_eq!(format.response_template().unwrap().source(), said("doc-smollm").source());
    let mut options = ConstraintOptions::default();
    options.choice = ToolChoice::Required;
    options.tools = Tools::new(&[json!({"name": "ring", "parameters": {"type": "object", "properties": {}}})]).unwrap();
    assert_eq!(format.warnings(&options).unwrap().len(), 0);
}

#[test]
fn replies_that_the_two_read_differently_are_reported() {
    let text = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<call>\
                {{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}\
                {% if add_generation_prompt %}<|assistant|>{% endif %}";
    let wrong = json!({"start_anchor": "<|assistant|>", "fields": {
        "tool_calls": {"open": "<CALL>", "close": "</CALL>", "content": "json", "repeats": true,
            "transform": {"type": "function", "function": "{content}"}},
        "content": {"close": "<|end|>"},
        "mood": {"open": "<mood>", "close": "</mood>"},
    }});
    let format = format_of(text).with_response_template(&ResponseTemplate::new(&wrong).unwrap());
    let differences = &format.analysis().differences;
    assert!(differences.iter().any(|how| how.starts_with("a call: ")), "{differences:?}");
    assert!(differences.iter().any(|how| how.contains("only the response template reads \"mood\"")), "{differences:?}");
    // The template shows its calls: they count.
    assert_eq!(read(&format, "<call>{\"name\": \"ring\", \"arguments\": {}}</call>").tool_calls.len(), 1);
    let right = format_of(text).response_template().unwrap();
    assert_eq!(format_of(text).with_response_template(&right).analysis().differences, Vec::<String>::new());
}

#[test]
fn known_response_templates_agree_with_their_chat_templates() {
    for (file, name) in [
        ("Qwen-Qwen3-0.6B.jinja", "transformers-qwen2"),
        ("Qwen3.5-4B.jinja", "transformers-qwen3-5"),
        ("LFM2.5-8B-A1B.jinja", "doc-python-calls"),
        ("GLM-4.6.jinja", "trl-glm4moe"),
    ] {
        let Some(template) = template(file) else { return };
        let format = ChatFormat::new(template).unwrap();
        let calls = format.analysis().dialect.calls.clone();
        let beside = format.with_response_template(&said(name));
        assert_eq!(beside.analysis().differences, Vec::<String>::new(), "{file}");
        assert_eq!(beside.analysis().dialect.calls, calls, "{file}");
    }
}
