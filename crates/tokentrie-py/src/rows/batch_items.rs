//! Rows of a batch that write several items, and what they have thought before one.

use crate::errors::Result;
use crate::rows::batch::{Batch, group_ends};
use crate::trie::leaf::Leaf;
use numpy::PyArray1;
use pyo3::prelude::*;
use trie_core::{Constraint, LeafId};

#[pymethods]
impl Batch {
    /// int32 [rows]: tokens that each row has thought behind a ThinkGate, without its markers.
    #[getter]
    fn thinking<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i32>>> {
        let thought = self.with(py, |held| {
            let of = |row| Ok(held.batch.thought(row)?.tokens as i32);
            (0..held.batch.len()).map(of).collect::<Result<Vec<i32>>>()
        })?;
        Ok(PyArray1::from_vec(py, thought))
    }

    /// Finished rows begin their next item.
    ///
    /// With `no_repeat`, what was written until now is not legal there any more, so nothing leads to it. Rows in the
    /// middle of an item go on as they are. `rollback` does not cross it.
    ///
    /// Args:
    ///     groups: siblings, as for `top_children`; all rows if None.
    ///
    /// Returns:
    ///     int: how many rows have begun.
    ///
    /// Raises:
    ///     TrieError: a finished row has written all of its items. No row has changed.
    ///     OptionError: with `no_repeat`, a finished row follows no trie; or groups do not fit.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
    ///     >>> rows = tokentrie.Batch(trie, rows=1, vocab=6, no_repeat=True)
    ///     >>> rows.accept([4])
    ///     >>> rows.accept([2])
    ///     >>> rows.next_item()
    ///     1
    ///     >>> (rows.allowed(0), [leaf.name for leaf in rows.items(0)])
    ///     (array([1], dtype=int32), ['c'])
    #[pyo3(signature = (groups=None))]
    fn next_item(&self, py: Python<'_>, groups: Option<&Bound<'_, PyAny>>) -> Result<usize> {
        let ends = group_ends(groups, self.count(py)?)?;
        self.with(py, |held| Ok(held.batch.next_item_of(self.no_repeat, &ends)?))
    }

    /// The items that a row has written before the one at which it is: see `next_item`.
    ///
    /// Args:
    ///     row: its number; a negative one counts from the end.
    ///
    /// Returns:
    ///     list[Leaf], in the order in which they were written.
    ///
    /// Raises:
    ///     IndexError: there is no such row.
    ///
    /// Example:
    ///     >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
    ///     >>> rows.accept([2])
    ///     >>> rows.items(0)
    ///     []
    ///     >>> rows.next_item()
    ///     1
    ///     >>> [leaf.index for leaf in rows.items(0)]
    ///     [1]
    fn items(&self, py: Python<'_>, row: i64) -> Result<Vec<Leaf>> {
        let row = self.row(py, row)?;
        self.with(py, |held| {
            let (rules, state) = (held.batch.rules(row)?, held.batch.state(row)?);
            let sets = rules.constraint(state).sets();
            let leaf = |&leaf: &LeafId| sets.first().and_then(|set| set.leaf(leaf)).map(Leaf::from);
            Ok(held.batch.items(row)?.iter().filter_map(leaf).collect())
        })
    }
}
