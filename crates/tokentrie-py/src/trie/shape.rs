//! Statistics and drawings of tries for the command line: counts of every depth, and the nodes to draw.

use crate::convert::gil::released;
use crate::errors::Result;
use crate::trie::Trie;
use crate::trie::export::limits;
use pyo3::prelude::*;
use std::borrow::Cow;
use trie_core::{Level, SetError, TokenId};
use trie_formats::{OutlineNode, TrieOutline as _};

/// Nodes, leaves, choices, most children, steps and forced steps of every depth, the root's first. O(nodes).
#[pyfunction]
#[pyo3(name = "_levels")]
pub(crate) fn levels(py: Python<'_>, trie: PyRef<'_, Trie>) -> Result<Vec<[usize; 6]>> {
    let trie = trie.core();
    let levels = released(py, || trie.levels())?;
    let row = |at: Level| [at.nodes, at.leaves, at.choices, at.most_children, at.steps, at.forced_steps];
    Ok(levels.into_iter().map(row).collect())
}

/// Number of the parent, tokens, whether a leaf ends, its name, leaves at and below, hidden branches and their leaves.
type Drawn = (Option<usize>, Vec<i32>, bool, Option<String>, usize, usize, usize);

/// The nodes to draw, each after its parent; the limits are those of `to_svg`.
///
/// Raises OptionError for a negative limit. O(drawn · depth · log nodes).
#[pyfunction]
#[pyo3(name = "_outline", signature = (trie, max_depth=None, max_children=None))]
pub(crate) fn outline(
    py: Python<'_>,
    trie: PyRef<'_, Trie>,
    max_depth: Option<i64>,
    max_children: Option<i64>,
) -> Result<Vec<Drawn>> {
    let trie = trie.core();
    let limits = limits(trie, max_depth, max_children)?;
    let drawn = |node: OutlineNode| {
        let name = node.leaf.and_then(|leaf| trie.name(leaf)).map(Cow::into_owned);
        let run = node.run.into_iter().map(TokenId::as_i32).collect();
        (node.parent, run, node.leaf.is_some(), name, node.leaves, node.hidden_children, node.hidden_leaves)
    };
    Ok(released(py, || Ok::<_, SetError>(trie.outline(limits)?.into_iter().map(drawn).collect()))?)
}
