//! Tries that came from a file know which, so that they are pickled as its path.

use crate::convert::gil::released;
use crate::errors::{Class, Result};
use crate::trie::Trie;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use std::path::{Path, PathBuf};
use trie_formats::{FileError, FileOptions, FileStamp, TrieFile as _};

/// The file that a trie was opened from.
#[derive(Debug)]
pub(crate) struct Origin {
    path: PathBuf,
    stamp: FileStamp,
    verify: bool,
}

impl Origin {
    /// Opens a file. There is no origin where the path of the working folder is not known.
    pub(crate) fn open(
        path: &Path,
        options: FileOptions<'_>,
    ) -> std::result::Result<(trie_core::Trie, Option<Self>), FileError> {
        let (trie, stamp) = trie_core::Trie::open_stamped(path, options)?;
        let path = std::path::absolute(path).ok();
        Ok((trie, path.map(|path| Self { path, stamp, verify: options.verify })))
    }

    /// Returns whether the path still names this file or an equal one.
    pub(crate) fn is_there(&self) -> bool {
        trie_core::Trie::open_stamped(&self.path, FileOptions::default()).is_ok_and(|(_, stamp)| stamp == self.stamp)
    }

    /// Returns the arguments of `_reopen`.
    pub(crate) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.path.as_os_str(), PyBytes::new(py, &self.stamp.0), self.verify).into_pyobject(py)
    }
}

#[pymethods]
impl Trie {
    /// Restores a pickle: opens a file that must have the contents that were pickled.
    #[classmethod]
    fn _reopen(kind: &Bound<'_, PyType>, path: PathBuf, stamp: &[u8], verify: bool) -> Result<Self> {
        let options = FileOptions::default().with_verify(verify);
        let (trie, origin) = released(kind.py(), || Origin::open(&path, options))?;
        if origin.as_ref().is_some_and(|origin| origin.stamp.0 == stamp) {
            return Ok(Self::of_file((trie, origin)));
        }
        Err(Class::Trie.error(format!(
            "{}: not the file that was pickled: its contents are others; trie.union() is pickled whole",
            path.display()
        )))
    }
}
