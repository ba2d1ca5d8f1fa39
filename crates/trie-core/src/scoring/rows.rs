//! Asking a host for rows, and refusing what was not asked for: a missing row must not become a quiet wrong
//! probability.

use super::choice::ChooseStats;
use super::decoder::{Decoded, TreeDecoder};
use super::error::{ChooseError, RowProblem};
use super::tree::TokenTree;
use crate::set::ids::TokenId;

/// A position that neither ends a value nor goes on, after so many tokens of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeadEnd(pub(super) usize);

/// Has the tree decoded, and calls `read` with every row that it wants, once.
pub(super) fn read_rows<D: TreeDecoder + ?Sized>(
    decoder: &mut D,
    prompt: &[TokenId],
    tree: &TokenTree,
    stats: &mut ChooseStats,
    mut read: impl FnMut(Option<usize>, &[f32]) -> Result<(), DeadEnd>,
) -> Result<(), ChooseError<D::Error>> {
    let mut checks = Checks::new(tree, decoder.n_vocab());
    let mut problem = None;
    let Decoded { forward_passes, tokens } = decoder
        .decode(prompt, tree, &mut |node, row| {
            if problem.is_none() {
                let read = |()| read(node, row).map_err(|DeadEnd(depth)| ChooseError::DeadEnd { depth });
                problem = checks.take(node, row).map_err(ChooseError::Rows).and_then(read).err();
            }
        })
        .map_err(ChooseError::Host)?;
    stats.forward_passes += forward_passes;
    stats.tokens_decoded += tokens;
    match problem {
        Some(problem) => Err(problem),
        None => checks.over().map_err(ChooseError::Rows),
    }
}

/// Which rows were given.
struct Checks<'t> {
    tree: &'t TokenTree,
    n_vocab: usize,
    /// Whether the row of each node is still to come, and whether that after the prompt is.
    waits: Vec<bool>,
    root_waits: bool,
}

impl<'t> Checks<'t> {
    fn new(tree: &'t TokenTree, n_vocab: usize) -> Self {
        let waits = tree.nodes().iter().map(|node| node.wanted).collect();
        Self { tree, n_vocab, waits, root_waits: tree.wants_root() }
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RowProblem> {
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

    fn over(&self) -> Result<(), RowProblem> {
        let missing = usize::from(self.root_waits) + self.waits.iter().filter(|&&waits| waits).count();
        if missing == 0 { Ok(()) } else { Err(RowProblem::Missing { missing }) }
    }
}
