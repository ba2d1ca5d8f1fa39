//! Options and statistics of an engine.

use llama_sampler::RuntimeError;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// Composition of a forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batching {
    /// Something of every call that runs: logits differ in their last digits with what else runs.
    #[default]
    Free,
    /// Tokens of one call, which has a cache of its own: whatever runs beside a request, and whatever ran before it,
    /// its logits are the same, bit for bit.
    Fixed,
}

/// Options of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Number of calls that may wait for a slot; one more is refused at once.
    pub max_queue: usize,
    /// Composition of a forward pass.
    pub batching: Batching,
    /// Limit on the tokens of long prompts and large trees in a forward pass that they share with smaller jobs. A small
    /// job wants fewer tokens than this in a pass. The limit decides how long a short reply waits for its next token
    /// beside a long prompt. If only large jobs run, they fill the pass. With [`Batching::Fixed`] passes are never
    /// shared, and the limit has no effect.
    pub prefill_chunk: usize,
}

impl EngineOptions {
    /// Default of [`EngineOptions::prefill_chunk`] in tokens.
    pub const PREFILL_CHUNK: usize = 64;
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { max_queue: 1024, batching: Batching::Free, prefill_chunk: Self::PREFILL_CHUNK }
    }
}

impl EngineOptions {
    /// Sets [`EngineOptions::max_queue`] of the options.
    #[must_use]
    pub fn with_max_queue(self, max_queue: usize) -> Self {
        Self { max_queue, ..self }
    }

    /// Sets [`EngineOptions::batching`] of the options.
    #[must_use]
    pub fn with_batching(self, batching: Batching) -> Self {
        Self { batching, ..self }
    }

    /// Sets [`EngineOptions::prefill_chunk`] of the options.
    #[must_use]
    pub fn with_prefill_chunk(self, prefill_chunk: usize) -> Self {
        Self { prefill_chunk, ..self }
    }

    pub(super) fn check(self) -> Result<(), RuntimeError> {
        let (value, most) = (self.prefill_chunk as u64, i32::MAX as u64);
        let is_right = (1..=most).contains(&value);
        is_right.then_some(()).ok_or(RuntimeError::OutOfRange { what: "prefill_chunk", value, least: 1, most })
    }
}

/// State and statistics of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct EngineStats {
    /// Number of calls that may run at once.
    pub slots: usize,
    /// Number of calls that run now.
    pub running: usize,
    /// Number of calls that wait for a slot.
    pub queued: usize,
    /// Number of calls begun so far.
    pub calls: u64,
    /// Number of forward passes so far.
    pub passes: u64,
    /// Number of tokens in these passes.
    pub tokens: u64,
    /// Tokens that were not decoded, because another sequence begins with them.
    pub tokens_reused: u64,
    /// Number of cache cells in use; a cell counts once for each sequence that uses it.
    pub cells: usize,
    /// Forward passes that failed.
    pub failed_passes: u64,
    /// Time that llama.cpp took for the forward passes.
    #[serde(rename = "decode_seconds", serialize_with = "seconds")]
    pub decoding: Duration,
    /// Time for all other work of the passes: scheduling, constraints, sampling.
    #[serde(rename = "own_seconds", serialize_with = "seconds")]
    pub own: Duration,
}

fn seconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_secs_f64())
}
