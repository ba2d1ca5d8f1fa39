//! The arrays of a trie, and the queries on them.
//!
//! The arrays may lie in a file that was never verified, so the queries do not trust them: indices are checked, and a
//! child has a higher number than its parent, which bounds every walk. Damage gives wrong answers, not a crash or an
//! endless loop.

use crate::set::damage::PendingCheck;
use crate::set::graph::Graph;
use crate::set::ids::{LeafId, NodeId, TokenId};
use crate::set::storage::memory::Array;
use crate::set::storage::names::Names;
use crate::set::storage::packed::PackedInts;

/// The arrays of a trie, on the heap or in a mapped file.
#[derive(Debug)]
pub struct Store {
    /// Token on the edge into each node; the root's entry is a placeholder.
    pub tokens: Array<TokenId>,
    /// Children of node `n` are the nodes `first_child[n] .. first_child[n + 1]`. The array ends with the last parent:
    /// later nodes have no children.
    pub first_child: Array<u32>,
    /// Terminals that have children, ascending: leaves that are prefixes of other leaves.
    pub inner_terminals: Array<u32>,
    /// Table of the leaves.
    pub leaves: LeafTable,
    /// Their names, where they have any.
    pub names: Option<Names>,
    /// First row of the input that gave each leaf; empty where that is not known.
    pub input_rows: PackedInts,
    /// The largest token id of any leaf.
    pub max_token: TokenId,
    /// Tokens of the longest leaf.
    pub max_depth: u32,
    /// True if the arrays were built here or verified and nobody else can change them: then no token is above
    /// `max_token`.
    pub verified: bool,
    /// The check of a file that was not verified when it was opened.
    pub unread: Option<Box<PendingCheck>>,
    /// Edges of a set in which several token sequences stand for one leaf.
    pub graph: Option<Graph>,
}

/// Mapping between nodes and the leaves that they end, both ways.
#[derive(Debug, PartialEq, Eq)]
pub enum LeafTable {
    /// Leaves are the last nodes, in leaf order, from this node on. This holds if all leaves have the same length.
    Tail(u32, u32),
    /// The node of each leaf, and the leaves sorted by that node.
    Table {
        /// The node of each leaf.
        nodes: Array<u32>,
        /// The leaves, ascending by their node.
        by_node: Array<u32>,
    },
    /// The nodes that end a leaf, ascending, and the leaf of each. Several nodes may end one of `count` leaves.
    Ends {
        /// The nodes that end a leaf.
        nodes: Array<u32>,
        /// The leaf of each.
        leaves: Array<u32>,
        /// Returns the number of leaves.
        count: u32,
    },
}

impl Store {
    /// The first child of a node and the tokens, ascending, of all of them, which are neighbours.
    #[inline]
    pub fn family(&self, node: NodeId) -> (u32, &[TokenId]) {
        match self.first_child.get(node.index()..) {
            Some(&[begin, end, ..]) if begin > node.0 => {
                self.tokens.get(begin as usize..end as usize).map_or((0, &[]), |tokens| (begin, tokens))
            }
            _ => (0, &[]),
        }
    }

    /// The tokens of the children of a node, ascending.
    #[inline]
    pub fn children(&self, node: NodeId) -> &[TokenId] {
        self.family(node).1
    }

    /// Returns the tokens before the first that exceeds the largest id or is not above its predecessor. Callers index
    /// rows of logits with these tokens and search them by bisection.
    #[cold]
    pub fn sound<'t>(&self, tokens: &'t [TokenId]) -> &'t [TokenId] {
        let inside = tokens.iter().take_while(|&&token| token <= self.max_token).count();
        let ascending = tokens[..inside].windows(2).take_while(|pair| pair[0] < pair[1]).count();
        &tokens[..inside.min(ascending + 1)]
    }

    /// The token on the edge into a node.
    pub(crate) fn token(&self, node: NodeId) -> Option<TokenId> {
        self.tokens.get(node.index()).copied().filter(|&token| token <= self.max_token)
    }

    /// The last node whose children begin at or before this one; `None` for the root and anything that is not a node.
    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        if node.index() >= self.tokens.len() {
            return None;
        }
        let after = self.first_child.partition_point(|&first| first <= node.0);
        after.checked_sub(1).map(|parent| NodeId(parent as u32)).filter(|&parent| parent < node)
    }

    /// Returns the target of the edge with this number, of this node.
    #[inline]
    pub fn target(&self, from: NodeId, edge: u32) -> NodeId {
        match &self.graph {
            None => NodeId(edge),
            Some(graph) => graph.target(from, edge),
        }
    }

    /// Nodes, the root included.
    pub fn nodes(&self) -> usize {
        self.graph.as_ref().map_or(self.tokens.len(), Graph::nodes)
    }

    /// The tokens from the root to a node of a tree.
    pub(crate) fn path(&self, node: NodeId) -> Option<Vec<TokenId>> {
        let mut tokens = Vec::new();
        let mut node = node;
        while node != NodeId::ROOT {
            if tokens.len() == self.max_depth as usize {
                return None;
            }
            tokens.push(self.token(node)?);
            node = self.parent(node)?;
        }
        tokens.reverse();
        Some(tokens)
    }
}

impl LeafTable {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Tail(_, count) | Self::Ends { count, .. } => *count as usize,
            Self::Table { nodes, .. } => nodes.len(),
        }
    }

    /// The leaf that ends at this terminal.
    pub fn leaf(&self, node: NodeId) -> Option<LeafId> {
        let leaf = match self {
            Self::Tail(first, _) => node.0.checked_sub(*first)?,
            Self::Table { nodes, by_node } => {
                let end = |leaf: u32| nodes.get(leaf as usize).copied().unwrap_or(u32::MAX);
                by_node[by_node.binary_search_by_key(&node.0, |&leaf| end(leaf)).ok()?]
            }
            Self::Ends { nodes, leaves, .. } => *leaves.get(nodes.binary_search(&node.0).ok()?)?,
        };
        ((leaf as usize) < self.len()).then_some(LeafId(leaf))
    }

    /// The node at which this leaf of a tree ends.
    pub(crate) fn node(&self, leaf: LeafId) -> Option<NodeId> {
        match self {
            Self::Tail(first, count) => (leaf.0 < *count).then(|| NodeId(first + leaf.0)),
            Self::Table { nodes, .. } => nodes.get(leaf.index()).copied().map(NodeId),
            // Its canonical sequence leads there.
            Self::Ends { .. } => None,
        }
    }

    /// Returns the number of bytes held.
    pub(crate) fn nbytes(&self) -> usize {
        match self {
            Self::Tail(..) => 0,
            Self::Table { nodes: one, by_node: other } | Self::Ends { nodes: one, leaves: other, .. } => {
                4 * (one.len() + other.len())
            }
        }
    }
}
