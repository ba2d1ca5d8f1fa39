//! How probable tokens were, as Python sees it.

use crate::convert::pickled::pickled;
use crate::errors::{Class, Result};
use crate::vocab::Vocab;
use pyo3::prelude::*;
use trie_core::TokenId;

/// How probable a token was among those that could come, before temperature and truncation; weights of a set count.
///
/// Example:
///     >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"], logprobs=2)
///     >>> [one.token for one in out.logprobs] == out.tokens
///     True
#[pyclass(frozen, get_all, from_py_object, module = "tokentrie")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenLogprob {
    /// int: the token.
    pub(crate) token: u32,
    /// float: the natural logarithm of its probability: 0.0 where no other text could come.
    pub(crate) logprob: f32,
    /// list[tuple[int, float]]: the most probable tokens with theirs, best first; of equals the lower id first.
    pub(crate) top: Vec<(u32, f32)>,
}

#[cfg(feature = "llama")]
impl From<llama_sampler::TokenLogprob> for TokenLogprob {
    fn from(known: llama_sampler::TokenLogprob) -> Self {
        let top = known.top.into_iter().map(|(token, logprob)| (token.get(), logprob)).collect();
        Self { token: known.token.get(), logprob: known.logprob, top }
    }
}

#[pymethods]
impl TokenLogprob {
    /// `top` with texts in place of ids.
    ///
    /// Args:
    ///     vocab: the Vocab that the ids are of, such as `model.vocab`.
    ///
    /// Returns:
    ///     list[tuple[str, float]], best first. Bytes of a token that are no whole characters are shown as U+FFFD, so
    ///     two tokens may have one text.
    ///
    /// Raises:
    ///     VocabularyError: the vocabulary does not have an id.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> known = model.generate("Is it on? ", ["yes", "no"], logprobs=2).logprobs[0]
    ///     >>> [logprob for text, logprob in known.texts(model.vocab)] == [logprob for token, logprob in known.top]
    ///     True
    fn texts(&self, vocab: &Bound<'_, Vocab>) -> Result<Vec<(String, f32)>> {
        let vocab = vocab.get().core();
        let text = |&(token, logprob): &(u32, f32)| {
            let piece = TokenId::new(token).and_then(|token| vocab.piece(token)).ok_or_else(|| {
                let message = format!("token id {token} is outside the vocabulary of {} tokens", vocab.len());
                Class::Vocabulary.error(message)
            })?;
            Ok((String::from_utf8_lossy(piece).into_owned(), logprob))
        };
        self.top.iter().map(text).collect()
    }

    fn __repr__(&self) -> String {
        format!("TokenLogprob(token={}, logprob={}, top={:?})", self.token, self.logprob, self.top)
    }
}

pickled!(TokenLogprob { token, logprob, top });
