//! Refusing rows that were not asked for: a missing row must not become a quiet wrong probability.

use super::error::RowProblem;
use super::tree::TokenTree;

/// Which rows were given.
pub(super) struct Checks<'t> {
    tree: &'t TokenTree,
    n_vocab: usize,
    /// Whether the row of each node is still to come, and whether that after the prompt is.
    waits: Vec<bool>,
    root_waits: bool,
}

impl<'t> Checks<'t> {
    pub(super) fn new(tree: &'t TokenTree, n_vocab: usize) -> Self {
        let waits = tree.nodes().iter().map(|node| node.wanted).collect();
        Self { tree, n_vocab, waits, root_waits: tree.wants_root() }
    }

    pub(super) fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RowProblem> {
        if row.len() != self.n_vocab {
            return Err(RowProblem::Length { found: row.len(), n_vocab: self.n_vocab });
        }
        let waits = node.map_or(Some(&mut self.root_waits), |node| self.waits.get_mut(node));
        if !waits.is_some_and(std::mem::take) {
            return Err(RowProblem::Unwanted { node });
        }
        let Some(node) = node else { return Ok(()) };
        let parent_waits = self.tree.nodes()[node].parent.map_or(self.root_waits, |parent| self.waits[parent]);
        if parent_waits { Err(RowProblem::BeforeParent { node }) } else { Ok(()) }
    }

    pub(super) fn over(&self) -> Result<(), RowProblem> {
        let missing = usize::from(self.root_waits) + self.waits.iter().filter(|&&waits| waits).count();
        if missing == 0 { Ok(()) } else { Err(RowProblem::Missing { missing }) }
    }
}
