//! Replies of chats, their events and prompts as results.

use crate::convert::results::result;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use tokentrie::chat::{Event, Message, TracedText};

/// Returns a message that was read from text as a `Message`.
///
/// # Errors
/// What Python raises.
pub(crate) fn message_result(py: Python<'_>, message: Message) -> PyResult<Bound<'_, PyAny>> {
    result("Message", message_fields(py, message, Vec::new())?)
}

/// Probabilities of the name of a call, and of its arguments by their names.
pub(crate) type CallShares = (Option<f64>, Vec<(String, f64)>);

/// The fields of a `Message`, with the probabilities of each call, where they are known: that of its name, and those of
/// arguments by their names. All else is as nobody said anything of it.
///
/// # Errors
/// What Python raises.
pub(crate) fn message_fields(py: Python<'_>, message: Message, shares: Vec<CallShares>) -> PyResult<Bound<'_, PyDict>> {
    let Message { content, reasoning, tool_calls, warnings, .. } = message;
    let mut shares = shares.into_iter();
    let calls = tool_calls.into_iter().map(|call| {
        let (name, values) = shares.next().unwrap_or_default();
        let fields = PyDict::new(py);
        fields.set_item("id", call.id)?;
        fields.set_item("name", call.name)?;
        fields.set_item("arguments", call.arguments)?;
        fields.set_item("kind", call.kind.name())?;
        fields.set_item("probability", name)?;
        fields.set_item("probabilities", values.into_py_dict(py)?)?;
        Ok(fields)
    });
    let (all, none) = (PyDict::new(py), py.None());
    all.set_item("content", content)?;
    all.set_item("reasoning", reasoning)?;
    all.set_item("tool_calls", calls.collect::<PyResult<Vec<_>>>()?)?;
    all.set_item("warnings", warnings)?;
    for name in ["finish", "stop_text", "stats", "parsed", "invalid", "receipt"] {
        all.set_item(name, &none)?;
    }
    all.set_item("completed", false)?;
    all.set_item("logprobs", Vec::<u32>::new())?;
    Ok(all)
}

/// Returns an event of a reply as a `ChatEvent`.
///
/// # Errors
/// What Python raises.
pub(crate) fn event_result<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyAny>> {
    let (kind, text, index, id, name) = match event {
        Event::Reasoning(text) => ("reasoning", text.as_str(), None, "", ""),
        Event::Content(text) => ("content", text.as_str(), None, "", ""),
        Event::CallBegins { index, id, name, .. } => ("call_begins", "", Some(index), id.as_str(), name.as_str()),
        Event::Arguments { index, text } => ("arguments", text.as_str(), Some(index), "", ""),
        Event::CallEnds { index, id } => ("call_ends", "", Some(index), id.as_str(), ""),
        Event::Warning(text) => ("warning", text.as_str(), None, "", ""),
        _ => ("message_ends", "", None, "", ""),
    };
    let tool = if let Event::CallBegins { kind, .. } = event { kind.name() } else { "" };
    let all = PyDict::new(py);
    all.set_item("kind", kind)?;
    all.set_item("tool", tool)?;
    all.set_item("text", text)?;
    all.set_item("index", index)?;
    all.set_item("id", id)?;
    all.set_item("name", name)?;
    result("ChatEvent", all)
}

/// Returns events as a list of `ChatEvent`.
///
/// # Errors
/// What Python raises.
pub(crate) fn event_results<'py>(py: Python<'py>, events: &[Event]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    events.iter().map(|event| event_result(py, event)).collect()
}

/// Events of one portion, those that go on with the one before put together.
pub(crate) fn merged(events: Vec<Event>) -> Vec<Event> {
    let mut merged: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        match (merged.last_mut(), &event) {
            (Some(Event::Reasoning(last)), Event::Reasoning(more))
            | (Some(Event::Content(last)), Event::Content(more)) => last.push_str(more),
            (Some(Event::Arguments { index, text: last }), Event::Arguments { index: of, text: more })
                if index == of =>
            {
                last.push_str(more);
            }
            _ => merged.push(event),
        }
    }
    merged
}

/// Returns a prompt whose last bytes, from `begins` on, begin the reply's turn, as a `ChatPrompt`.
///
/// # Errors
/// What Python raises.
pub(crate) fn prompt_result(py: Python<'_>, traced: TracedText, begins: usize) -> PyResult<Bound<'_, PyAny>> {
    let all = PyDict::new(py);
    all.set_item("parts", traced.parts())?;
    all.set_item("generation_prompt", &traced.text()[begins..])?;
    all.set_item("text", traced.into_text())?;
    result("ChatPrompt", all)
}
