//! What a caller may hand over as a prompt: text or token ids.

use crate::convert::ids::tokens;
use crate::errors::Result;
use pyo3::prelude::*;
use pyo3::types::PyString;
use trie_text::Prompt;

/// # Errors
/// `TypeError` for what is neither, `VocabularyError` for integers that are no token id.
pub(crate) fn read(prompt: &Bound<'_, PyAny>) -> Result<Prompt> {
    match prompt.cast::<PyString>() {
        Ok(text) => Ok(Prompt::Text(text.to_str()?.to_owned())),
        Err(_) => Ok(Prompt::Tokens(tokens(prompt, "prompt, ")?)),
    }
}
