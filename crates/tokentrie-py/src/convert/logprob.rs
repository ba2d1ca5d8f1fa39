//! How probable tokens were, as Python sees it.

use crate::convert::pickled::pickled;
use pyo3::prelude::*;

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
    fn __repr__(&self) -> String {
        format!("TokenLogprob(token={}, logprob={}, top={:?})", self.token, self.logprob, self.top)
    }
}

pickled!(TokenLogprob { token, logprob, top });
