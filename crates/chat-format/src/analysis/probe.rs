//! Renders conversations with needles in them.

use chat_template::{Clock, Data, RenderOptions, Session, TemplateError};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;

/// Texts that occur in no template.
#[derive(Debug, Clone)]
pub(super) struct Needles {
    /// Common stem of the needles.
    pub(super) stem: String,
    pub(super) user: String,
    pub(super) next_user: String,
    pub(super) reply: String,
    pub(super) reason: String,
    pub(super) system: String,
    pub(super) names: [String; 2],
    pub(super) keys: [String; 2],
    pub(super) values: [String; 2],
    pub(super) ids: [String; 2],
}

impl Needles {
    /// Needles that do not occur in this text.
    pub(super) fn absent_from(text: &str) -> Self {
        let text = text.to_lowercase();
        let stems = (b'a'..=b'z').flat_map(|a| (b'a'..=b'z').map(move |b| format!("q{}x{}", a as char, b as char)));
        // The first is free in all but texts made to have them all.
        let stem = stems.into_iter().find(|stem| !text.contains(stem)).unwrap_or_else(|| "qqxqqxq".into());
        let of = |what: &str| format!("{stem}{what}");
        Self {
            user: of("asks"),
            next_user: of("again"),
            reply: of("says"),
            reason: of("because"),
            system: of("rules"),
            names: [of("_tool_one"), of("_tool_two")],
            keys: [of("_key_one"), of("_key_two")],
            values: [of("one"), of("two")],
            // Some templates want ids of nine letters and digits.
            ids: [of("00001"), of("00002")],
            stem,
        }
    }

    fn tools(&self) -> Value {
        let parameter = |kind: &str| json!({"type": kind, "description": "a"});
        let tool = |name: &String| {
            json!({"type": "function", "function": {"name": name, "description": "a", "parameters": {
                "type": "object",
                "properties": {&self.keys[0]: parameter("string"), &self.keys[1]: parameter("string")},
                "required": [&self.keys[0]],
            }}})
        };
        json!([tool(&self.names[0]), tool(&self.names[1])])
    }
}

/// Conversation that a probe renders, and the options of the rendering.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(super) struct Ask {
    pub(super) messages: Vec<Value>,
    pub(super) tools: bool,
    pub(super) prompt: bool,
    pub(super) thinking: bool,
    pub(super) adapt: bool,
    pub(super) variable: Option<(&'static str, Data)>,
}

impl Ask {
    pub(super) fn new(messages: Vec<Value>) -> Self {
        Self { messages, tools: false, prompt: false, thinking: true, adapt: true, variable: None }
    }

    pub(super) fn with_tools(mut self) -> Self {
        self.tools = true;
        self
    }

    pub(super) fn with_prompt(mut self) -> Self {
        self.prompt = true;
        self
    }

    pub(super) fn thinking(mut self, thinking: bool) -> Self {
        self.thinking = thinking;
        self
    }

    pub(super) fn without_adapting(mut self) -> Self {
        self.adapt = false;
        self
    }

    pub(super) fn with_variable(mut self, name: &'static str, value: impl Into<Data>) -> Self {
        self.variable = Some((name, value.into()));
        self
    }
}

/// Renders, and remembers what went wrong.
pub(super) struct Probe<'a> {
    session: &'a Session<'a>,
    pub(super) template: &'a str,
    pub(super) needles: Needles,
    /// Texts of the vocabulary's control tokens, where there is one.
    pub(super) control: &'a [String],
    tools: Data,
    last: RefCell<Option<TemplateError>>,
    spent: RefCell<bool>,
    /// Cached renderings: many questions are asked of the same conversation.
    seen: RefCell<HashMap<String, Option<String>>>,
}

/// Names of the field of a message that holds reasoning, as templates have them.
pub(super) const REASONING_FIELDS: [&str; 4] = ["reasoning_content", "reasoning", "thinking", "thought"];

impl<'a> Probe<'a> {
    pub(super) fn new(session: &'a Session<'a>, template: &'a str, control: &'a [String]) -> Self {
        let needles = Needles::absent_from(template);
        let tools = Data::from(&needles.tools());
        Self {
            session,
            template,
            needles,
            control,
            tools,
            last: RefCell::default(),
            spent: RefCell::default(),
            seen: RefCell::default(),
        }
    }

    /// The text, or nothing where the template refuses. Once the budget is spent, it refuses everything.
    pub(super) fn render(&self, ask: &Ask) -> Option<String> {
        if *self.spent.borrow() {
            return None;
        }
        let key = format!("{ask:?}");
        if let Some(known) = self.seen.borrow().get(&key) {
            return known.clone();
        }
        let text = self.render_uncached(ask);
        self.seen.borrow_mut().insert(key, text.clone());
        text
    }

    fn render_uncached(&self, ask: &Ask) -> Option<String> {
        let messages = Data::from(&Value::Array(ask.messages.clone()));
        let mut options =
            with_fixed_time(RenderOptions::default().with_generation_prompt(ask.prompt).with_adapt(ask.adapt));
        options = options.with_variable("enable_thinking", ask.thinking);
        if let Some((name, value)) = &ask.variable {
            options = options.with_variable(*name, value.clone());
        }
        match self.session.render(&messages, ask.tools.then_some(&self.tools), &options) {
            Ok(text) => Some(text),
            Err(error) => {
                if matches!(error, TemplateError::Limit { .. }) {
                    self.spent.replace(true);
                }
                self.last.replace(Some(error));
                None
            }
        }
    }

    /// Without tools, and with them if that is refused.
    pub(super) fn render_somehow(&self, ask: &Ask) -> Option<String> {
        self.render(ask).or_else(|| self.render(&ask.clone().with_tools()))
    }

    /// Returns the last refusal.
    pub(super) fn refusal(&self) -> Option<TemplateError> {
        self.last.borrow().clone()
    }

    /// Returns whether the template changes lists.
    pub(super) fn changes_lists(&self) -> bool {
        self.session.tried_change()
    }

    /// Returns whether the template used up all steps.
    pub(super) fn is_spent(&self) -> bool {
        *self.spent.borrow()
    }

    pub(super) fn user(&self) -> Value {
        json!({"role": "user", "content": self.needles.user})
    }

    pub(super) fn assistant(&self) -> Value {
        json!({"role": "assistant", "content": self.needles.reply})
    }

    /// The same message with reasoning in every field that a template may look at.
    pub(super) fn add_reasoning(&self, message: Value) -> Value {
        with_reasoning(message, &self.needles.reason)
    }

    /// A call of a tool.
    pub(super) fn call(&self, number: usize, arguments: Value) -> Value {
        let needles = &self.needles;
        json!({"id": needles.ids[number], "type": "function",
            "function": {"name": needles.names[number], "arguments": arguments}})
    }

    /// Returns whether a text contains the arguments of a call as Python prints dicts.
    pub(super) fn is_printed(&self, text: &str) -> bool {
        text.contains(&format!("{{'{}': '{}'}}", self.needles.keys[0], self.needles.values[0]))
    }

    /// Returns the text after the last occurrence of the user's needle.
    pub(super) fn after_user<'t>(&self, text: &'t str) -> Option<&'t str> {
        let at = text.rfind(&self.needles.user)?;
        Some(&text[at + self.needles.user.len()..])
    }
}

/// The message with reasoning in each field that templates know.
pub(super) fn with_reasoning(mut message: Value, reasoning: &str) -> Value {
    if let Value::Object(fields) = &mut message {
        for name in REASONING_FIELDS {
            fields.insert(name.into(), Value::String(reasoning.into()));
        }
    }
    message
}

/// The message with its reasoning as a part of its content.
pub(super) fn with_reasoning_part(message: &Value, reasoning: &str) -> Value {
    let mut message = message.clone();
    let content = message["content"].as_str().unwrap_or_default().to_owned();
    message["content"] = json!([{"type": "thinking", "thinking": reasoning}, {"type": "text", "text": content}]);
    message
}

/// At a fixed time, with the variables some templates take instead of tools.
pub(super) fn with_fixed_time(options: RenderOptions) -> RenderOptions {
    let clock = Clock::from_local_time(2024, 7, 26, 12, 0, 0).unwrap_or_default();
    options.with_clock(clock).with_variable("functions", "[]").with_variable("datetime", "2024-07-26")
}
