//! The set of legal values.

use crate::errors::{Class, Error, Result};
use crate::gil::{locked, released};
use crate::ids::{Rows, tokens};
use crate::leaf::Leaf;
use crate::payload::{warn_dropped, with_text};
use crate::strings;
use crate::vocab::{Vocab, VocabArg};
use numpy::PyArray1;
use pyo3::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use trie_core::{LeafId, Payload, TokenId};

/// The immutable set of token sequences that one span may produce. Cheap to share, also between threads.
///
/// Leaves are numbered by the order of their token sequences, so the same set gives the same trie whatever the order of
/// the input. Made by `from_payload`, `from_sequences` or `from_strings`. `==` compares sequences and names.
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Trie(trie_core::Trie);

impl Trie {
    pub(crate) fn new(trie: trie_core::Trie) -> Self {
        Self(trie)
    }

    pub(crate) fn core(&self) -> &trie_core::Trie {
        &self.0
    }
}

/// An int32 array of these ids.
pub(crate) fn id_array(py: Python<'_>, ids: impl Iterator<Item = TokenId>) -> Bound<'_, PyArray1<i32>> {
    PyArray1::from_vec(py, ids.map(TokenId::as_i32).collect())
}

#[pymethods]
impl Trie {
    /// Reads one descriptor of a payload.
    ///
    /// Args:
    ///     payload: JSON text (str or bytes) or the same as a dict.
    ///     path: the descriptor to take; the first one with a usable leaf if None.
    ///     vocab: a Vocab or a vocabulary size; leaves with ids outside it are dropped with a TokenTrieWarning.
    ///
    /// Raises PayloadError for bad JSON (with line, column and field) or if no leaf is usable, OptionError for an unknown
    /// path. One pass over the text and one sort of the leaves.
    #[staticmethod]
    #[pyo3(signature = (payload, path=None, *, vocab=None))]
    fn from_payload(payload: &Bound<'_, PyAny>, path: Option<&str>, vocab: Option<VocabArg<'_>>) -> Result<Self> {
        let py = payload.py();
        let n_vocab = vocab.as_ref().map(VocabArg::size);
        let read = with_text(payload, |text| Ok(released(py, || Payload::from_json(text, n_vocab))?))?;
        warn_dropped(py, &read.report, n_vocab.unwrap_or_default())?;
        let found = read.spans.iter().find(|(known, _)| path.is_none_or(|path| path == known));
        let (_, trie) = found.ok_or_else(|| {
            let known: Vec<&str> = read.spans.iter().map(|(known, _)| known.as_str()).collect();
            Class::Option.error(format!("no trie has the path {:?}; there are {known:?}", path.unwrap_or_default()))
        })?;
        Ok(Self(trie.clone()))
    }

    /// Builds a trie from token sequences.
    ///
    /// Args:
    ///     sequences: lists of int, or an integer array of shape [rows, length]. Equal rows become one leaf. An int32 array in C
    ///         order is not copied; other threads run meanwhile and must not write to it.
    ///     names: one str a row, or None. Of equal rows the smallest name stays, by code point.
    ///     vocab: a Vocab or a vocabulary size to check the ids against.
    ///
    /// Raises TrieError for no rows, an empty row (by number) or names that do not match; VocabularyError for an id out of
    /// range, naming row, position and id; TypeError for what are no integers. O(n log n).
    #[staticmethod]
    #[pyo3(signature = (sequences, names=None, vocab=None))]
    fn from_sequences(
        sequences: &Bound<'_, PyAny>,
        names: Option<Vec<String>>,
        vocab: Option<VocabArg<'_>>,
    ) -> Result<Self> {
        let rows = Rows::read(sequences)?;
        let rows = rows.slices();
        if let Some(names) = names.as_ref().filter(|names| names.len() != rows.len()) {
            return Err(Class::Trie.error(format!(
                "{} names for {} sequences: give one each, or None",
                names.len(),
                rows.len()
            )));
        }
        if let Some(vocab) = &vocab {
            rows.check_inside(vocab.size())?;
        }
        Ok(Self(released(sequences.py(), || rows.build(names.as_deref()))?))
    }

    /// Builds a trie from texts; they become the names.
    ///
    /// Args:
    ///     vocab: a Vocab with a tokenizer.
    ///     values: one str a leaf.
    ///     prefix, suffix: the text around them. A leaf is what the tokenizer writes for prefix + value + suffix, as plain text,
    ///         with the tokens of the prefix taken off.
    ///     tokenization: "canonical", the one sequence that the tokenizer gives.
    ///
    /// Raises VocabularyError if the tokens of a value do not spell it or if one spans the border between prefix and value,
    /// TrieError for no value or an empty one.
    #[staticmethod]
    #[pyo3(signature = (vocab, values, prefix="", suffix="", tokenization="canonical"))]
    fn from_strings(
        py: Python<'_>,
        vocab: PyRef<'_, Vocab>,
        values: Vec<String>,
        prefix: &str,
        suffix: &str,
        tokenization: &str,
    ) -> Result<Self> {
        if tokenization != "canonical" {
            return Err(Class::Option.error(format!("tokenization is {tokenization:?}: it must be \"canonical\"")));
        }
        let vocab = vocab.core();
        Ok(Self(released(py, || strings::trie(vocab, &values, prefix, suffix))?))
    }

    /// Number of leaves, at least 1.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// int: number of nodes, the root included.
    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// int: bytes held, names included.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    /// numpy.ndarray: int64 [leaves], the first input row that gave each leaf.
    #[getter]
    fn input_rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let row = |leaf| self.0.input_row(LeafId::new(leaf)).map_or(-1, |row| row as i64);
        PyArray1::from_vec(py, (0..self.0.len() as u32).map(row).collect())
    }

    /// Whether these tokens are a leaf. O(length · log children).
    fn __contains__(&self, tokens: &Bound<'_, PyAny>) -> Result<bool> {
        self.find(tokens).map(|found| found.is_some())
    }

    /// The number of the leaf with these tokens, or None. O(length · log children).
    ///
    /// Raises TypeError for what are no integers, VocabularyError for integers that are no token id.
    fn find(&self, tokens: &Bound<'_, PyAny>) -> Result<Option<usize>> {
        Ok(self.0.find(&crate::ids::tokens(tokens, "")?).map(LeafId::index))
    }

    /// The leaf with this number, or None if there is none.
    fn leaf(&self, index: i64) -> Option<Leaf> {
        let index = u32::try_from(index).ok()?;
        self.0.leaf(LeafId::new(index)).map(Leaf::from)
    }

    /// Tokens that may follow a prefix: int32, ascending; empty at the end of a leaf that is no prefix of another.
    ///
    /// Raises TokenNotAllowedError if the prefix leaves the trie. O(length · log children).
    #[pyo3(signature = (prefix=None))]
    fn allowed<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        Ok(id_array(py, self.0.children(self.walk(prefix)?).iter().copied()))
    }

    /// Tokens that must follow a prefix whatever the model says, up to the next choice or the end of a leaf: int32.
    ///
    /// Raises TokenNotAllowedError if the prefix leaves the trie. O(length · log children).
    #[pyo3(signature = (prefix=None))]
    fn forced<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        Ok(id_array(py, self.0.forced(self.walk(prefix)?)))
    }

    /// All leaves in order.
    fn __iter__(&self) -> LeafIterator {
        LeafIterator { trie: self.0.clone(), next: Mutex::new(0) }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    /// Equal tries have equal counts; more is not worth a pass over all leaves.
    fn __hash__(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        (self.0.len(), self.0.nodes(), self.0.max_token()).hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Trie: {} leaves, {} nodes, {} bytes>", self.0.len(), self.0.nodes(), self.0.nbytes())
    }
}

impl Trie {
    fn walk(&self, prefix: Option<&Bound<'_, PyAny>>) -> Result<trie_core::Cursor> {
        let prefix = prefix.map_or(Ok(Vec::new()), |prefix| tokens(prefix, ""))?;
        self.0.walk(&prefix).map_err(Error::from)
    }
}

/// Iterates over the leaves of a trie.
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct LeafIterator {
    trie: trie_core::Trie,
    next: Mutex<u32>,
}

#[pymethods]
impl LeafIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Leaf>> {
        let mut next = locked(py, &self.next)?;
        let leaf = self.trie.leaf(LeafId::new(*next));
        *next += u32::from(leaf.is_some());
        Ok(leaf.map(Leaf::from))
    }
}
