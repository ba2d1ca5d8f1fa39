//! Messages with calls, as a template takes them.

use super::example::Example;
use crate::analysis::own_marks::OwnMarks;
use crate::analysis::probe::{Ask, Probe};
use crate::analysis::text::common_suffix;
use serde_json::{Value, json};

/// Shape of messages with calls that the template accepts.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    /// Arguments as JSON text.
    pub(super) text: bool,
    /// True if the template prints arguments as Python does.
    pub(super) printed: bool,
    pub(super) content: Value,
    /// Beginning of results, if the template requires one for each call right after them.
    pub(super) answered: Option<String>,
    /// Writer of calls that replaces the template, and the end of the turn after them.
    pub(super) example: Option<(Example, String)>,
}

impl Shape {
    /// The message with these calls.
    pub(super) fn message(&self, calls: Vec<Value>) -> Value {
        let mut calls = calls;
        if self.text {
            for call in &mut calls {
                let arguments = &mut call["function"]["arguments"];
                *arguments = Value::String(arguments.to_string());
            }
        }
        json!({"role": "assistant", "content": self.content, "tool_calls": calls})
    }

    /// Renders calls, and returns the text after the user's text.
    pub(super) fn render(&self, probe: &Probe, calls: Vec<Value>) -> Option<String> {
        if let Some((example, end)) = &self.example {
            return Some(example.write(&calls, &OwnMarks::default()) + end);
        }
        let many = calls.len();
        let mut messages = vec![probe.user(), self.message(calls)];
        let Some(answer) = &self.answered else { return render_messages(probe, messages) };
        messages.extend((0..many).map(|number| result(probe, number)));
        let mut text = render_messages(probe, messages)?;
        let end = text.find(&result_text(probe, 0))?;
        text.truncate(text[..end].rfind(answer.as_str())?);
        Some(text)
    }

    /// Returns the text before the first of two results, and before the second: the beginning of results.
    pub(super) fn answer(&self, probe: &Probe) -> Option<String> {
        let call = |number: usize| probe.call(number, json!({&probe.needles.keys[0]: &probe.needles.values[number]}));
        let calls = self.message(vec![call(0), call(1)]);
        let text = render_messages(probe, vec![probe.user(), calls, result(probe, 0), result(probe, 1)])?;
        let (before, rest) = text.split_once(&result_text(probe, 0))?;
        let begin = common_suffix(before, rest.split_once(&result_text(probe, 1))?.0);
        // Where the name or the id of the call is told, what is before that begins it.
        let begin = begin.trim_start();
        (!begin.is_empty()).then(|| begin.to_owned())
    }
}

/// Renders messages, and returns the text after the user's text.
fn render_messages(probe: &Probe, messages: Vec<Value>) -> Option<String> {
    let ask = Ask::new(messages);
    let text = probe.render(&ask.clone().with_tools()).or_else(|| probe.render(&ask))?;
    probe.after_user(&text).map(str::to_owned)
}

/// Returns the result of a tool.
fn result_text(probe: &Probe, number: usize) -> String {
    format!("{}gives{number}", probe.needles.stem)
}

fn result(probe: &Probe, number: usize) -> Value {
    let needles = &probe.needles;
    let (id, name) = (&needles.ids[number], &needles.names[number]);
    json!({"role": "tool", "tool_call_id": id, "name": name, "content": result_text(probe, number)})
}
