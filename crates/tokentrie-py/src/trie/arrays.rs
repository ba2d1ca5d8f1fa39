//! The arrays of a trie, lent to hosts that walk it with operations of their own.

use crate::convert::buffer::lent;
use crate::convert::gil::released;
use crate::errors::{Class, Result};
use crate::trie::Trie;
use numpy::{Element, PyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use trie_core::{LeafId, NodeId};

/// The arrays of a trie as they lie in memory: what a kernel of your own needs to walk it. Made by `Trie.arrays`.
///
/// They are read-only numpy arrays over the trie's own memory, or over its file: nothing is copied, and each keeps the
/// trie alive. Node 0 is the root. The edges of node n are `first_child[n]` up to `first_child[n + 1]`; a node after
/// the last that this array knows has none. Edge e writes `tokens[e]` and leads to node `targets[e]`, in a tree, where
/// `targets` is None, to node e. The tokens of a node's edges ascend. Entry 0 of `tokens` and `targets` means nothing.
/// A node ends a leaf if it has no edges or is one of `inner_terminals`.
///
/// Example:
///     >>> arrays = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [9]]).arrays()
///     >>> (arrays.tokens[1:].tolist(), arrays.first_child.tolist(), arrays.inner_terminals.tolist())
///     ([1, 9, 2, 3], [1, 3, 4, 4, 5], [3])
#[pyclass(frozen, module = "tokentrie.sets")]
pub(crate) struct TrieArrays(Py<Trie>);

impl TrieArrays {
    fn core(&self) -> &trie_core::Trie {
        self.0.get().core()
    }

    /// An array that every trie has.
    fn needed<'py, T: Element>(
        &self,
        py: Python<'py>,
        part: impl for<'t> FnOnce(trie_core::TrieArrays<'t>) -> &'t [T],
    ) -> PyResult<Bound<'py, PyArray1<T>>> {
        let array = lent(self.0.bind(py), |trie| Some(part(trie.core().arrays())))?;
        array.ok_or_else(|| PyRuntimeError::new_err("the trie has no such array"))
    }
}

#[pymethods]
impl Trie {
    /// The arrays of the trie as they lie in memory, for kernels of your own.
    ///
    /// Cost: O(1); the first time for a file that was opened without `verify`, one pass over all of it.
    ///
    /// Args:
    ///     verify: look at all of a file that nobody has looked at: numbers that index other arrays must not be
    ///         believed. Without it, whoever reads them must expect any.
    ///
    /// Returns:
    ///     TrieArrays.
    ///
    /// Raises:
    ///     TrieError: the file is damaged.
    ///
    /// Example:
    ///     >>> arrays = tokentrie.Trie.from_sequences([[5, 6], [5, 7]]).arrays()
    ///     >>> first, last = arrays.first_child[1:3]  # the edges of node 1, which follows the token 5
    ///     >>> arrays.tokens[first:last]
    ///     array([6, 7], dtype=int32)
    #[pyo3(signature = (*, verify=true))]
    fn arrays(slf: &Bound<'_, Self>, verify: bool) -> Result<TrieArrays> {
        if verify {
            let trie = slf.get().core();
            released(slf.py(), || trie.verify()).map_err(|problem| Class::Trie.error(problem.to_string()))?;
        }
        Ok(TrieArrays(slf.clone().unbind()))
    }
}

#[pymethods]
impl TrieArrays {
    /// np.ndarray: int32 [edges + 1], the token of each edge.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i32>>> {
        self.needed(py, |arrays| bytemuck::cast_slice(arrays.tokens))
    }

    /// np.ndarray: uint32 [parents + 1], where the edges of each node begin, and at last where the last ones end.
    #[getter]
    fn first_child<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.needed(py, |arrays| arrays.first_child)
    }

    /// np.ndarray | None: uint32 [edges + 1], the node each edge leads to; None in a tree: that of its number.
    #[getter]
    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<u32>>>> {
        lent(self.0.bind(py), |trie| trie.core().arrays().targets)
    }

    /// np.ndarray: uint32 [n], ascending: the nodes that end a leaf although they have children.
    #[getter]
    fn inner_terminals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.needed(py, |arrays| arrays.inner_terminals)
    }

    /// np.ndarray | None: float32 [edges + 1], what is added to each edge's logit; None in a set without weights.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        lent(self.0.bind(py), |trie| trie.core().arrays().weights)
    }

    /// np.ndarray | None: float32 [leaves], what is added to an end token after each; None where ends have none.
    #[getter]
    fn end_weights<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        lent(self.0.bind(py), |trie| trie.core().arrays().end_weights)
    }

    /// int: number of nodes, the root among them.
    #[getter]
    fn nodes(&self) -> usize {
        self.core().nodes()
    }

    /// int: number of leaves.
    #[getter]
    fn leaves(&self) -> usize {
        self.core().len()
    }

    /// int: the largest token id of any edge.
    #[getter]
    fn max_token(&self) -> u32 {
        self.core().max_token().get()
    }

    /// list[int]: the end tokens that the set brings, ascending.
    #[getter]
    fn end_tokens(&self) -> Vec<u32> {
        self.core().end_tokens().iter().map(|token| token.get()).collect()
    }

    /// Trie: the trie they belong to.
    #[getter]
    fn trie(&self, py: Python<'_>) -> Py<Trie> {
        self.0.clone_ref(py)
    }

    /// Returns the nodes that end a leaf, and the leaves. Cost: O(leaves), copied.
    ///
    /// Returns:
    ///     Two arrays, uint32 [n]: the nodes that end a leaf, ascending, and the leaf of each. Where several sequences
    ///     stand for one leaf, several nodes may end it.
    ///
    /// Example:
    ///     >>> nodes, leaves = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [9]]).arrays().end_nodes()
    ///     >>> (nodes.tolist(), leaves.tolist())
    ///     ([2, 3, 4], [2, 0, 1])
    fn end_nodes<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>) {
        let trie = self.core();
        let (nodes, leaves) = released(py, || trie.end_nodes());
        (PyArray1::from_vec(py, nodes), PyArray1::from_vec(py, leaves))
    }

    /// The leaf that ends at a node. Cost: O(log leaves); nothing is copied.
    ///
    /// Args:
    ///     node: the number of a node.
    ///
    /// Returns:
    ///     int | None: the number of the leaf, None where none ends or there is no such node.
    ///
    /// Example:
    ///     >>> arrays = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [9]]).arrays()
    ///     >>> [arrays.leaf_at(node) for node in (1, 2, 4)]
    ///     [None, 2, 1]
    fn leaf_at(&self, node: i64) -> Option<usize> {
        let node = u32::try_from(node).ok()?;
        self.core().leaf_of_node(NodeId::new(node)).map(LeafId::index)
    }

    fn __repr__(&self) -> String {
        let (trie, arrays) = (self.core(), self.core().arrays());
        let kind = if arrays.targets.is_some() { "graph" } else { "tree" };
        format!("<tokentrie.sets.TrieArrays: {kind} of {} nodes, {} leaves>", trie.nodes(), trie.len())
    }
}
