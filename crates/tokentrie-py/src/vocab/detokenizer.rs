//! Text that grows token by token.

use crate::convert::ids::{OneOrMany, one_or_many};
use crate::errors::Result;
use crate::vocab::Vocab;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Gives the text of tokens as they come, in whole characters: what it gave is never taken back.
///
/// All texts together are the text of all tokens, as `Generated.text`: bytes that are no UTF-8 become U+FFFD.
///
/// Args:
///     vocab: the vocabulary.
///
/// Example:
///     >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"\xc3", b"\xa4b"])
///     >>> text = tokentrie.streaming.Detokenizer(vocab)
///     >>> [text.push(0), text.push(1), text.push(2), text.finish()]
///     ['a', '', 'äb', '']
#[pyclass(frozen, module = "tokentrie.streaming")]
pub(crate) struct Detokenizer(Mutex<trie_text::Detokenizer>);

#[pymethods]
impl Detokenizer {
    #[new]
    fn new(vocab: &Vocab) -> Self {
        Self(Mutex::new(trie_text::Detokenizer::new(std::sync::Arc::clone(vocab.core()))))
    }

    /// The text that the next tokens complete; "" where a character is only begun. Cost: O(bytes of the tokens).
    ///
    /// Args:
    ///     tokens: a token id, a list of them, or an integer array of one dimension.
    ///
    /// Returns:
    ///     str.
    ///
    /// Raises:
    ///     VocabularyError: the vocabulary does not have a token; those before it are taken.
    ///     TypeError: something is not an integer.
    ///
    /// Example:
    ///     >>> text = tokentrie.streaming.Detokenizer(tokentrie.Vocab.from_tokens([b"a", b"b"]))
    ///     >>> text.push([0, 1])
    ///     'ab'
    #[pyo3(signature = (tokens, /))]
    fn push(&self, tokens: &Bound<'_, PyAny>) -> Result<String> {
        let tokens = one_or_many(tokens)?;
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tokens {
            OneOrMany::One(token) => Ok(text.push(token)?),
            OneOrMany::Many(tokens) => {
                Ok(tokens.into_iter().map(|token| text.push(token)).collect::<Result<_, _>>()?)
            }
        }
    }

    fn __repr__(&self) -> String {
        let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner).pending_bytes();
        format!("<tokentrie.streaming.Detokenizer: {begun} bytes of a character begun>")
    }

    /// Returns the rest at the end: U+FFFD for a character that was not completed. The next token begins anew.
    ///
    /// Returns:
    ///     str.
    ///
    /// Example:
    ///     >>> text = tokentrie.streaming.Detokenizer(tokentrie.Vocab.from_tokens([b"\xc3"]))
    ///     >>> [text.push(0), text.finish()]
    ///     ['', '\ufffd']
    fn finish(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).finish()
    }
}
