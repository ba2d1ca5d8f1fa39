//! Messages and tools in the shape that a template takes, as far as the analysis knows it. If a template still refuses
//! them, the renderer tries other shapes.

use super::Analysis;
use super::calls::{Example, to_spaced_json};
use super::own_marks::OwnMarks;
use super::probe::{REASONING_FIELDS, with_reasoning, with_reasoning_part};
use crate::custom::tool_as_function;
use serde_json::{Value, json};

pub(super) fn reasoning_of(message: &Value) -> &str {
    REASONING_FIELDS.iter().find_map(|field| message[*field].as_str()).unwrap_or_default()
}

impl Analysis {
    /// All messages in the shape of the template.
    pub(super) fn shaped_all(&self, messages: &[Value], marks: &OwnMarks) -> Vec<Value> {
        let mut shaped: Vec<Value> = messages.iter().map(|message| self.shaped_with(message, marks)).collect();
        answer_calls(&mut shaped);
        shaped
    }

    /// A message in the shape of the template: content, arguments, and reasoning where the template takes it.
    pub(crate) fn shape_message(&self, message: &Value) -> Value {
        self.shaped_with(message, &OwnMarks::default())
    }

    /// The same; what is written for the template is marked.
    fn shaped_with(&self, message: &Value, marks: &OwnMarks) -> Value {
        let mut message = message.clone();
        if message.get("role").is_none_or(|role| !role.is_string()) {
            return message;
        }
        if let Some(text) = text_of_parts(&message["content"])
            && (self.capabilities.string_content || !self.capabilities.typed_content)
        {
            message["content"] = text.into();
        }
        if message["role"] != "assistant" {
            return message;
        }
        if message["content"].is_null() && !self.continued.null_content {
            message["content"] = "".into();
        }
        if let Some(example) = &self.told {
            say_calls(&mut message, example, marks);
        }
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            self.shape_arguments(call);
        }
        let reasoning = reasoning_of(&message).to_owned();
        if reasoning.is_empty() {
            return message;
        }
        if self.continued.as_part {
            return with_reasoning_part(&message, &reasoning);
        }
        with_reasoning(message, &reasoning)
    }

    /// Shapes arguments as a dict if the template takes one, because it may write JSON text as a string inside JSON.
    /// Otherwise as JSON text, because the template may print a dict as Python does.
    fn shape_arguments(&self, call: &mut Value) {
        let of = if call.get("function").is_some() { "/function/arguments" } else { "/arguments" };
        let Some(arguments) = call.pointer_mut(of) else { return };
        if arguments.is_object() && self.capabilities.tool_calls && !self.capabilities.object_arguments {
            *arguments = to_spaced_json(arguments).into();
            return;
        }
        let parsed = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(parsed) = parsed.filter(Value::is_object)
            && self.capabilities.object_arguments
        {
            *arguments = parsed;
        }
    }
}

/// Writes calls at the end of the content, for a template that renders none.
fn say_calls(message: &mut Value, example: &Example, marks: &OwnMarks) {
    let calls = message.as_object_mut().and_then(|fields| fields.shift_remove("tool_calls"));
    let Some(calls) = calls.as_ref().and_then(Value::as_array).filter(|calls| !calls.is_empty()) else { return };
    let text = example.write(calls, marks);
    match &mut message["content"] {
        Value::Array(parts) => parts.push(json!({"type": "text", "text": text})),
        content => *content = format!("{}{text}", content.as_str().unwrap_or_default()).into(),
    }
}

/// The texts of content parts, if there are parts and all are texts.
fn text_of_parts(content: &Value) -> Option<String> {
    let parts = content.as_array()?;
    parts.iter().map(|part| part.get("text").unwrap_or(part).as_str()).collect()
}

/// Gives ids to calls that have none. A result without id or name gets those of the call that it answers. Calls and
/// results are matched by their order.
fn answer_calls(messages: &mut [Value]) {
    let mut open: Vec<(String, String)> = Vec::new();
    let mut number = 0_usize;
    for message in messages {
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(fields) = call.as_object_mut() else { continue };
            number += 1;
            if fields.get("id").is_none_or(|id| id.as_str().is_none_or(str::is_empty)) {
                // Nine letters and digits, as some templates want.
                fields.insert("id".into(), format!("call{number:05}").into());
            }
            let name = call.pointer("/function/name").or_else(|| call.get("name"));
            let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
            open.push((call["id"].as_str().unwrap_or_default().to_owned(), name));
        }
        if message["role"] != "tool" {
            continue;
        }
        let given = |key: &str| message[key].as_str().filter(|text| !text.is_empty());
        let (id, name) = (given("tool_call_id"), given("name"));
        let answers = |(open_id, open_name): &(String, String)| {
            id.is_none_or(|id| id == open_id) && name.is_none_or(|name| name == open_name)
        };
        let Some(at) = open.iter().position(answers) else { continue };
        let (id, name) = open.remove(at);
        for (key, value) in [("tool_call_id", id), ("name", name)] {
            if message[key].as_str().is_none_or(str::is_empty) && !value.is_empty() {
                message[key] = value.into();
            }
        }
    }
}

/// Definitions of tools, each as `{"type": "function", "function": {...}}`.
pub(super) fn wrap_tools(tools: &Value) -> Value {
    let Some(list) = tools.as_array() else { return tools.clone() };
    let wrap = |tool: &Value| {
        if let Some(function) = tool_as_function(tool) {
            return function;
        }
        if tool.get("function").is_some_and(Value::is_object) || !tool["name"].is_string() {
            return tool.clone();
        }
        let mut function = tool.clone();
        if let Some(fields) = function.as_object_mut() {
            fields.shift_remove("type");
            if let Some(schema) = fields.shift_remove("input_schema") {
                fields.entry("parameters").or_insert(schema);
            }
        }
        json!({"type": "function", "function": function})
    };
    list.iter().map(wrap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_what_they_answer() {
        let call = |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": {}}});
        let mut messages = [
            json!({"role": "assistant", "tool_calls": [call("a", "now"), call("", "stop")]}),
            json!({"role": "tool", "content": "1", "name": "stop"}),
            json!({"role": "tool", "content": "2"}),
            json!({"role": "tool", "content": "3"}),
        ];
        answer_calls(&mut messages);
        assert_eq!(messages[0]["tool_calls"][1]["id"], "call00002");
        assert_eq!((&messages[1]["tool_call_id"], &messages[1]["name"]), (&json!("call00002"), &json!("stop")));
        assert_eq!((&messages[2]["tool_call_id"], &messages[2]["name"]), (&json!("a"), &json!("now")));
        assert!(messages[3].get("tool_call_id").is_none());
    }

    #[test]
    fn bare_tools_are_wrapped() {
        let tools = wrap_tools(&json!([{"name": "now", "input_schema": {}}, {"type": "function", "function": {}}]));
        assert_eq!(tools[0], json!({"type": "function", "function": {"name": "now", "parameters": {}}}));
        assert_eq!(tools[1], json!({"type": "function", "function": {}}));
    }
}
