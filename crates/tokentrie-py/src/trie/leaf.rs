//! Leaves: one legal value each.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// One legal value of a trie: its number, its name and its tokens. Compares and hashes by content.
///
/// Args:
///     index: its number, from 0; leaves are numbered by the order of their token sequences.
///     name: its name, or None.
///     tokens: its token ids.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
///     >>> trie.leaf(0)
///     Leaf(index=0, name="stop", tokens=[2])
#[pyclass(frozen, eq, hash, get_all, from_py_object, module = "tokentrie.sets")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Leaf {
    /// int: its number, from 0; leaves are numbered by the order of their token sequences.
    index: usize,
    /// str | None: its name, where names were given.
    name: Option<String>,
    /// list[int]: its token ids, at least one.
    tokens: Vec<u32>,
}

#[pymethods]
impl Leaf {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str, &'static str) = ("index", "name", "tokens");

    #[new]
    fn new(index: usize, name: Option<String>, tokens: Vec<u32>) -> Self {
        Self { index, name, tokens }
    }

    fn __repr__(&self) -> String {
        self.shown()
    }
}

impl Leaf {
    pub(crate) fn shown(&self) -> String {
        let name = self.name.as_ref().map_or("None".to_owned(), |name| format!("{name:?}"));
        format!("Leaf(index={}, name={name}, tokens={:?})", self.index, self.tokens)
    }
}

#[pymethods]
impl Leaf {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let Self { index, name, tokens } = slf.get().clone();
        Ok((slf.get_type().into_any(), (index, name, tokens).into_pyobject(slf.py())?))
    }
}

impl From<trie_core::Leaf> for Leaf {
    fn from(leaf: trie_core::Leaf) -> Self {
        let tokens = leaf.tokens.iter().map(|token| token.get()).collect();
        Self { index: leaf.index.index(), name: leaf.name, tokens }
    }
}

/// The texts that were filled into a form, by name.
pub(crate) fn fields_of(leaves: &[trie_core::Leaf]) -> Vec<(String, &str)> {
    leaves.iter().filter_map(|leaf| Some((leaf.field.clone()?, leaf.name.as_deref()?))).collect()
}
