//! Embedding context, beside the one that generates.

use crate::convert::gil::locked;
use crate::errors::Result;
use llama_sampler::{ContextOptions, Embedder};
use pyo3::prelude::*;
use std::sync::Mutex;
use tokentrie::call::Turns;

/// Embedder, and the lock on it.
pub(crate) struct Embedding {
    /// Context options of the model.
    pub(crate) options: ContextOptions,
    /// Made by the first call: it has a cache of its own.
    pub(crate) embedder: Mutex<Option<Embedder>>,
    pub(crate) turns: Turns,
}

impl Embedding {
    pub(crate) fn new(options: ContextOptions) -> Self {
        Self { options, embedder: Mutex::default(), turns: Turns::default() }
    }

    /// Takes the embedder, to drop it. Whoever asks has a turn.
    pub(crate) fn take(&self, py: Python<'_>) -> Result<Option<Embedder>> {
        Ok(locked(py, &self.embedder)?.take())
    }
}
