//! What a generation gives back, and what its observer sees.

use crate::convert::generic::generic;
use crate::convert::html::html;
use crate::convert::logprob::TokenLogprob;
use crate::convert::pickled::pickled;
use crate::convert::value::Value;
use crate::exit::module;
#[cfg(feature = "llama")]
use crate::model::meaning::Meaning;
use crate::trie::leaf::Leaf;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict};
#[cfg(feature = "llama")]
use trie_core::TokenId;

/// What `Model.generate` returns.
///
/// Example:
///     >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"])
///     >>> (out.leaf.name == out.text, out.finish)
///     (True, 'span')
#[pyclass(frozen, module = "tokentrie")]
#[derive(Debug, PartialEq)]
pub(crate) struct Generated {
    /// str: the generated text, so that the prompt and this are the whole text. What the set takes back of the
    /// prompt is not in it. Bytes that are no UTF-8 became U+FFFD.
    #[pyo3(get)]
    text: String,
    /// list[int]: the generated tokens, end tokens of the span included, end of generation excluded. They follow
    /// the prompt's tokens without the last ones, whose `stats.healed_bytes` bytes they begin with.
    #[pyo3(get)]
    tokens: Vec<u32>,
    /// Leaf | None: the value, if the span was completed; of a Sequence the last.
    #[pyo3(get)]
    leaf: Option<Leaf>,
    /// list[Leaf]: all values in their order: of a Sequence one for each set that was completed.
    #[pyo3(get)]
    leaves: Vec<Leaf>,
    /// Any: the value, if it was completed: the name of a leaf, or what a rule makes of its text (`Rule.parse`): an
    /// int, a date, a str. None where it was not, for a form (also after a ThinkGate), and where nothing was
    /// constrained.
    #[pyo3(get)]
    value: Option<Value>,
    /// str | None: why there is no value: what the class said that refused its text, or that it was cut off. Only
    /// with `on_invalid="none"`, and in the `partial` of an InvalidValueError or a TruncatedError.
    #[pyo3(get)]
    invalid: Option<String>,
    partial_token: Vec<u8>,
    values: Vec<(String, Value)>,
    probabilities: Vec<(String, Vec<f64>)>,
    /// bool: whether these are the tokens that the tokenizer writes for the text of a form; True for other
    /// constraints.
    #[pyo3(get)]
    canonical: bool,
    /// bool: whether a value was ended by few tokens that the model did not choose, because `max_tokens` or the
    /// room of the context ran out; of a form `completed_fields` says which.
    #[pyo3(get)]
    completed: bool,
    /// list[str]: the names of the slots and texts of a form that were ended so.
    #[pyo3(get)]
    completed_fields: Vec<String>,
    /// list[TokenLogprob]: how probable each of `tokens` was; empty unless `logprobs` was given.
    #[pyo3(get)]
    logprobs: Vec<TokenLogprob>,
    /// As JSON.
    receipt: Option<String>,
    /// str: why it ended: "form", "span", "end_of_generation", "stop_text", "max_tokens" or "context_full";
    /// "stopped" in the `partial` of a CancelledError.
    #[pyo3(get)]
    finish: String,
    /// Stats: what it took.
    #[pyo3(get)]
    stats: Stats,
}

/// What a generation took.
///
/// Example:
///     >>> stats = tokentrie.Model().generate("The sky is ", ["blue", "red"]).stats
///     >>> stats.forced_tokens + stats.sampled_tokens >= 1
///     True
#[pyclass(frozen, get_all, from_py_object, module = "tokentrie")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stats {
    /// int: calls of llama.cpp's decode.
    forward_passes: u64,
    /// int: tokens in them, the prompt included.
    tokens_decoded: usize,
    /// int: tokens that came where exactly one was allowed.
    forced_tokens: usize,
    /// int: tokens with a choice.
    sampled_tokens: usize,
    /// int: tokens that needed no forward pass of their own, because they were forced.
    forward_passes_saved: usize,
    /// int: how often no legal token had a usable logit.
    starved: u64,
    /// int: tokens thought before a ThinkGate closed, without its markers.
    thinking_tokens: usize,
    /// int: tokens of the prompt, without those at its end that were taken back because the set begins with them.
    prompt_tokens: usize,
    /// int: tokens of the prompt that the model's context held already, so that they were not decoded again.
    prompt_tokens_reused: usize,
    /// int: bytes at the end of the prompt that were taken back, because the set begins with them.
    healed_bytes: usize,
    /// float: seconds in all.
    seconds: f64,
    /// float: seconds for the prompt.
    prompt_seconds: f64,
    /// float: seconds in the forward passes after it.
    decode_seconds: f64,
    /// float: seconds in choosing tokens.
    sample_seconds: f64,
    /// int: threads of the last forward pass.
    n_threads: u32,
    /// int: seed of the draw.
    seed: u32,
}

#[cfg(feature = "llama")]
impl Generated {
    pub(crate) fn new(
        generated: llama_sampler::Generated,
        meaning: Meaning,
        invalid: Option<String>,
        receipt: Option<String>,
        seconds: f64,
    ) -> Self {
        let completed_fields = generated.completed_fields().map(str::to_owned).collect();
        let llama_sampler::Generated {
            tokens,
            text,
            leaf,
            leaves,
            fields,
            partial_token,
            canonical,
            completed,
            logprobs,
            finish,
            stats,
            value: _,
            value_tokens: _,
            trail: _,
        } = generated;
        let (value, values, leaf, leaves) = match meaning {
            Meaning::Value(value) => (value, Vec::new(), leaf, leaves),
            Meaning::Form(values) => (None, values, None, Vec::new()),
        };
        let scored = fields.into_iter().filter_map(|field| Some((field.name, field.probabilities?)));
        Self {
            text,
            tokens: tokens.into_iter().map(TokenId::get).collect(),
            leaf: leaf.map(Leaf::from),
            leaves: leaves.into_iter().map(Leaf::from).collect(),
            value,
            invalid,
            partial_token,
            values,
            probabilities: scored.collect(),
            canonical,
            completed,
            completed_fields,
            logprobs: logprobs.into_iter().map(TokenLogprob::from).collect(),
            receipt,
            finish: finish.name().to_owned(),
            stats: Stats::new(stats, seconds),
        }
    }
}

#[cfg(feature = "llama")]
impl Generated {
    /// Number of tokens.
    pub(crate) fn count(&self) -> usize {
        self.tokens.len()
    }
}

#[cfg(feature = "llama")]
impl Stats {
    fn new(stats: llama_sampler::GenerateStats, seconds: f64) -> Self {
        let llama_sampler::GenerateStats {
            forward_passes,
            tokens_decoded,
            forced_tokens,
            sampled_tokens,
            forward_passes_saved,
            starved,
            thinking_tokens,
            prompt_tokens,
            prompt_tokens_reused,
            healed_bytes,
            prompt_seconds,
            decode_seconds,
            sample_seconds,
            n_threads,
            seed,
        } = stats;
        Self {
            forward_passes,
            tokens_decoded,
            forced_tokens,
            sampled_tokens,
            forward_passes_saved,
            starved,
            thinking_tokens,
            prompt_tokens,
            prompt_tokens_reused,
            healed_bytes,
            seconds,
            prompt_seconds,
            decode_seconds,
            sample_seconds,
            n_threads,
            seed,
        }
    }
}

generic!(Generated);

#[pymethods]
impl Generated {
    /// bytes: the partial token at the end: what the last token of the value holds beyond it, in a set with
    /// `open_end=True`. It begins the free text.
    #[getter]
    fn partial_token<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.partial_token)
    }

    /// dict[str, Any] | None: what each token was chosen among, chained, for `verify_receipt`: the prompt, the
    /// tokens, and at each branch the mass of what could come, the share of the chosen token, that of the best other
    /// one, and the digest of the mask. None unless `receipt` was given.
    #[getter]
    fn receipt<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.receipt.as_deref().map(|json| module(py, "json")?.call_method1("loads", (json,))).transpose()
    }

    /// dict[str, Any]: what a form was filled with, by the names of its slots and texts: str, or what a rule makes
    /// of its text; empty for other constraints.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.values.iter().map(|(name, value)| (name, value.clone())).into_py_dict(py)
    }

    /// dict[str, numpy.ndarray]: float64 [values], the probability of each value of a slot among them, by the names
    /// of the slots; empty unless it was asked for.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.probabilities.iter().map(|(name, shares)| (name, PyArray1::from_slice(py, shares))).into_py_dict(py)
    }

    /// A table, for notebooks.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        html("generated", slf)
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Generated: {:?}, {} tokens, {}>", self.text, self.tokens.len(), self.finish)
    }
}

#[pymethods]
impl Stats {
    /// The same as a dict, for JSON.
    ///
    /// Returns:
    ///     dict[str, int | float].
    ///
    /// Example:
    ///     >>> "forward_passes" in tokentrie.Model().generate("The sky is ", ["blue"]).stats.to_dict()
    ///     True
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.fields(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Stats({})", self.to_dict(py)?))
    }
}

/// One step of a generation, as `on_step` of `Model.generate` sees it.
///
/// Example:
///     >>> steps = []
///     >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"], on_step=steps.append)
///     >>> [step.token for step in steps] == out.tokens
///     True
#[pyclass(frozen, module = "tokentrie")]
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    /// int: its number, from 0.
    #[pyo3(get)]
    index: usize,
    /// int: tokens walked in the trie before the step.
    #[pyo3(get)]
    depth: usize,
    /// int: the token that was taken.
    #[pyo3(get)]
    token: u32,
    /// bool: whether no other could come.
    #[pyo3(get)]
    forced: bool,
    /// str: the text that it completes; "" where a character is only begun. All of them together are
    /// `Generated.text`, but for a character that the output does not end.
    #[pyo3(get)]
    text: String,
    /// TokenLogprob | None: how probable it was, where `logprobs` was given.
    #[pyo3(get)]
    logprob: Option<TokenLogprob>,
    candidates: Vec<(u32, f32)>,
}

#[cfg(feature = "llama")]
impl From<&llama_sampler::Step> for Step {
    fn from(step: &llama_sampler::Step) -> Self {
        Self {
            index: step.index,
            depth: step.depth,
            token: step.token.get(),
            forced: step.forced,
            text: step.text.clone(),
            logprob: step.logprob.clone().map(TokenLogprob::from),
            candidates: step.allowed.iter().map(|&(token, share)| (token.get(), share)).collect(),
        }
    }
}

#[pymethods]
impl Step {
    /// numpy.ndarray: int32 [k], the tokens that could come, ascending; empty where all could. At an open leaf
    /// those that go on.
    #[getter]
    fn allowed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_iter(py, self.candidates.iter().map(|&(token, _)| token as i32))
    }

    /// numpy.ndarray: float32 [k], their probabilities among each other, before temperature and truncation; at an
    /// open leaf among all tokens, so that what is missing to 1 is the probability of ending there.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_vec(py, self.candidates.iter().map(|(_, share)| *share).collect())
    }

    fn __repr__(&self) -> String {
        let Self { index, depth, token, forced, text, candidates, .. } = self;
        format!(
            "<tokentrie.Step {index}: token {token}, text {text:?}, forced {forced}, {} allowed, depth {depth}>",
            candidates.len()
        )
    }
}

pickled!(Generated {
    text,
    tokens,
    leaf,
    leaves,
    value,
    invalid,
    partial_token,
    values,
    probabilities,
    canonical,
    completed,
    completed_fields,
    logprobs,
    receipt,
    finish,
    stats
});
pickled!(Stats {
    forward_passes,
    tokens_decoded,
    forced_tokens,
    sampled_tokens,
    forward_passes_saved,
    starved,
    thinking_tokens,
    prompt_tokens,
    prompt_tokens_reused,
    healed_bytes,
    seconds,
    prompt_seconds,
    decode_seconds,
    sample_seconds,
    n_threads,
    seed
});
pickled!(Step { index, depth, token, forced, text, logprob, candidates });
