//! Events and replies as JSON, for hosts that have no types of ours.

use crate::chat::reply::ChatReply;
use crate::run::Receipt;
use chat_format::Event;
use serde_json::{Map, Value, json};

/// An event: `{"kind": "content", "text": "Hel"}`; kinds are `reasoning`, `content`, `call_begins`, `arguments`,
/// `call_ends`, `warning` and `message_ends`, with `index`, `id` and `name` where they have them.
#[must_use]
pub fn event_json(event: &Event) -> String {
    let value = match event {
        Event::Reasoning(text) => json!({"kind": "reasoning", "text": text}),
        Event::Content(text) => json!({"kind": "content", "text": text}),
        Event::CallBegins { index, id, name } => {
            json!({"kind": "call_begins", "index": index, "id": id, "name": name})
        }
        Event::Arguments { index, text } => json!({"kind": "arguments", "index": index, "text": text}),
        Event::CallEnds { index, id } => json!({"kind": "call_ends", "index": index, "id": id}),
        Event::Warning(text) => json!({"kind": "warning", "text": text}),
        // An event that is newer than this map.
        _ => json!({"kind": "message_ends"}),
    };
    value.to_string()
}

impl ChatReply {
    /// `{"message": {"role": "assistant", "content": ..., ...}, "finish": ..., "logprobs": [...], "warnings": [...],
    /// "stats": {...}, "receipt": ...}`. The message goes on into the next request; calls have `probability` and
    /// `probabilities` where that was asked for.
    #[must_use]
    pub fn to_json(&self, warnings: &[String], receipt: Option<&Receipt>) -> String {
        let mut message = json!({"role": "assistant", "content": self.message.content});
        if !self.message.reasoning.is_empty() {
            message["reasoning_content"] = self.message.reasoning.as_str().into();
        }
        if !self.message.tool_calls.is_empty() {
            message["tool_calls"] = (0..self.message.tool_calls.len()).map(|number| self.call(number)).collect();
        }
        let stats = &self.stats;
        let warnings: Vec<&String> = warnings.iter().chain(&self.message.warnings).collect();
        json!({
            "message": message,
            "finish": self.finish.name(),
            "logprobs": crate::run::logprobs(&self.logprobs),
            "warnings": warnings,
            "receipt": receipt,
            "stats": {
                "prompt_tokens": stats.prompt_tokens,
                "prompt_tokens_reused": stats.prompt_tokens_reused,
                "tokens": stats.tokens,
                "reasoning_tokens": stats.reasoning_tokens,
                "forced_tokens": stats.forced_tokens,
                "forward_passes": stats.forward_passes,
                "forward_passes_saved": stats.forward_passes_saved,
                "seconds": stats.seconds,
                "prompt_seconds": stats.prompt_seconds,
                "tokens_per_second": stats.tokens_per_second,
            },
        })
        .to_string()
    }

    fn call(&self, number: usize) -> Value {
        let call = &self.message.tool_calls[number];
        let function = json!({"name": call.name, "arguments": call.arguments});
        let mut value = json!({"id": call.id, "type": "function", "function": function});
        if let Some(shares) = self.shares.get(number) {
            value["probability"] = shares.name.map_or(Value::Null, Value::from);
            let of_values = shares.values.iter().map(|(name, share)| (name.clone(), Value::from(*share)));
            value["probabilities"] = Value::Object(of_values.collect::<Map<_, _>>());
        }
        value
    }
}
