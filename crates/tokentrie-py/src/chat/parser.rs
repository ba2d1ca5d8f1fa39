//! A reply that is read as it comes.

use crate::chat::message::{event_results, merged, message_result};
use crate::convert::gil::{asked, locked, released};
use crate::convert::strings::text_bytes;
use crate::errors::{Class, Result};
use chat_format::{Event, Message};
use pyo3::prelude::*;
use std::sync::Mutex;
use trie_core::work::Limits;

/// Reads a reply as it comes, in parts of any size; from `ChatFormat.parser`.
///
/// Nothing is taken back: what may still become a marker is held until it is certain, and all events together are the
/// message. Cost: O(bytes).
///
/// Example:
///     >>> parser = tokentrie.Model().chat_format.parser()
///     >>> parser.push('Ding.<tool_call>\n{"name": "ri')
///     [ChatEvent("content", "Ding.")]
///     >>> parser.push('ng", "arguments": {}}\n</tool_call>')[0]
///     ChatEvent("call_begins", index=0, name="ring")
///     >>> parser.finish().tool_calls[0].arguments
///     '{}'
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct ChatParser(Mutex<Reading>);

enum Reading {
    On(Box<chat_format::Parser>),
    Over(Box<(Message, Vec<Event>)>),
    /// Only while it is being finished.
    Nothing,
}

impl ChatParser {
    pub(crate) fn of(parser: chat_format::Parser) -> Self {
        Self(Mutex::new(Reading::On(Box::new(parser))))
    }
}

#[pymethods]
impl ChatParser {
    /// Reads more of the reply.
    ///
    /// Args:
    ///     part: str or bytes; a character may be cut in two.
    ///
    /// Returns:
    ///     list[ChatEvent]: what became certain with it.
    ///
    /// Raises:
    ///     OptionError: the reply is finished, as it is after a push that Ctrl-C ended.
    ///     TypeError: it is neither str nor bytes.
    ///
    /// Example:
    ///     >>> tokentrie.Model().chat_format.parser().push(b"Ding")
    ///     [ChatEvent("content", "Ding")]
    fn push<'py>(&self, part: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
        let (py, bytes) = (part.py(), text_bytes("part", part)?);
        let mut reading = locked(py, &self.0)?;
        let Reading::On(parser) = &mut *reading else {
            return Err(Class::Option.error("the reply is finished: make a new parser for the next one"));
        };
        let read = asked(py, Limits::NONE, || parser.push_long(&bytes))
            .and_then(|read| read.map(merged).map_err(|over| Class::Base.error(over.to_string())));
        if read.is_err() {
            // What was read of the part is unknown to the caller: nothing can follow it.
            *reading = Reading::Over(Box::new((parser.message().clone(), Vec::new())));
        }
        Ok(event_results(py, &read?)?)
    }

    /// Says that the reply is over. May be repeated.
    ///
    /// Args:
    ///     partial: it was cut off: what may have become a marker is left out.
    ///
    /// Returns:
    ///     Message. The last events are in `last_events`.
    ///
    /// Example:
    ///     >>> parser = tokentrie.Model().chat_format.parser()
    ///     >>> events = parser.push("Ding<tool")
    ///     >>> parser.finish(partial=True).content
    ///     'Ding'
    #[pyo3(signature = (partial=false))]
    fn finish<'py>(&self, py: Python<'py>, partial: bool) -> Result<Bound<'py, PyAny>> {
        let mut reading = locked(py, &self.0)?;
        if let Reading::On(_) = &*reading
            && let Reading::On(parser) = std::mem::replace(&mut *reading, Reading::Nothing)
        {
            let (events, message) = released(py, || parser.finish(partial));
            *reading = Reading::Over(Box::new((message, merged(events))));
        }
        let message = match &*reading {
            Reading::Over(over) => over.0.clone(),
            _ => Message::default(),
        };
        drop(reading);
        Ok(message_result(py, message)?)
    }

    /// Message: what is certain of it so far.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let message = match &*locked(py, &self.0)? {
            Reading::On(parser) => parser.message().clone(),
            Reading::Over(over) => over.0.clone(),
            Reading::Nothing => Message::default(),
        };
        Ok(message_result(py, message)?)
    }

    /// list[ChatEvent]: what became certain when the reply was over; [] before.
    #[getter]
    fn last_events<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        let events = match &*locked(py, &self.0)? {
            Reading::Over(over) => over.1.clone(),
            _ => Vec::new(),
        };
        Ok(event_results(py, &events)?)
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        let over = matches!(&*locked(py, &self.0)?, Reading::Over(_));
        Ok(format!("<tokentrie.ChatParser: {}>", if over { "finished" } else { "reading" }))
    }
}
