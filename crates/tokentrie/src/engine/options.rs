//! How an engine works, and what it tells of that.

use std::time::Duration;

/// What goes into a forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batching {
    /// Something of every call that runs: logits differ in their last digits with what else runs.
    #[default]
    Free,
    /// Tokens of one call, which has a cache of its own: whatever runs beside a request, and whatever ran before it,
    /// its logits are the same, bit for bit.
    Fixed,
}

/// How an engine takes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Calls that may wait for a slot; one more is refused at once.
    pub max_queue: usize,
    /// What goes into a forward pass.
    pub batching: Batching,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { max_queue: 1024, batching: Batching::Free }
    }
}

impl EngineOptions {
    /// With [`EngineOptions::max_queue`].
    #[must_use]
    pub fn with_max_queue(self, max_queue: usize) -> Self {
        Self { max_queue, ..self }
    }

    /// With [`EngineOptions::batching`].
    #[must_use]
    pub fn with_batching(self, batching: Batching) -> Self {
        Self { batching, ..self }
    }
}

/// What an engine does, and has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EngineStats {
    /// Calls that may run at once.
    pub slots: usize,
    /// Calls that run.
    pub running: usize,
    /// Calls that wait.
    pub queued: usize,
    /// Calls that were begun.
    pub calls: u64,
    /// Forward passes.
    pub passes: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Tokens that were not decoded, because another sequence begins with them.
    pub tokens_reused: u64,
    /// Cells of the cache that hold something, counted once for each sequence.
    pub cells: usize,
    /// Forward passes that failed.
    pub failed_passes: u64,
    /// Time that llama.cpp took for them.
    pub decoding: Duration,
    /// Time that all else in them took: what is decoded next, constraints, choosing tokens.
    pub own: Duration,
}
