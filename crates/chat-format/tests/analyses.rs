//! Real templates: what analysis finds, against what is known of them. Skipped where the shared folders are not there.

use crate::support::{case_file, template, text as text_of};
use chat_format::analysis::text::{self, Segment};
use chat_format::analysis::{ContinuedPart, PromptOptions};
use chat_format::dialect::{Arguments, Field, Part};
use chat_format::{Analysis, ChatTemplate};
use serde_json::{Value, json};

fn bare(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace()).collect()
}

/// Each difference between what is found and what is known.
struct Check(Vec<(String, String, String)>);

impl Check {
    fn same(&mut self, what: &str, found: &str, known: &str) {
        if found.trim() != known.trim() {
            self.0.push((what.into(), found.into(), known.into()));
        }
    }

    /// The same but for white space, which pieces of a call may have between them.
    fn alike(&mut self, what: &str, found: &str, known: &str) {
        if bare(found) != bare(known) {
            self.0.push((what.into(), found.into(), known.into()));
        }
    }
}

fn check(analysis: &Analysis, known: &Value) -> Check {
    let mut check = Check(Vec::new());
    let (dialect, names) = (&analysis.dialect, analysis.names());
    let (reasoning, content) = (&known["reasoning"], &known["content"]);
    let mode = match names.reasoning {
        "none" => "REASONING_NONE",
        "optional" => "REASONING_OPTIONAL",
        _ => "REASONING_FORCED_OPEN",
    };
    check.same("reasoning", mode, text_of(reasoning, "mode"));
    check.same("reasoning start", &dialect.reasoning.start, text_of(reasoning, "start"));
    check.same("reasoning end", &dialect.reasoning.end, text_of(reasoning, "end"));
    let closes = reasoning["nothink_prefill_closes"].as_bool().unwrap_or_default();
    check.same("closes reasoning", &analysis.closes_reasoning.to_string(), &closes.to_string());
    let mode = match names.content {
        "plain" => "CONTENT_PLAIN",
        "wrapped" => "CONTENT_ALWAYS_WRAPPED",
        _ => "CONTENT_WRAPPED_WITH_REASONING",
    };
    check.same("content", mode, text_of(content, "mode"));
    // The known texts have remarks in words for people, such as "(recipient optional)" or "x or y".
    let start = text_of(content, "start").split(" (").next().unwrap_or_default();
    check.same("content start", &dialect.content.start, start);
    if !text_of(content, "end").contains(" or ") {
        check.same("content end", &dialect.content.end, text_of(content, "end"));
    }
    check_calls(&mut check, analysis, &known["tool_call"]);
    let prompts = &known["generation_prompt"];
    check.same("prompt", &analysis.prompt_thinking, text_of(prompts, "thinking"));
    check.same("prompt without thinking", &analysis.prompt_not_thinking, text_of(prompts, "no_thinking"));
    check.same("user turn", &dialect.turns.user, text_of(&known["role_markers"], "user_start"));
    check.same("assistant turn", &dialect.turns.assistant, text_of(&known["role_markers"], "assistant_start"));
    let able = analysis.to_json()["capabilities"].clone();
    for (name, value) in known["caps"].as_object().unwrap() {
        check.same(name, &able[name.trim_start_matches("supports_")].to_string(), &value.to_string());
    }
    let words = known["triggers"].as_array().unwrap().iter().filter(|trigger| trigger["type"] == "word");
    for trigger in words.map(|trigger| text_of(trigger, "value")) {
        let (one, other) = (trigger.trim(), |ours: &String| ours.trim().to_owned());
        let begins = |ours: &String| one.starts_with(&other(ours)) || other(ours).starts_with(one);
        if !analysis.triggers.iter().any(begins) {
            check.same("trigger", &format!("{:?}", analysis.triggers), trigger);
        }
    }
    for token in known["preserved_tokens"].as_array().unwrap().iter().filter_map(Value::as_str) {
        let ours = |ours: &String| ours.contains(token.trim()) || token.contains(ours.trim());
        if !analysis.preserved.iter().any(ours) {
            check.same("preserved", &format!("{:?}", analysis.preserved), token);
        }
    }
    let stops: Vec<&str> = known["additional_stops"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    check.same("stops", &dialect.stops.join(" "), &stops.join(" "));
    check
}

/// The texts of a pattern around name and arguments.
#[derive(Default)]
struct Pieces {
    before: String,
    middle: String,
    after: String,
}

fn pieces(parts: &[Part]) -> Pieces {
    let mut pieces = Pieces::default();
    let (mut named, mut over) = (false, false);
    for part in parts {
        let piece = if over {
            &mut pieces.after
        } else if named {
            &mut pieces.middle
        } else {
            &mut pieces.before
        };
        match part {
            Part::Text(text) => piece.push_str(text),
            Part::Id => piece.push_str("ID"),
            Part::Index | Part::Anything => piece.push('*'),
            Part::Name => named = true,
            Part::Object(_) | Part::NameAsKey | Part::Arguments(_) => over = true,
            _ => {}
        }
    }
    pieces
}

fn check_calls(check: &mut Check, analysis: &Analysis, known: &Value) {
    let names = analysis.names();
    let function = match names.function {
        "none" => "NONE",
        "json-object" => "FUNC_JSON_OBJECT",
        "code-block" => "FUNC_MARKDOWN_CODE_BLOCK",
        "name-as-key" => "FUNC_NAME_AS_KEY",
        "prefixed-indexed" => "FUNC_PREFIXED_INDEXED",
        "bracket-tag" => "FUNC_BRACKET_TAG",
        "recipient" => "FUNC_RECIPIENT_BASED",
        "channel" => "FUNC_CHANNEL_BASED",
        "python" => "FUNC_PYTHONIC",
        _ => "FUNC_TAG_WITH_NAME",
    };
    let first = |text: &str| text.split([' ', '(']).next().unwrap_or_default().to_owned();
    check.same("function", function, &first(text_of(known, "function_format")));
    let arguments = match names.arguments {
        "none" => "NONE",
        "json" => "ARGS_JSON",
        "key-value-tags" => "ARGS_KEY_VALUE_TAGS",
        "keywords" => "ARGS_PYTHON_KWARGS",
        "pairs" => "ARGS_GEMMA_DICT",
        _ => "ARGS_TAGGED",
    };
    check.same("arguments", arguments, &first(text_of(known, "argument_format")));
    let Some(calls) = &analysis.dialect.calls else { return };
    let of = |keys: &[&str]| keys.iter().map(|key| text_of(known, key)).collect::<String>();
    let (mut start, mut end) = (of(&["section_start"]), of(&["section_end"]));
    if names.function == "python" {
        // The known texts have the brackets of the list in the section.
        start = start.trim_end_matches('[').to_owned();
        end = end.trim_start_matches(']').to_owned();
    } else {
        let list = known["array_wrapped"].as_bool().unwrap_or_default();
        check.same("list", &calls.list.to_string(), &list.to_string());
    }
    let pieces = pieces(&calls.patterns[0].parts);
    if names.arguments == "tagged" && names.function == "recipient" {
        // The recipient comes first, then the section, in one pattern.
        let known = of(&["recipient_prefix", "recipient_suffix", "section_start", "name_prefix", "name_suffix"]);
        check.alike("call", &(pieces.before + &pieces.middle), &known);
        check.alike("after call", &pieces.after, &of(&["function_close", "section_end"]));
        return;
    }
    check.alike("section start", &calls.section.start, &start);
    check.alike("section end", &calls.section.end, &end);
    let known_before = of(&["per_call_start", "name_prefix", "namespace", "recipient_prefix"]);
    let known_before = if text_of(known, "id_position") == "PRE_FUNC_NAME" {
        known_before + "ID" + text_of(known, "id_suffix")
    } else {
        known_before
    };
    check.alike("before name", &pieces.before, &known_before);
    match calls.patterns[0].parts.iter().find(|part| !matches!(part, Part::Text(_))) {
        Some(Part::Object(object)) => {
            let key = |wanted: fn(&Field) -> Option<&String>| {
                object.fields.iter().find_map(wanted).cloned().unwrap_or_default()
            };
            let name = key(|field| if let Field::Name(key) = field { Some(key) } else { None });
            let arguments = key(|field| if let Field::Arguments(key) = field { Some(key) } else { None });
            let id = key(|field| if let Field::Id(key) = field { Some(key) } else { None });
            check.same("name field", &name, text_of(known, "name_field"));
            check.same("arguments field", &arguments, text_of(known, "args_field"));
            check.same("id field", &id, &of(&["id_field", "gen_id_field"]));
        }
        Some(Part::NameAsKey) | None => {}
        Some(_) => check_named(check, analysis, known, &pieces),
    }
    let after = match names.function {
        // Known as part of the call; here it ends the message.
        "channel" => format!("{}<|call|>", pieces.after),
        // Known as part of the arguments.
        _ if names.arguments == "pairs" => pieces.after.trim_start_matches('}').to_owned(),
        _ => pieces.after.clone(),
    };
    check.alike("after call", &after, &of(&["function_close", "per_call_end"]));
}

fn check_named(check: &mut Check, analysis: &Analysis, known: &Value, pieces: &Pieces) {
    let calls = analysis.dialect.calls.as_ref().unwrap();
    let mut middle = text_of(known, "name_suffix").to_owned();
    if known["index_separator"].is_string() {
        middle = format!("{}*{}", text_of(known, "index_separator"), text_of(known, "args_marker"));
    }
    if analysis.names().function == "channel" {
        // Known in words only.
        return;
    }
    if known["after_name"].is_string() {
        check.same("middle", pieces.middle.split(' ').next().unwrap_or_default(), &middle);
    } else {
        check.alike("middle", &pieces.middle, &middle);
    }
    let written = calls.patterns[0].parts.iter().find_map(|part| match part {
        Part::Arguments(arguments) => Some(arguments),
        _ => None,
    });
    match written {
        Some(Arguments::Tagged(keyed)) => {
            let prefix = text_of(known, "arg_prefix");
            check.alike("key start", &keyed.key_start, prefix);
            let opened = &keyed.opened[0].text;
            let known_opened = text_of(known, "arg_suffix").to_owned() + text_of(known, "value_prefix");
            if known["after_arg_name"].is_string() || known_opened.contains('|') && known_opened.contains("true|false")
            {
                check.same("opened", &opened[..1], &known_opened[..1]);
            } else {
                check.alike("opened", opened, &known_opened);
            }
            check.alike("value end", &keyed.value_end, text_of(known, "arg_close"));
            let cdata = known["cdata_values"].as_bool().unwrap_or_default();
            check.same("cdata", &keyed.cdata.to_string(), &cdata.to_string());
        }
        Some(Arguments::Elements { mark, .. }) => {
            check.alike("mark", &format!("{mark}<"), text_of(known, "arg_prefix"));
        }
        Some(Arguments::Pairs(style)) => check.same("quote", &style.quotes[0].mark, text_of(known, "string_quote")),
        _ => {}
    }
}

/// What is known otherwise, with the reason why this library says something else.
const OTHERWISE: &[(&str, &str, &str)] = &[
    ("command-r-plus", "content", "what is known as its start is the end of the turn's header"),
    ("command-r-plus", "content start", "what is known as its start is the end of the turn's header"),
    ("command-r-plus", "content end", "what is known as its end is the end of the turn"),
    ("Kimi-K3", "assistant turn", "the header ends with its last marker"),
    ("muse", "assistant turn", "the header ends with its last marker"),
    ("moonshotai-Kimi-K2", "user turn", "the default system message is no part of the turn"),
    ("LFM2.5", "supports_typed_content", "parts are rendered as the text is"),
    ("Ministral", "supports_typed_content", "parts are rendered as the text is"),
    ("Cohere2MoE", "preserved", "markers of system messages and results of tools, which no reply has"),
    ("LFM2-8B", "preserved", "markers around the list of tools, which no reply has"),
    ("Solar", "prompt", "add_generation_prompt adds the header"),
    ("Solar", "prompt without thinking", "add_generation_prompt adds the header"),
];

#[test]
fn analyses_of_real_templates() {
    let Some(cases) = case_file() else { return };
    let mut wrong = 0;
    let mut slowest = (0.0, String::new());
    for known in cases["analysis"].as_array().unwrap() {
        let name = text_of(known, "template");
        let Some(template) = template(name) else { return };
        let before = std::time::Instant::now();
        let analysis = Analysis::from_template(&template).unwrap();
        let taken = before.elapsed().as_secs_f64() * 1e3;
        if taken > slowest.0 {
            slowest = (taken, name.to_owned());
        }
        assert_eq!(
            analysis,
            Analysis::from_template(&template).unwrap(),
            "{name} is analysed differently the second time"
        );
        let differs = check(&analysis, known).0;
        println!("{name}: {taken:.1} ms {}", if differs.is_empty() { "same" } else { "" });
        for (what, found, known) in differs {
            let reason = OTHERWISE.iter().find(|(template, field, _)| name.contains(template) && *field == what);
            println!("    {what}: {found:?} known {known:?} {}", reason.map_or("", |(_, _, reason)| reason));
            wrong += usize::from(reason.is_none());
        }
    }
    println!("slowest: {} with {:.1} ms", slowest.1, slowest.0);
    assert_eq!(wrong, 0, "differences nobody explained");
}

#[test]
fn prompts_of_real_templates() {
    let Some(cases) = case_file() else { return };
    let mut wrong = Vec::new();
    for case in cases["generation_prompt_cases"].as_array().unwrap() {
        let Some(template) = template(text_of(case, "template")) else { return };
        let analysis = Analysis::from_template(&template).unwrap();
        let continued = match case["continue_final_message"].as_str() {
            Some("reasoning") => ContinuedPart::Reasoning,
            Some("content") => ContinuedPart::Content,
            Some(_) => ContinuedPart::Auto,
            None => ContinuedPart::Nothing,
        };
        let thinking = case["enable_thinking"].as_bool().unwrap();
        let options = PromptOptions::default().with_thinking(thinking).continuing(continued);
        let messages = case["messages"].as_array().unwrap();
        let (prompt, begins) = analysis.prompt(&template, messages, None, &options).unwrap();
        let known = text_of(case, "expected_generation_prompt");
        if &prompt[begins..] != known {
            wrong.push(format!("{} {continued:?}: {:?} known {known:?}", text_of(case, "template"), &prompt[begins..]));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_turn_without_a_header_is_continued_where_it_begins() {
    // What ends the user's turn is as long as what begins a thought.
    let text = "{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{% if \
        m.reasoning_content %}[THINK]{{ m.reasoning_content }}[/THINK]{% endif %}{{ m.content }}</s>{% endif %}\
        {% endfor %}";
    let template = ChatTemplate::new(text, "", "").unwrap();
    let analysis = Analysis::from_template(&template).unwrap();
    let continued = |said: Value| {
        let options = PromptOptions::default().continuing(ContinuedPart::Content);
        analysis.prompt(&template, &[json!({"role": "user", "content": "Hi"}), said], None, &options).unwrap().0
    };
    assert_eq!(continued(json!({"role": "assistant", "content": "Hel"})), "[INST]Hi[/INST]Hel");
    assert_eq!(continued(json!({"role": "assistant", "content": ""})), "[INST]Hi[/INST]");
    let thought = json!({"role": "assistant", "content": "Hel", "reasoning_content": "Oh"});
    assert_eq!(continued(thought), "[INST]Hi[/INST][THINK]Oh[/THINK]Hel");
}

#[test]
fn turns_and_single_markers_of_real_templates() {
    let Some(cases) = case_file() else { return };
    let mut wrong = Vec::new();
    for case in cases["role_marker_cases"].as_array().unwrap() {
        let name = text_of(case, "template");
        let Some(template) = template(name) else { return };
        let turns = Analysis::from_template(&template).unwrap().dialect.turns;
        let known = (text_of(case, "user_start"), text_of(case, "assistant_start"));
        if (turns.user.trim(), turns.assistant.trim()) != known {
            wrong.push(format!("{name}: {turns:?}"));
        }
    }
    for case in cases["caps_cases"].as_array().unwrap() {
        let name = text_of(case, "template");
        let Some(template) = template(name) else { return };
        let found = Analysis::from_template(&template).unwrap().capabilities.reasoning_effort;
        if json!(found) != case["supports_reasoning_effort"] {
            wrong.push(format!("{name}: reasoning effort {found}"));
        }
    }
    for case in cases["analysis_cases"].as_array().unwrap() {
        let name = text_of(case, "template");
        let Some(template) = template(name) else { return };
        let analysis = Analysis::from_template(&template).unwrap();
        let parts = &analysis.dialect.calls.as_ref().unwrap().patterns[0].parts;
        let keyed = parts.iter().find_map(|part| match part {
            Part::Arguments(Arguments::Tagged(keyed)) => Some(keyed.clone()),
            _ => None,
        });
        let expect = &case["expect"];
        let found = [
            ("reasoning.start", analysis.dialect.reasoning.start.clone()),
            ("reasoning.end", analysis.dialect.reasoning.end.clone()),
            ("arguments.value_suffix", keyed.unwrap().value_end),
        ];
        for (what, found) in found {
            if found.trim() != text_of(expect, what).trim() {
                wrong.push(format!("{name}: {what} {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comparing_texts() {
    let Some(cases) = case_file() else { return };
    for case in cases["unit_cases"].as_array().unwrap() {
        let of = |key: &str| text_of(case, key);
        match of("kind") {
            "calculate_diff_split" => {
                let split = text::diff(of("left"), of("right"));
                let found =
                    json!({"prefix": split.prefix, "suffix": split.suffix, "left": split.left, "right": split.right});
                assert_eq!(found, case["expected"], "{case}");
            }
            "until_common_prefix" => {
                assert_eq!(text::until_common_prefix(of("full"), of("left"), of("right")), of("expected"));
            }
            "after_common_suffix" => {
                assert_eq!(text::after_common_suffix(of("full"), of("left"), of("right")), of("expected"));
            }
            "segmentize_markers" => {
                let found: Vec<Value> = text::segments(of("text"))
                    .into_iter()
                    .map(|segment| match segment {
                        Segment::Marker(text) => json!(["MARKER", text]),
                        Segment::Text(text) => json!(["TEXT", text]),
                    })
                    .collect();
                assert_eq!(Value::from(found), case["expected"]);
            }
            // Quotes are read by the readers of arguments.
            _ => {}
        }
    }
}
