//! Prompts from Python: text or token ids.

use crate::convert::ids::{shown, tokens, type_name};
use crate::errors::Result;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};
use trie_text::Prompt;

/// # Errors
/// `TypeError` for what is neither, `VocabularyError` for integers that are no token id.
pub(crate) fn read(prompt: &Bound<'_, PyAny>) -> Result<Prompt> {
    match prompt.cast::<PyString>() {
        Ok(text) => Ok(Prompt::Text(text.to_str()?.to_owned())),
        Err(_) => match meant(prompt) {
            Some(message) => Err(PyTypeError::new_err(message).into()),
            None => Ok(Prompt::Tokens(tokens(prompt, "prompt, ")?)),
        },
    }
}

/// Returns advice for a value that is not a prompt, and the parameter for it; `None` if unknown.
fn meant(given: &Bound<'_, PyAny>) -> Option<String> {
    let missing = given.is_none() || given.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    if missing || type_name(given) == "NAType" {
        return Some(format!("the prompt is missing ({}): it must be a str or token ids", shown(given)));
    }
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        return None;
    }
    let first = given.get_item(0).ok()?;
    let is_message = first.cast::<PyDict>().is_ok_and(|dict| dict.contains("role").unwrap_or(false));
    if is_message || type_name(&first) == "Message" {
        Some(
            "prompt must be a str or token ids, not the messages of a chat: give them to Model.chat, or \
             Model.chat_prompt(messages)"
                .to_owned(),
        )
    } else if first.is_instance_of::<PyString>() {
        Some(
            "prompt must be a str or token ids, not several prompts: Model.choose_many and Model.decide_many take \
             those; else call it for each"
                .to_owned(),
        )
    } else {
        None
    }
}
