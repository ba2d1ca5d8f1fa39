//! Events and replies as JSON, for hosts that have no types of ours.

#[cfg(feature = "llama")]
use crate::chat::reply::ChatReply;
use chat_format::{CallKind, Event, Message, TracedText};
#[cfg(feature = "llama")]
use serde_json::Map;
use serde_json::{Value, json};

/// Returns an event as JSON: `{"kind": "content", "text": "Hel"}`; kinds are `reasoning`, `content`, `call_begins`,
/// `arguments`, `call_ends`, `warning` and `message_ends`, with `index`, `id` and `name` where they have them. `tool`
/// is the kind of the tool that is called: `function` or `custom`.
#[must_use]
pub fn event_json(event: &Event) -> String {
    let value = match event {
        Event::Reasoning(text) => json!({"kind": "reasoning", "text": text}),
        Event::Content(text) => json!({"kind": "content", "text": text}),
        Event::CallBegins { index, id, name, kind } => {
            json!({"kind": "call_begins", "index": index, "id": id, "name": name, "tool": kind.name()})
        }
        Event::Arguments { index, text } => json!({"kind": "arguments", "index": index, "text": text}),
        Event::CallEnds { index, id } => json!({"kind": "call_ends", "index": index, "id": id}),
        Event::Warning(text) => json!({"kind": "warning", "text": text}),
        // An event that is newer than this map.
        _ => json!({"kind": "message_ends"}),
    };
    value.to_string()
}

/// Returns a prompt as JSON: `{"text": "...", "turn": "...", "parts": [["...", true]]}`. `turn` is the end of the text,
/// which begins the reply. `parts` splits the text; `true` marks text that the template wrote, in which names of
/// control tokens stand for those tokens.
#[must_use]
pub fn prompt_json(text: &TracedText, turn: Option<&str>) -> Value {
    json!({"text": text.text(), "turn": turn, "parts": text.parts()})
}

/// Returns a message in the form that the next request takes: `{"role": "assistant", "content": ..., ...}`.
#[must_use]
pub fn message_json(message: &Message) -> Value {
    let mut value = json!({"role": "assistant", "content": message.content});
    if !message.reasoning.is_empty() {
        value["reasoning_content"] = message.reasoning.as_str().into();
    }
    let calls = message.tool_calls.iter().map(|call| {
        if call.kind == CallKind::Custom {
            let custom = json!({"name": call.name, "input": call.arguments});
            return json!({"id": call.id, "type": "custom", "custom": custom});
        }
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": call.id, "type": "function", "function": function})
    });
    if !message.tool_calls.is_empty() {
        value["tool_calls"] = calls.collect();
    }
    value
}

#[cfg(feature = "llama")]
impl ChatReply {
    /// `{"message": {"role": "assistant", "content": ..., ...}, "finish": ..., "stop_text": null, "completed": false,
    /// "logprobs": [...], "warnings": [...], "stats": {...}, "receipt": ...}`. The message goes on into the next
    /// request; calls have `probability` and `probabilities` where that was asked for.
    #[must_use]
    pub fn to_json(&self, warnings: &[String]) -> String {
        let mut message = message_json(&self.message);
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten();
        for (call, shares) in calls.zip(&self.shares) {
            call["probability"] = shares.name.map_or(Value::Null, Value::from);
            let of_values = shares.values.iter().map(|(name, share)| (name.clone(), Value::from(*share)));
            call["probabilities"] = Value::Object(of_values.collect::<Map<_, _>>());
        }
        let warnings: Vec<&String> = warnings.iter().chain(&self.message.warnings).collect();
        json!({
            "message": message,
            "finish": self.finish.name(),
            "stop_text": self.stop_text,
            "completed": self.completed,
            "logprobs": self.logprobs,
            "warnings": warnings,
            "receipt": self.receipt,
            "stats": self.stats,
        })
        .to_string()
    }
}
