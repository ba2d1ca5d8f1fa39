//! The conversations of the check, and the parts of them that must be read back.

use crate::reply::Message;
use serde_json::{Value, json};

/// Question of the user: a text that no template contains.
pub(super) const ASKED: &str = "Wozu braucht Zo\u{eb} 7 Glocken?";
/// Content of replies that are not under test.
pub(super) const SAID: &str = "Sieben, weil acht zu laut w\u{e4}ren.";

/// Result of a tool.
pub(super) const RESULT: &str = "Neun Glocken l\u{e4}uten.";

const THOUGHT: &str = "Bells: 3 < 5 & \"more\".\n  Then again,\n\nseven.";
const ANSWER: &str = "**Seven**, or `7`:\n\n- one\n- \"two\" {3}";
const AWKWARD: &str = "a \"b\" \\ it's\n\u{e9}, {x: [1]} <b>&amp;</b>";
const HARBOUR: &str = "Am Hafen 9";

/// Conversation in which a reply stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) tools: bool,
    pub(super) thinking: bool,
}

impl Conversation {
    pub(super) const ALL: [Self; 4] =
        [Self::new(false, false), Self::new(false, true), Self::new(true, false), Self::new(true, true)];

    const fn new(tools: bool, thinking: bool) -> Self {
        Self { tools, thinking }
    }
}

/// A reply that is rendered and read back.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    pub(super) name: &'static str,
    pub(super) conversation: Conversation,
    /// Texts that show up in the rendering if the template renders such replies.
    pub(super) witnesses: Vec<&'static str>,
    content: Option<&'static str>,
    reasoning: Option<&'static str>,
    calls: Vec<Value>,
}

impl Probe {
    /// Returns whether one of its values is empty.
    pub(super) fn has_nothing(&self) -> bool {
        self.calls.iter().any(|call| call.to_string().contains("null"))
    }

    /// Returns whether a call comes after content.
    pub(super) fn is_late_call(&self) -> bool {
        self.content.is_some() && !self.calls.is_empty()
    }

    /// Returns whether its text with quotes was rendered unescaped.
    pub(super) fn is_unescaped(&self, rendered: &str) -> bool {
        self.calls.iter().any(|call| call["function"]["arguments"]["note"] == AWKWARD) && rendered.contains(AWKWARD)
    }

    /// The message in each shape that templates may want.
    pub(super) fn messages(&self) -> Vec<Value> {
        let contents = match self.content {
            Some(content) => vec![json!(content)],
            None => vec![json!(""), Value::Null],
        };
        let message = |content: Value| {
            let mut message = json!({"role": "assistant", "content": content});
            if let Some(reasoning) = self.reasoning {
                message["reasoning_content"] = json!(reasoning);
            }
            if !self.calls.is_empty() {
                message["tool_calls"] = Value::Array(self.calls.clone());
            }
            message
        };
        contents.into_iter().map(message).collect()
    }
}

pub(super) fn tools() -> Value {
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name, "description": "One.",
            "parameters": {"type": "object", "properties": properties}}})
    };
    let kind = |kind: &str| json!({"type": kind, "description": "One."});
    json!([
        tool(
            "book_table",
            json!({
                "place": kind("string"), "note": kind("string"), "code": kind("string"), "guests": kind("integer"),
                "price": kind("number"), "outside": kind("boolean"), "days": {"type": "array", "items": kind("string")},
                "more": kind("object"),
            })
        ),
        tool("find_song", json!({"title": kind("string")})),
    ])
}

pub(super) fn all_probes(id: &dyn Fn(usize, &str) -> String) -> Vec<Probe> {
    let call = |number: usize, name: &str, arguments: Value| {
        json!({"id": id(number, name), "type": "function",
        "function": {"name": name, "arguments": arguments}})
    };
    let song = || call(0, "find_song", json!({"title": HARBOUR}));
    let probe = |name: &'static str, tools: bool, thinking: bool| Probe {
        name,
        conversation: Conversation::new(tools, thinking),
        witnesses: Vec::new(),
        content: None,
        reasoning: None,
        calls: Vec::new(),
    };
    let says = |probe: Probe| Probe { content: Some(ANSWER), witnesses: vec![ANSWER], ..probe };
    let thinks = |probe: Probe| Probe { reasoning: Some(THOUGHT), ..probe };
    let both = |probe: Probe| Probe { witnesses: vec![ANSWER, HARBOUR], ..probe };
    let calls = |probe: Probe, calls: Vec<Value>| Probe { calls, witnesses: vec![HARBOUR], ..probe };
    let typed = json!({"place": HARBOUR, "guests": 12, "price": -3.75, "outside": true,
        "days": ["Monday", "next \"one\""], "more": {"list": [1, 2.5, null], "inner": {"of": "it", "no": false}}});
    let alike = json!({"place": HARBOUR, "code": "42", "note": "true"});
    let awkward = json!({"place": HARBOUR, "note": AWKWARD, "code": "],)}"});
    let other = call(1, "book_table", json!({"place": "there", "guests": 2}));
    let two = calls(probe("two calls", true, false), vec![song(), other]);
    vec![
        says(probe("content", false, false)),
        says(probe("content, with thinking on", false, true)),
        says(thinks(probe("reasoning and content", false, true))),
        says(probe("content beside tools", true, true)),
        says(thinks(probe("reasoning and content beside tools", true, true))),
        calls(probe("a call", true, false), vec![song()]),
        calls(probe("a call, with thinking on", true, true), vec![song()]),
        calls(thinks(probe("reasoning and a call", true, true)), vec![song()]),
        calls(says(probe("content and a call", true, false)), vec![song()]),
        both(calls(says(thinks(probe("reasoning, content and a call", true, true))), vec![song()])),
        calls(probe("a call with values of all types", true, false), vec![call(0, "book_table", typed)]),
        calls(probe("a call with texts that look like values", true, false), vec![call(0, "book_table", alike)]),
        calls(probe("a call with signs in its texts", true, false), vec![call(0, "book_table", awkward)]),
        // A template that writes one of them has no place for two.
        Probe { witnesses: vec![HARBOUR, "there", "book_table"], ..two },
    ]
}

/// The name of the tool that is called.
pub(super) fn name_of(call: &Value) -> &str {
    call["function"]["name"].as_str().unwrap_or_default()
}

/// Returns the part of a message that was not read back unchanged.
pub(super) fn differs(message: &Value, rendered: &str, got: &Message) -> Option<String> {
    let text = |key: &str| message[key].as_str().filter(|text| rendered.contains(text.trim())).unwrap_or_default();
    let texts = [("content", text("content"), &got.content), ("reasoning", text("reasoning_content"), &got.reasoning)];
    let calls_any = message["tool_calls"].is_array();
    for (what, want, have) in texts {
        // Beside calls some templates write what is said as reasoning.
        let moved = calls_any && want.trim() == got.reasoning.trim();
        if want.trim() != have.trim() && !moved && !(calls_any && what == "reasoning" && text("content") == have.trim())
        {
            return Some(format!("{what} came back as {:?}, not as {:?}", shorten(have), shorten(want)));
        }
    }
    let none = Vec::new();
    let calls = message["tool_calls"].as_array().unwrap_or(&none);
    if calls.len() != got.tool_calls.len() {
        return Some(format!("{} of {} calls came back", got.tool_calls.len(), calls.len()));
    }
    for (want, have) in calls.iter().zip(&got.tool_calls) {
        let function = &want["function"];
        if function["name"] != have.name {
            return Some(format!("the call of {} came back as one of {:?}", function["name"], have.name));
        }
        let arguments = serde_json::from_str::<Value>(&have.arguments).unwrap_or_default();
        if !is_equal(&function["arguments"], &arguments) {
            let (want, have) = (function["arguments"].to_string(), shorten(&have.arguments));
            return Some(format!("arguments came back as {have:?}, not as {want:?}"));
        }
        let id = want["id"].as_str().filter(|id| rendered.contains(id));
        if id.is_some_and(|id| !have.id.is_empty() && id != have.id) {
            return Some(format!("the id {} came back as {:?}", want["id"], have.id));
        }
    }
    None
}

/// Returns whether two values are equal, however numbers are written.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let held = |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| is_equal(value, other));
            one.len() == other.len() && one.iter().all(held)
        }
        // Some templates write nothing where there is nothing.
        (Value::Null, Value::String(text)) => text.is_empty(),
        _ => one == other,
    }
}

pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
