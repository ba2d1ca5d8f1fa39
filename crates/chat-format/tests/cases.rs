//! Outputs of models, and the message that each means: where the folder of cases is there.

use chat_format::dialect::*;
use chat_format::{Dialect, Event, Message, Parser, ParserOptions, ReasoningFormat, ToolChoice, Tools};
use serde_json::Value;
use std::collections::BTreeMap;

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn expected_dialect(a: &Value) -> Dialect {
    let mut d = Dialect::default();
    let r = &a["reasoning"];
    d.reasoning.mode = match text(r, "mode") {
        "REASONING_OPTIONAL" => ReasoningMode::Optional,
        "REASONING_FORCED_OPEN" => ReasoningMode::OpenedByPrompt,
        _ => ReasoningMode::None,
    };
    d.reasoning.start = text(r, "start").into();
    d.reasoning.end = text(r, "end").into();
    let t = &a["tool_call"];
    let name = text(a, "template");
    d.reasoning.calls_end_it = ["Qwen3.5", "ling", "V3.2", "Kimi-K2"].iter().any(|n| name.contains(n));
    let c = &a["content"];
    d.content.mode = match text(c, "mode") {
        "CONTENT_ALWAYS_WRAPPED" => ContentMode::Wrapped,
        "CONTENT_WRAPPED_WITH_REASONING" => ContentMode::WrappedWithReasoning,
        _ => ContentMode::Plain,
    };
    d.content.start = text(c, "start").into();
    d.content.end = text(c, "end").into();
    d.stops = a["additional_stops"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().into()).collect();
    d.turns.user = text(&a["role_markers"], "user_start").into();
    d.turns.assistant = text(&a["role_markers"], "assistant_start").into();
    if name.contains("Kimi-K3") {
        d.turns.end = "<|close|>message<|sep|>".into();
    }
    let mut calls = Calls::default();
    calls.section = Wrap::new(text(t, "section_start"), text(t, "section_end"));
    calls.list = t["array_wrapped"].as_bool().unwrap_or(false);
    let args = match text(t, "argument_format") {
        f if f.starts_with("ARGS_JSON") => Arguments::Json,
        f if f.contains("tag name = key") => Arguments::Elements { mark: "]<]minimax[>[".into() },
        f if f.starts_with("ARGS_TAGGED") => {
            let suffix = format!("{}{}", text(t, "arg_suffix"), text(t, "value_prefix"));
            let mut k = Keyed::new(text(t, "arg_prefix"), suffix.clone(), text(t, "arg_close"));
            let opened = |text: &str, types: &[&str]| {
                let mut o = Opened::default();
                o.text = text.into();
                o.types = types.iter().map(|&t| t.into()).collect();
                o
            };
            if suffix.contains("string=") {
                k.opened = vec![
                    opened("\" string=\"true\">", &["string"]),
                    opened("\" string=\"false\">", &["number", "boolean", "null", "array", "object"]),
                ];
            }
            if t.get("after_arg_name").is_some() {
                k.opened = ["string", "number", "boolean", "array", "object", "null"]
                    .iter()
                    .map(|ty| opened(&format!("\" type=\"{ty}\"<|sep|>"), &[ty]))
                    .collect();
            }
            k.cdata = t.get("cdata_values").is_some();
            Arguments::Tagged(k)
        }
        f if f.starts_with("ARGS_KEY") => Arguments::Tagged(Keyed::new(
            text(t, "arg_prefix"),
            format!("{}{}", text(t, "arg_suffix"), text(t, "value_prefix")),
            text(t, "arg_close"),
        )),
        f if f.starts_with("ARGS_PYTHON") => Arguments::Keywords(Style::python()),
        f if f.starts_with("ARGS_GEMMA") => Arguments::Pairs(Style::quoted_by("<|\"|>")),
        _ => return d,
    };
    let tx = |key: &str| Part::Text(text(t, key).into());
    let mut parts = vec![tx("per_call_start")];
    let f = text(t, "function_format");
    if f.starts_with("FUNC_JSON_OBJECT") || f.starts_with("FUNC_MARKDOWN") {
        let mut object = ObjectCall::default();
        let order: Vec<String> = t["parameter_order"].as_array().map_or_else(
            || {
                ["id_field", "name_field", "args_field"]
                    .iter()
                    .map(|k| text(t, k).to_owned())
                    .filter(|s| !s.is_empty())
                    .collect()
            },
            |o| o.iter().map(|s| s.as_str().unwrap().into()).collect(),
        );
        for field in order {
            object.fields.push(if field == text(t, "name_field") {
                Field::Name(field)
            } else if field == text(t, "args_field") {
                Field::Arguments(field)
            } else {
                Field::Id(field)
            });
        }
        parts.extend([Part::Object(object), tx("per_call_end")]);
    } else if f.starts_with("FUNC_NAME_AS_KEY") {
        parts.push(Part::NameAsKey);
    } else if f.starts_with("FUNC_PREFIXED") {
        parts.extend([
            Part::WholeId,
            tx("namespace"),
            Part::Name,
            tx("index_separator"),
            Part::Index,
            Part::WholeId,
            tx("args_marker"),
            Part::Arguments(args),
            tx("per_call_end"),
        ]);
    } else if f.contains("CHANNEL") {
        d.joints = ["<|start|>assistant", "<|end|>", "<|return|>", "<|call|>", "<|channel|>commentary to=assistant"]
            .map(String::from)
            .to_vec();
        d.content.other_starts = [
            "<|channel|>commentary<|message|>",
            "<|channel|>final <|constrain|>json<|message|>",
            "<|channel|>commentary to=assistant<|channel|>final<|message|>",
        ]
        .map(String::from)
        .to_vec();
        d.content.end = String::new();
        for channel in ["commentary", "analysis"] {
            calls.patterns.push(
                Pattern::new(vec![
                    Part::Text("to=functions.".into()),
                    Part::Name,
                    Part::Text(format!("<|channel|>{channel}")),
                    Part::Anything,
                    Part::Text("<|message|>".into()),
                    Part::Arguments(Arguments::Json),
                ])
                .at_start(),
            );
            calls.patterns.push(
                Pattern::new(vec![
                    Part::Text(format!("<|channel|>{channel} to=functions.")),
                    Part::Name,
                    Part::Anything,
                    Part::Text("<|message|>".into()),
                    Part::Arguments(Arguments::Json),
                ])
                .at_start(),
            );
        }
        d.calls = Some(calls);
        return d;
    } else if f.contains("RECIPIENT") && !text(t, "recipient_suffix").is_empty() {
        d.joints = ["<|start|>assistant", "<|eom|>", "<|eot|>"].map(String::from).to_vec();
        d.content.start = " to=user<|message|>".into();
        d.content.other_starts = vec!["<|message|>".into()];
        d.content.end = String::new();
        parts = vec![
            tx("recipient_prefix"),
            Part::Anything,
            tx("recipient_suffix"),
            tx("section_start"),
            tx("name_prefix"),
            Part::Name,
            tx("name_suffix"),
            Part::Arguments(args),
            tx("function_close"),
        ];
        let end = text(t, "section_end").to_owned();
        calls.section = Wrap::new("", end);
        calls.patterns = vec![Pattern::new(parts).at_start()];
        d.calls = Some(calls);
        return d;
    } else if f.contains("RECIPIENT") {
        parts = vec![tx("recipient_prefix"), Part::Name, tx("name_suffix"), Part::Arguments(args)];
    } else {
        if text(t, "id_position") == "PRE_FUNC_NAME" {
            parts.extend([Part::Id, tx("id_suffix")]);
        }
        parts.push(tx("name_prefix"));
        parts.push(Part::Name);
        if text(t, "id_position") == "BETWEEN_FUNC_AND_ARGS" {
            parts.extend([tx("id_prefix"), Part::Id, tx("id_suffix")]);
        } else {
            parts.push(tx("name_suffix"));
            if t.get("after_name").is_some() {
                parts.extend([Part::Anything, Part::Text("<|sep|>".into())]);
            }
        }
        parts.extend([Part::Arguments(args), tx("function_close"), tx("per_call_end")]);
    }
    parts.retain(|p| *p != Part::Text(String::new()));
    let mut pattern = Pattern::new(parts);
    if text(t, "section_start").is_empty() && pattern.head().is_none() {
        pattern = pattern.at_start();
    }
    if name.contains("Qwen3-Coder") {
        pattern = pattern.with_optional_head(1);
    }
    calls.patterns = vec![pattern];
    d.calls = Some(calls);
    d
}

fn same(case: &Value, got: &Message) -> Result<(), String> {
    let e = &case["expected"];
    let trim = |t: &str| t.trim_matches([' ', '\n', '\t', '\r']).to_owned();
    for (what, want, have) in
        [("content", text(e, "content"), &got.content), ("reasoning", text(e, "reasoning_content"), &got.reasoning)]
    {
        if trim(want) != trim(have) {
            return Err(format!("{what}: want {want:?}, got {have:?}"));
        }
    }
    let calls = e["tool_calls"].as_array().unwrap();
    if calls.len() != got.tool_calls.len() {
        return Err(format!("calls: want {calls:?}, got {got:?}"));
    }
    for (want, have) in calls.iter().zip(&got.tool_calls) {
        let args = text(want, "arguments");
        let (w, h) = (serde_json::from_str::<Value>(args), serde_json::from_str::<Value>(&have.arguments));
        let equal = match (w, h) {
            (Ok(w), Ok(h)) => w == h,
            (Err(_), Err(_)) => true,
            (Err(_), Ok(_)) => have.arguments.starts_with(args) || args.starts_with(&have.arguments),
            _ => false,
        };
        if !equal || text(want, "name") != have.name || text(want, "id") != have.id {
            return Err(format!("call: want {want:?}, got {have:?}"));
        }
    }
    Ok(())
}

fn options(case: &Value, analysis: &Value, tools: &Value) -> ParserOptions {
    let o = &case["options"];
    let mut options = ParserOptions::default();
    let list: Vec<Value> = o["tools"].as_array().unwrap().iter().map(|t| tools[t.as_str().unwrap()].clone()).collect();
    options.tools = Some(Tools::new(&list).unwrap());
    options.tool_choice = match text(o, "tool_choice") {
        "none" => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    if text(o, "reasoning_format") == "none" {
        options.reasoning = ReasoningFormat::None;
    }
    options.json_content = o.get("json_schema").is_some_and(|s| !s.is_null());
    let gp = text(case, "generation_prompt");
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let g = &analysis["generation_prompt"];
    let known = common(gp, text(g, "thinking")).min(common(gp, text(g, "no_thinking")));
    options.prompt = (gp.to_owned(), known);
    options
}

#[test]
fn outputs_mean_what_the_cases_say() {
    let path = std::env::var("TOKENTRIE_CASES_DIR").unwrap_or_else(|_| "../../../shared/cases".into());
    let Ok(file) = std::fs::read(format!("{path}/chat_format.json")) else {
        eprintln!("skipped: no cases in {path}");
        return;
    };
    let data: Value = serde_json::from_slice(&file).unwrap();
    let analyses: BTreeMap<&str, &Value> =
        data["analysis"].as_array().unwrap().iter().map(|a| (text(a, "template"), a)).collect();
    let mut table: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    for case in data["cases"].as_array().unwrap() {
        let template = text(case, "template");
        let analysis = analyses[template];
        let dialect = expected_dialect(analysis);
        let options = options(case, analysis, &data["tools"]);
        let mut parser = Parser::new(&dialect, &options).unwrap();
        let mut events = parser.push(text(case, "model_output").as_bytes());
        let (last, message) = parser.finish(case["is_partial"].as_bool().unwrap_or(false));
        events.extend(last);
        let row = table.entry(template).or_default();
        match same(case, &message) {
            Ok(()) => row.0 += 1,
            Err(why) => row.1.push(format!("{} {:?}\n      {why}", text(case, "id"), text(case, "model_output"))),
        }
        let _: &Vec<Event> = &events;
    }
    let (mut right, mut wrong) = (0, 0);
    for (template, (passed, failed)) in &table {
        println!("{template}: {passed} passed, {} failed", failed.len());
        for failed in failed.iter().take(6) {
            println!("    {failed}");
        }
        right += passed;
        wrong += failed.len();
    }
    println!("{right} passed, {wrong} failed");
    assert_eq!(wrong, 0);
}
