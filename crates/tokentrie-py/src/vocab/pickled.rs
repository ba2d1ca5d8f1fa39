//! Vocabularies as what made them: a tokenizer, a file, or their pieces.

use super::{Vocab, read_gguf};
use crate::convert::gil::released;
use crate::errors::{Class, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use trie_core::TokenId;

#[pymethods]
impl Vocab {
    fn __reduce__<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let class = py.get_type::<Self>();
        if let Some((method, source)) = &self.1 {
            let arguments = (source, self.eog(), self.0.len()).into_pyobject(py)?;
            return Ok((class.getattr(*method)?, arguments));
        }
        if let Some(path) = self.0.file() {
            return Ok((class.getattr("_reopen")?, (path, self.0.fingerprint()).into_pyobject(py)?));
        }
        if self.0.can_tokenize() {
            let message = "a vocabulary whose tokenizer belongs to another program cannot be pickled: make it again";
            return Err(PyTypeError::new_err(message).into());
        }
        let ids = (0..self.0.len() as u32).filter_map(TokenId::new);
        let pieces: Vec<_> = ids.filter_map(|token| Some(PyBytes::new(py, self.0.piece(token)?))).collect();
        Ok((class.getattr("from_tokens")?, (pieces, self.eog(), self.control()).into_pyobject(py)?))
    }

    /// Restores a pickled vocabulary of a file.
    #[staticmethod]
    fn _reopen(py: Python<'_>, path: PathBuf, fingerprint: &str) -> Result<Self> {
        let vocab = released(py, || read_gguf(path.clone()))?;
        if vocab.fingerprint() != fingerprint {
            let message = format!("{}: its vocabulary is another one than when this was pickled", path.display());
            return Err(Class::Vocabulary.error(message));
        }
        Ok(Self::new(Arc::new(vocab)))
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }
}
