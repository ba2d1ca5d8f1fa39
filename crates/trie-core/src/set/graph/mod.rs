//! Sets in which several token sequences stand for one leaf: more than one edge may lead to a node.
//!
//! The arrays are those of a tree, and one more with the target of each edge. Nodes are numbered so that every edge
//! leads to a higher number, and the leaves at and below a node are neighbours. Each leaf has one canonical sequence;
//! a walk along any other sequence ends at the same leaf. `tokenizations.rs` and `partial_tokens.rs` make such sets
//! from sorted leaves (`positions.rs`), and `draft.rs` packs them.

mod draft;
mod partial_tokens;
mod positions;
mod tokenizations;

use crate::set::ids::{LeafId, NodeId, TokenId};
use crate::set::operations::SetError;
use crate::set::storage::memory::Array;
use crate::set::trie::Trie;

pub use partial_tokens::NamedLeaf;
pub use tokenizations::{ForcedText, TokenizationError, TokenizedLeaf};

/// Additional arrays of a set in which several edges lead to one node.
///
/// Edge `e` is item `e` of the tokens; the edges of node `n` are `first_child[n] .. first_child[n + 1]`.
#[derive(Debug, PartialEq, Eq)]
pub struct Graph {
    /// The node that each edge leads to, numbered above the node that it comes from. Item 0 is unused, as in the
    /// tokens.
    pub targets: Array<u32>,
    /// The forced edge of each node, or 0.
    pub forced: Array<u32>,
    /// The number of the first leaf after those at and below each node.
    pub leaves_end: Array<u32>,
    /// The canonical sequences of the leaves, one after the other.
    pub canonical: Array<TokenId>,
    /// End of each canonical sequence.
    pub canonical_ends: Array<u32>,
}

impl Trie {
    /// A tree of the leaves with their canonical sequences only; a set that is a tree is returned unchanged.
    /// `O(n log n)`.
    ///
    /// # Errors
    /// A damaged file that nobody verified.
    pub fn canonical(&self) -> Result<Self, SetError> {
        self.verify()?;
        if self.is_tree() {
            return Ok(self.clone());
        }
        let mut builder = Self::builder();
        let mut walk = self.in_order();
        while let Some(leaf) = walk.advance() {
            builder.push(self.name(leaf).as_deref(), walk.tokens());
        }
        Ok(builder.build()?.with_info(self.info().clone().with_weights(None)))
    }
}

impl Graph {
    /// Nodes, the root included.
    pub fn nodes(&self) -> usize {
        self.leaves_end.len()
    }

    pub(crate) fn nbytes(&self) -> usize {
        let words = [&self.targets, &self.forced, &self.leaves_end, &self.canonical_ends].map(|array| array.len());
        4 * (words.iter().sum::<usize>() + self.canonical.len())
    }

    /// Returns the target of an edge of this node, always a higher number, so that every walk ends. A damaged target
    /// gives the number of a missing node.
    #[inline]
    pub(crate) fn target(&self, from: NodeId, edge: u32) -> NodeId {
        match self.targets.get(edge as usize) {
            Some(&node) if node > from.0 => NodeId(node),
            _ => NodeId(u32::MAX),
        }
    }

    pub(crate) fn forced_edge(&self, node: NodeId) -> Option<u32> {
        self.forced.get(node.index()).copied().filter(|&edge| edge > 0)
    }

    /// The canonical sequence of a leaf.
    pub fn canonical(&self, leaf: LeafId) -> Option<&[TokenId]> {
        let end = *self.canonical_ends.get(leaf.index())? as usize;
        let begin = leaf.index().checked_sub(1).map_or(0, |before| self.canonical_ends[before] as usize);
        self.canonical.get(begin..end)
    }
}
