//! A reply that is read as it comes.

use crate::chat::message::{event_results, merged, message_result};
use crate::convert::gil::{asked, locked, released};
use crate::convert::ids::{self, type_name};
use crate::convert::strings::text_bytes;
use crate::errors::{Class, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::sync::Mutex;
use tokentrie::chat::{Event, Message};
use tokentrie::chat::{PartError, ReplyParser};
use trie_core::TokenId;
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
#[pyclass(frozen, module = "tokentrie.chat")]
pub(crate) struct ChatParser(Mutex<Reading>);

enum Reading {
    On(Box<ReplyParser>),
    Over(Box<(Message, Vec<Event>)>),
    /// Only while it is being finished.
    Nothing,
}

/// A reply, or a part of one, as it is given.
pub(crate) enum ReplyPart {
    Text(Vec<u8>),
    Tokens(Vec<TokenId>),
}

impl ReplyPart {
    /// # Errors
    /// `TypeError` for what is neither text nor token ids.
    pub(crate) fn of(what: &str, given: &Bound<'_, PyAny>) -> Result<Self> {
        if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
            return Ok(Self::Text(text_bytes(what, given)?));
        }
        if given.try_iter().is_err() {
            let message = format!("{what} must be str or bytes or token ids, not {}", type_name(given));
            return Err(PyTypeError::new_err(message).into());
        }
        Ok(Self::Tokens(ids::tokens(given, &format!("{what}, "))?))
    }

    /// # Errors
    /// As [`ReplyParser::push_text`] and [`ReplyParser::push_tokens`].
    pub(crate) fn push(&self, parser: &mut ReplyParser) -> std::result::Result<Vec<Event>, PartError> {
        match self {
            Self::Text(text) => parser.push_text(text),
            Self::Tokens(tokens) => parser.push_tokens(tokens),
        }
    }
}

impl ChatParser {
    pub(crate) fn of(parser: ReplyParser) -> Self {
        Self(Mutex::new(Reading::On(Box::new(parser))))
    }
}

#[pymethods]
impl ChatParser {
    /// Reads more of the reply.
    ///
    /// Args:
    ///     part: str or bytes, where a character may be cut in two; or token ids, where the format has a vocabulary.
    ///         One reply is all text or all tokens. Where a marker of reasoning is a control token, text that spells it
    ///         is text then, as it is for `ChatFormat.constraint`; a token that ends generation ends the reply.
    ///
    /// Returns:
    ///     list[ChatEvent]: what became certain with it.
    ///
    /// Raises:
    ///     OptionError: the reply is finished, as it is after a push that Ctrl-C ended; token ids after text, or text
    ///         after token ids; token ids, and the format has no vocabulary.
    ///     VocabularyError: the vocabulary has no such token; nothing is read.
    ///     TypeError: it is neither str nor bytes nor token ids.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> model.chat_format.parser().push(b"Ding")
    ///     [ChatEvent("content", "Ding")]
    ///     >>> model.chat_format.parser().push(model.vocab.tokenize("Ding"))
    ///     [ChatEvent("content", "Ding")]
    fn push<'py>(&self, part: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
        let (py, part) = (part.py(), ReplyPart::of("part", part)?);
        let mut reading = locked(py, &self.0)?;
        let Reading::On(parser) = &mut *reading else {
            return Err(Class::Option.error("the reply is finished: make a new parser for the next one"));
        };
        let read = asked(py, Limits::NONE, || part.push(parser));
        if !matches!(
            &read,
            Ok(Ok(_) | Err(PartError::Mixed { .. } | PartError::NoVocabulary | PartError::Outside { .. }))
        ) {
            // What was read of the part is unknown to the caller: nothing can follow it.
            *reading = Reading::Over(Box::new((parser.message().clone(), Vec::new())));
        }
        Ok(event_results(py, &merged(read??))?)
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
        Ok(format!("<tokentrie.chat.ChatParser: {}>", if over { "finished" } else { "reading" }))
    }
}
