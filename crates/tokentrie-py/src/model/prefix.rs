//! Beginnings of prompts that outlive the process.

use crate::errors::Result;
use crate::model::loaded::Model;
use crate::model::watch::Watch;
use pyo3::prelude::*;
use std::path::PathBuf;
use tokentrie::call::Call;

#[pymethods]
impl Model {
    /// Writes what the model makes of the beginning of prompts to a file, for a process that comes later.
    ///
    /// Cost: decoding the prompt, and a file as large as its part of the cache, some kilobytes to a megabyte a token.
    ///
    /// Args:
    ///     path: the file, which appears when it is whole.
    ///     prompt: as for `generate`.
    ///
    /// Raises:
    ///     ModelError: the file cannot be written; a model with `batching="fixed"`.
    ///     ContextError, VocabularyError: as `generate`.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> model.save_prefix("rules.prefix", "You sort letters.")
    ///     >>> tokentrie.Model().load_prefix("rules.prefix")  # another process
    ///     6
    fn save_prefix(&self, path: PathBuf, prompt: &Bound<'_, PyAny>) -> Result<()> {
        let (py, loaded, tokens) = (prompt.py(), self.loaded(prompt.py())?, self.prompt(prompt, None)?);
        self.using(py, Watch::new(&Call::default()), |runtime, watch| {
            runtime.save_prefix(&loaded.model, &path, &tokens, watch)
        })
    }

    /// Holds what `save_prefix` wrote: calls whose prompts begin with the same tokens do not decode them again.
    ///
    /// It takes the place of what the context holds, or of what slots hold that no call uses. Load files that you
    /// trust: their bytes go to llama.cpp once their digest is right.
    ///
    /// Args:
    ///     path: the file.
    ///
    /// Returns:
    ///     int: its tokens.
    ///
    /// Raises:
    ///     ModelError: the file cannot be read or is damaged; it is of another model, another llama.cpp, or of a
    ///         context with another `precise`; a model with `batching="fixed"`.
    ///     ContextError: it is longer than the context.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> model.save_prefix("rules.prefix", "You sort letters.")
    ///     >>> model.clear()
    ///     >>> tokens = model.load_prefix("rules.prefix")
    ///     >>> model.generate("You sort letters. Go", max_tokens=1).stats.prompt_tokens_reused == tokens
    ///     True
    fn load_prefix(&self, py: Python<'_>, path: PathBuf) -> Result<usize> {
        let loaded = self.loaded(py)?;
        self.using(py, Watch::new(&Call::default()), |runtime, _| {
            runtime.load_prefix(&loaded.model, &path).map(|tokens| tokens.len())
        })
    }
}
