//! Outputs of models, and the message that each means: where the folder of cases is there.

use chat_format::{ChatFormat, ChatTemplate, Event, Message, ParserOptions, ReasoningFormat, ToolChoice, Tools};
use serde_json::Value;
use std::collections::BTreeMap;

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn same(case: &Value, got: &Message) -> Result<(), String> {
    let e = &case["expected"];
    let trim = |t: &str| t.trim_matches([' ', '\n', '\t', '\r']).to_owned();
    for (what, want, have) in [
        ("content", text(e, "content"), &got.content),
        ("reasoning", text(e, "reasoning_content"), &got.reasoning),
    ] {
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

fn options(case: &Value, tools: &Value) -> ParserOptions {
    let o = &case["options"];
    let mut options = ParserOptions::default();
    let list: Vec<Value> =
        o["tools"].as_array().unwrap().iter().map(|t| tools[t.as_str().unwrap()].clone()).collect();
    options.tools = Some(Tools::new(&list).unwrap());
    options.tool_choice = match text(o, "tool_choice") {
        "none" => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    if text(o, "reasoning_format") == "none" {
        options.reasoning = ReasoningFormat::None;
    }
    options.json_content = o.get("json_schema").is_some_and(|s| !s.is_null());
    options.prompt = Some(text(case, "generation_prompt").to_owned());
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
    let folder = std::env::var("TOKENTRIE_TEMPLATE_DIR").unwrap_or_else(|_| "../../../shared/templates".into());
    let mut formats: BTreeMap<&str, ChatFormat> = BTreeMap::new();
    let mut table: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    for case in data["cases"].as_array().unwrap() {
        let template = text(case, "template");
        let format = formats.entry(template).or_insert_with(|| {
            let text = std::fs::read_to_string(format!("{folder}/{template}")).unwrap();
            ChatFormat::new(ChatTemplate::new(text, "", "").unwrap()).unwrap()
        });
        let options = options(case, &data["tools"]);
        let mut parser = format.parser(&options).unwrap();
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
