//! Tools that a template does not show: the system message describes them instead.

use super::calls::{Example, to_spaced_json};
use super::own_marks::OwnMarks;
use super::prompt::with_usual_variables;
use super::{Analysis, names, shaped};
use crate::custom::calls_as_functions;
use crate::dialect::{Arguments, Calls, Field, ObjectCall, Part, Pattern};
use chat_template::{ChatTemplate, Data, RenderOptions};
use serde_json::{Value, json};

/// Place in the prompt that describes tools to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolsIn {
    /// The place that the template chooses.
    #[default]
    Template,
    /// The system message, which describes the tools and how to call one.
    System,
    /// The messages as they are given: their author has already described the tools.
    Messages,
}

impl ToolsIn {
    /// All of the places.
    pub const ALL: [Self; 3] = [Self::Template, Self::System, Self::Messages];

    /// Its name: `template`, `system`, `messages`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::System => "system",
            Self::Messages => "messages",
        }
    }
}

/// Introduction of the message that describes tools.
const BEFORE: &str = "# Tools\n\nYou may call one or more tools to assist with the user query. Their signatures are \
    within <tools></tools>:\n<tools>\n";
const AFTER: &str = "</tools>\n\n";
/// Introduction to calls in any format.
const EACH: &str = "For each call write its name and its arguments in this format and in no other:\n";

/// Texts that stand for the parts of a call while it is rendered.
const NAME: &str = "THE_NAME_OF_A_TOOL";
const ARGUMENT: &str = "THE_NAME_OF_AN_ARGUMENT";
const VALUE: &str = "THE_VALUE_OF_AN_ARGUMENT";

/// Texts in place of the needles in a call whose name is in JSON. Small models copy a name in capitals as if it were
/// the value: `benches/tool_wording.py` measures how much less often they do so with each wording.
const IN_JSON: [(&str, &str); 5] = [
    ("\"THE_NAME_OF_A_TOOL\"", "<function-name>"),
    ("{\"THE_NAME_OF_AN_ARGUMENT\": \"THE_VALUE_OF_AN_ARGUMENT\"}", "<args-json-object>"),
    (NAME, "<function-name>"),
    (ARGUMENT, "<argument-name>"),
    (VALUE, "<value>"),
];
/// Texts in place of the needles in other calls, where brackets would be read as tags.
const ELSEWHERE: [(&str, &str); 3] = [(NAME, "tool_name"), (ARGUMENT, "argument_name"), (VALUE, "value")];

impl Analysis {
    /// The same analysis with the tools described in this place. A template that renders no calls gets JSON in
    /// `<tool_call>` tags.
    pub(crate) fn telling(&self, template: &ChatTemplate, place: ToolsIn) -> Self {
        let mut analysis = self.clone();
        analysis.tools_in = place;
        if place == ToolsIn::Template {
            return analysis;
        }
        if analysis.dialect.calls.is_none() {
            let text = |text: &str| Part::Text(text.into());
            let fields = vec![Field::Name("name".into()), Field::Arguments("arguments".into())];
            let object = Part::Object(ObjectCall { fields, ..ObjectCall::default() });
            let (start, end) = ("<tool_call>\n", "\n</tool_call>");
            let patterns = vec![Pattern::new(vec![text(start), object, text(end)])];
            analysis.dialect.calls = Some(Calls { patterns, parallel: true, ..Calls::default() });
            analysis.told = Some(Example::json(start, end));
            analysis.triggers = names::triggers(&analysis.dialect);
            analysis.preserved.extend([start.trim().to_owned(), end.trim().to_owned()]);
        }
        if place == ToolsIn::System {
            analysis.call_shown = analysis.shown_call(template).unwrap_or_default();
        }
        analysis
    }

    /// Returns the description of a call, with an example as the model is to write it.
    fn shown_call(&self, template: &ChatTemplate) -> Option<String> {
        let call = self.call_of_needles(template).or_else(|| self.call_of_dialect())?;
        let pattern = self.dialect.calls.as_ref().and_then(|calls| calls.patterns.first());
        let parts = pattern.map_or(&[][..], |pattern| &pattern.parts);
        let in_json = parts.iter().any(|part| matches!(part, Part::Object(_)));
        let placeholders = if in_json { &IN_JSON[..] } else { &ELSEWHERE[..] };
        let shown = placeholders.iter().fold(call, |text, (needle, shown)| text.replace(needle, shown));
        Some(format!("{}{shown}", tags_around(parts).unwrap_or_else(|| EACH.to_owned())))
    }

    /// A call with needles in the syntax of the dialect, for a template that renders none where it could be seen.
    fn call_of_dialect(&self) -> Option<String> {
        let calls = self.dialect.calls.as_ref()?;
        let mut text = calls.section.start.clone();
        text.push_str(if calls.list { "[" } else { "" });
        for part in &calls.patterns.first()?.parts {
            match part {
                Part::Text(written) => text.push_str(written),
                Part::Name => text.push_str(NAME),
                Part::Id => text.push_str("call00001"),
                Part::Index => text.push('0'),
                Part::Anything | Part::WholeId => {}
                Part::Arguments(Arguments::Json) => text.push_str(&to_spaced_json(&json!({ARGUMENT: VALUE}))),
                Part::Arguments(Arguments::Keywords(style)) => {
                    let quote = &style.quotes.first()?.mark;
                    text.extend([ARGUMENT, "=", quote, VALUE, quote]);
                }
                Part::Object(object) if object.beside.is_empty() && !object.text && !object.python => {
                    let fields = object.fields.iter().map(|field| match field {
                        Field::Name(key) => (key, json!(NAME)),
                        Field::Arguments(key) => (key, json!({ARGUMENT: VALUE})),
                        Field::Id(key) => (key, json!("call00001")),
                        Field::Constant(key, value) => (key, json!(value)),
                    });
                    let fields = fields.map(|(key, value)| format!("{}: {}", json!(key), to_spaced_json(&value)));
                    let fields = fields.collect::<Vec<_>>().join(", ");
                    text.extend(["{", &fields, "}"]);
                }
                Part::Arguments(_) | Part::Object(_) | Part::NameAsKey => return None,
            }
        }
        text.push_str(if calls.list { "]" } else { "" });
        Some(text + &calls.section.end)
    }

    /// A call as the template renders it, with needles, which no template escapes.
    fn call_of_needles(&self, template: &ChatTemplate) -> Option<String> {
        let call = json!({"id": "call00001", "type": "function",
            "function": {"name": NAME, "arguments": {ARGUMENT: VALUE}}});
        if let Some(example) = &self.told {
            return Some(example.write(&[call], &OwnMarks::default()));
        }
        let asked = json!({"role": "user", "content": "ASKED"});
        let rendered = |message: Value| {
            let messages = [asked.clone(), self.shape_message(&message)];
            let options = with_usual_variables(RenderOptions::default(), None);
            let messages = Data::from(&Value::from(messages.to_vec()));
            Some(template.render_growing(&messages, None, &options).ok()?.text().to_owned())
        };
        let said = rendered(json!({"role": "assistant", "content": "SAID"}))?;
        let called = ["", "SAID"].into_iter().find_map(|content| {
            let text = rendered(json!({"role": "assistant", "content": content, "tool_calls": [call]}))?;
            text.contains(ARGUMENT).then_some(text)
        })?;
        // A template may say what begins a call before any message.
        let asked = called.rfind("ASKED")? + "ASKED".len();
        let called = &called[asked..];
        let from = self.triggers.iter().filter_map(|trigger| called.find(trigger.trim())).min();
        let end = said.rsplit("SAID").next().unwrap_or_default().trim();
        let text = called[from?..].trim_end();
        Some(text.strip_suffix(end).unwrap_or(text).trim_end().to_owned())
    }

    /// Messages and tools as the template receives them. If the system message describes the tools, that description is
    /// added to it, inside marks.
    pub(super) fn tell(
        &self,
        messages: &[Value],
        tools: Option<&Value>,
        marks: &OwnMarks,
    ) -> (Vec<Value>, Option<Value>) {
        let tools = tools.map(shaped::wrap_tools).map(super::tool_fields::without_nulls);
        let mut messages = messages.to_vec();
        calls_as_functions(&mut messages);
        if self.told.is_some() && self.tools_in != ToolsIn::Template {
            messages = with_results_of_users(messages, marks);
        }
        if self.tools_in != ToolsIn::System {
            return (messages, tools);
        }
        let Some(list) = tools.as_ref().and_then(Value::as_array).filter(|list| !list.is_empty()) else {
            return (messages, None);
        };
        let mut text = marks.wrap(BEFORE);
        for tool in list {
            text.push_str(&to_spaced_json(tool));
            text.push('\n');
        }
        text.push_str(&marks.wrap(&format!("{AFTER}{}", self.call_shown)));
        self.add_to_system(&mut messages, &text);
        (messages, None)
    }

    /// Adds a text to the end of the system message of a conversation. If there is none, a new one is added, or the
    /// text goes before the first user message if the template has no system messages.
    pub fn add_to_system(&self, messages: &mut Vec<Value>, text: &str) {
        let is_system = |message: &Value| matches!(message["role"].as_str(), Some("system" | "developer"));
        let first = messages.first_mut();
        match first {
            Some(first) if is_system(first) => join(first, text, false),
            Some(first) if !self.capabilities.system_role && first["role"] == "user" => join(first, text, true),
            _ => messages.insert(0, json!({"role": "system", "content": text})),
        }
    }
}

/// Returns the description of calls that are objects in JSON between two tags.
fn tags_around(parts: &[Part]) -> Option<String> {
    let [Part::Text(start), Part::Object(_), Part::Text(end)] = parts else { return None };
    let (start, end) = (start.trim(), end.trim());
    let name = start.strip_prefix('<')?.strip_suffix('>')?;
    (end.strip_prefix("</")?.strip_suffix('>')? == name).then(|| {
        format!(
            "For each function call, return a json object with function name and arguments within {start}{end} XML \
             tags:\n"
        )
    })
}

/// A text after the content of a message, or before it, with an empty line between.
fn join(message: &mut Value, text: &str, before: bool) {
    match &mut message["content"] {
        Value::Array(parts) => {
            let at = if before { 0 } else { parts.len() };
            parts.insert(
                at,
                json!({"type": "text", "text": if before { format!("{text}\n\n") } else { format!("\n\n{text}") }}),
            );
        }
        content => {
            let given = content.as_str().unwrap_or_default();
            let (first, second) = if before { (text, given) } else { (given, text) };
            let between = if first.is_empty() || second.is_empty() { "" } else { "\n\n" };
            *content = format!("{first}{between}{second}").into();
        }
    }
}

/// Returns tool results as user messages, because a template that renders no calls has no place for results.
fn with_results_of_users(messages: Vec<Value>, marks: &OwnMarks) -> Vec<Value> {
    let mut given: Vec<Value> = Vec::new();
    let mut was_result = false;
    for message in messages {
        let is_result = message["role"] == "tool";
        if is_result {
            let (begin, end) = (marks.wrap("<tool_response>\n"), marks.wrap("\n</tool_response>"));
            let text = format!("{begin}{}{end}", text_of(&message["content"]));
            match given.last_mut().filter(|_| was_result) {
                Some(last) => last["content"] = format!("{}\n{text}", text_of(&last["content"])).into(),
                None => given.push(json!({"role": "user", "content": text})),
            }
        } else {
            given.push(message);
        }
        was_result = is_result;
    }
    given
}

/// The text of a content.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text").unwrap_or(part).as_str()).collect(),
        other => other.to_string(),
    }
}
