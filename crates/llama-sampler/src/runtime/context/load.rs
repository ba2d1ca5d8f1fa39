//! Loading a GGUF file.

use super::backend::{backend, quoted};
use crate::runtime::error::RuntimeError;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use std::path::Path;
use std::sync::Arc;

/// Loads a file whose header was checked.
pub(super) fn load(path: &Path, params: &LlamaModelParams) -> Result<Arc<LlamaModel>, RuntimeError> {
    let backend = backend()?;
    let text = path.to_str().ok_or(RuntimeError::Path { path: path.to_owned(), what: "its name is not UTF-8" })?;
    let loaded = quoted(|| LlamaModel::load_from_file(backend, text, params));
    loaded.map(Arc::new).map_err(|reason| RuntimeError::Load { path: path.to_owned(), reason })
}
