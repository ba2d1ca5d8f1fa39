//! What the engine of a model does, as Python sees it.

use pyo3::prelude::*;

/// What the engine of a model does, and has done: `Model(path, slots=8).engine`.
///
/// Example:
///     >>> model = tokentrie.Model(slots=2)
///     >>> out = model.generate("Once", max_tokens=1)
///     >>> (model.engine.calls, model.engine.slots, model.engine.queued)
///     (1, 2, 0)
#[pyclass(frozen, get_all, module = "tokentrie")]
pub(crate) struct EngineStats {
    /// int: calls that may run at once.
    slots: usize,
    /// int: calls that run.
    running: usize,
    /// int: calls that wait for a slot.
    queued: usize,
    /// int: calls that were begun.
    calls: u64,
    /// int: forward passes.
    passes: u64,
    /// int: tokens in them.
    tokens: u64,
    /// int: tokens that were not decoded, because another call begins with them.
    tokens_reused: u64,
    /// int: tokens in the cache, counted once for each call or former call.
    cells: usize,
    /// int: forward passes that failed.
    failed_passes: u64,
    /// float: seconds that llama.cpp took for them.
    decode_seconds: f64,
    /// float: seconds that all else in them took: what is decoded next, constraints, choosing tokens.
    own_seconds: f64,
}

#[cfg(feature = "llama")]
impl From<tokentrie::engine::EngineStats> for EngineStats {
    fn from(stats: tokentrie::engine::EngineStats) -> Self {
        Self {
            slots: stats.slots,
            running: stats.running,
            queued: stats.queued,
            calls: stats.calls,
            passes: stats.passes,
            tokens: stats.tokens,
            tokens_reused: stats.tokens_reused,
            cells: stats.cells,
            failed_passes: stats.failed_passes,
            decode_seconds: stats.decoding.as_secs_f64(),
            own_seconds: stats.own.as_secs_f64(),
        }
    }
}

#[pymethods]
impl EngineStats {
    /// float: tokens a forward pass; 0 before the first.
    #[getter]
    fn tokens_per_pass(&self) -> f64 {
        if self.passes == 0 { 0.0 } else { self.tokens as f64 / self.passes as f64 }
    }

    fn __repr__(&self) -> String {
        let Self { slots, running, queued, passes, .. } = self;
        let tokens = self.tokens_per_pass();
        format!(
            "<tokentrie.EngineStats: {running} of {slots} slots run, {queued} calls wait, {passes} passes of \
             {tokens:.1} tokens>"
        )
    }
}
