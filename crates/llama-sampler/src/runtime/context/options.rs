//! How large a context is.

/// How large a context is. The default suits choices after prompts of a few pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// Tokens of context; `None` takes 4096, or what the model was trained on if that is less.
    pub n_ctx: Option<u32>,
    /// Tokens in one forward pass. Between two of them a long prompt can be stopped.
    pub n_batch: u32,
    /// Threads; `None` takes one or all of [`default_threads`](crate::default_threads) for each forward pass: passes
    /// are timed as they happen, so that a busy machine never makes them slower than one thread would be.
    pub n_threads: Option<u32>,
    /// Keeps keys and values in f32 and computes attention step by step: with f32 weights log-probabilities of values
    /// then agree to 1e-4 however tokens are batched, at twice the memory of the cache. Without it llama.cpp's defaults
    /// hold (f16, flash attention).
    pub precise: bool,
    /// Sequences that have a context each, of [`ContextOptions::n_ctx`] tokens, and are decoded in common forward
    /// passes: see `tokentrie::engine`. The cache has room for all of them.
    pub slots: u32,
}

impl ContextOptions {
    pub(super) const N_CTX: u32 = 4096;
    pub(super) const MAX_THREADS: u64 = 512;
    /// The most [`ContextOptions::slots`].
    pub const MAX_SLOTS: u64 = 128;

    /// With [`ContextOptions::n_ctx`].
    #[must_use]
    pub fn with_n_ctx(self, n_ctx: impl Into<Option<u32>>) -> Self {
        Self { n_ctx: n_ctx.into(), ..self }
    }

    /// With [`ContextOptions::n_batch`].
    #[must_use]
    pub fn with_n_batch(self, n_batch: u32) -> Self {
        Self { n_batch, ..self }
    }

    /// With [`ContextOptions::n_threads`].
    #[must_use]
    pub fn with_n_threads(self, n_threads: impl Into<Option<u32>>) -> Self {
        Self { n_threads: n_threads.into(), ..self }
    }

    /// With [`ContextOptions::slots`].
    #[must_use]
    pub fn with_slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// With [`ContextOptions::precise`].
    #[must_use]
    pub fn with_precise(self, precise: bool) -> Self {
        Self { precise, ..self }
    }
}

impl Default for ContextOptions {
    fn default() -> Self {
        Self { n_ctx: None, n_batch: 512, n_threads: None, precise: false, slots: 1 }
    }
}
