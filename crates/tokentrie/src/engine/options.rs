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
    /// Calls that may wait for a slot; one more is refused at once.
    pub max_queue: usize,
    /// Composition of a forward pass.
    pub batching: Batching,
    /// The most tokens of long prompts and large trees in a forward pass that others share, which want fewer tokens
    /// than this: how long a short reply waits for a token beside a long prompt. Where only long ones run, they fill
    /// the pass. With [`Batching::Fixed`] passes are never shared, and this changes nothing.
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
    /// Calls that may run at once.
    pub slots: usize,
    /// Number of calls that run now.
    pub running: usize,
    /// Number of calls that wait for a slot.
    pub queued: usize,
    /// Calls that were begun.
    pub calls: u64,
    /// Number of forward passes so far.
    pub passes: u64,
    /// Number of tokens in these passes.
    pub tokens: u64,
    /// Tokens that were not decoded, because another sequence begins with them.
    pub tokens_reused: u64,
    /// Cells of the cache that hold something, counted once for each sequence.
    pub cells: usize,
    /// Forward passes that failed.
    pub failed_passes: u64,
    /// Time that llama.cpp took for them.
    #[serde(rename = "decode_seconds", serialize_with = "seconds")]
    pub decoding: Duration,
    /// Time that all else in them took: what is decoded next, constraints, choosing tokens.
    #[serde(rename = "own_seconds", serialize_with = "seconds")]
    pub own: Duration,
}

fn seconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_secs_f64())
}
