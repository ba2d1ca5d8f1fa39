//! Arguments of a chat, from Python; and the check of a receipt against a reply.

use crate::call::begun;
use crate::chat::format::{ChatFormat, tool_choice};
use crate::chat::messages::messages;
use crate::chat::tools::Tools;
use crate::convert::data::objects_of_json;
use crate::convert::gil::{asked, made_in};
use crate::convert::options::Options;
use crate::errors::{Error, Result};
use crate::rule::of_user::UserRule;
use crate::spec::object::Constraint;
use crate::spec::payloads::Cache;
use crate::spec::receipt::{data, key_of, read_once, read_receipt};
use crate::spec::{Around, as_object};
use crate::vocab::Vocab;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::sync::Arc;
use tokentrie::call::{Call, CallOptions, read_options};
use tokentrie::chat::{ChatOptions, ChatRequest, ShownSchema, only_span};
use tokentrie::constraint::Over;
use trie_core::work::Limits;

/// Constraints on a reply that are not data in Python.
pub(crate) struct Asked<'a, 'py> {
    pub(crate) messages: &'a Bound<'py, PyAny>,
    pub(crate) tools: Option<&'a Bound<'py, PyAny>>,
    pub(crate) tool_choice: Option<&'a Bound<'py, PyAny>>,
    pub(crate) constraint: Option<&'a Bound<'py, PyAny>>,
    pub(crate) template_variables: Option<&'a Bound<'py, PyDict>>,
}

/// The same as the library takes it.
pub(crate) struct Taken<'py> {
    pub(crate) request: ChatRequest,
    pub(crate) tools: Py<Tools>,
    /// Constraint on the content.
    pub(crate) held: Option<Bound<'py, PyAny>>,
}

/// The schema of a constraint, if it is one. Of other kinds nothing is read.
fn schema_shown(held: &Bound<'_, PyAny>) -> Option<ShownSchema> {
    ShownSchema::from_spec(held.cast::<Constraint>().ok()?.get().compiled()?.spec())
}

impl<'py> Asked<'_, 'py> {
    /// # Errors
    /// As `Model.chat`, of what is wrong in itself.
    pub(crate) fn taken(
        &self,
        py: Python<'py>,
        call: &Call,
        options: ChatOptions,
        format: &ChatFormat,
        around: &Around<'_>,
    ) -> Result<Taken<'py>> {
        let (messages, tools) = made_in(py, call, || {
            let messages = messages(self.messages, format.core().template().text())?;
            Ok((messages, Tools::of_optional(py, self.tools)?))
        })?;
        let offered = tools.get();
        let (show_schema, receipt) = (options.show_schema, options.receipt);
        let (held, content) = made_in(py, call, || {
            let mut held = self.constraint.map(as_object).transpose()?;
            if receipt {
                held = held.map(read_once).transpose()?;
            }
            let content = held.as_ref().map(|held| {
                let spans = crate::spec::constraint("constraint", held, around)?;
                only_span(&spans).map_err(Error::from)
            });
            Ok((held.clone(), content.transpose()?))
        })?;
        let choice = tool_choice(self.tool_choice, Some(&offered.names()))?;
        let options = ChatOptions { tool_choice: (&choice).into(), ..options };
        let definitions = Some(Arc::clone(offered.definitions()));
        let mut request = options.request(messages, offered.core().clone(), definitions)?;
        request.prompt.render = crate::chat::template::options(true, None, self.template_variables)?;
        request.shown = held.as_ref().filter(|_| show_schema).and_then(schema_shown);
        request.reply.content = content;
        let known = held.as_ref().filter(|_| receipt);
        request.reply.content_fingerprint = known.and_then(|held| data(Some(held))?.fingerprint());
        Ok(Taken { request, tools, held })
    }
}

#[pymethods]
impl ChatFormat {
    /// The messages as `Model.chat` renders them where it shows the schema of a constraint.
    fn _with_schema<'py>(
        &self,
        given: &Bound<'py, PyAny>,
        constraint: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let mut messages = messages(given, self.core().template().text())?;
        let schema = schema_shown(&as_object(constraint)?);
        if let Some(Ok(text)) = schema.as_ref().map(ShownSchema::text) {
            self.core().analysis().add_to_system(&mut messages, text);
        }
        Ok(objects_of_json(given.py(), Value::Array(messages))?)
    }

    /// Implements `verify_chat_receipt` of Python.
    #[pyo3(signature = (
        receipt, messages, tools, tool_choice, *, vocab, key, constraint, template_variables, **options
    ), text_signature = "($self, receipt, messages, tools, tool_choice, **options)")]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments that are not data in Python")]
    fn _verify_receipt<'py>(
        &self,
        py: Python<'py>,
        receipt: &Bound<'py, PyAny>,
        messages: &Bound<'py, PyAny>,
        tools: Option<&Bound<'py, PyAny>>,
        tool_choice: Option<&Bound<'py, PyAny>>,
        vocab: Option<&Bound<'py, Vocab>>,
        key: Option<&Bound<'py, PyAny>>,
        constraint: Option<&Bound<'py, PyAny>>,
        template_variables: Option<&Bound<'py, PyDict>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<()> {
        let key = key_of(key)?;
        let receipt = read_receipt(receipt)?;
        let Some(vocab) = vocab.cloned().or_else(|| self.vocab(py)) else {
            let message = "vocab is not given, and the format knows none: give the model's, such as Model.vocab";
            return Err(PyTypeError::new_err(message).into());
        };
        let vocab = vocab.get().core();
        let around = Around { over: Over::vocab(vocab), sets: None, cache: Cache::Thread };
        let asks = Asked { messages, tools, tool_choice, constraint, template_variables };
        let options = Options::read(py, "verify_chat_receipt", options, &[], read_options::<ChatOptions>)?.data;
        let options = ChatOptions { receipt: true, ..options };
        let call = begun(None, CallOptions::default())?;
        let request = asks.taken(py, &call, options, self, &around)?.request;
        let over = self.over_vocab(py, vocab)?;
        let checked =
            asked(py, Limits::NONE, || Ok::<_, Error>(request.ready(&over)?.check_receipt(&receipt, key.as_deref())))?;
        UserRule::raised()?;
        Ok(checked??)
    }
}
