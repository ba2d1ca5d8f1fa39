//! The arrays of a trie as they lie in memory, for hosts that walk it with their own operations.

use crate::set::ids::{LeafId, NodeId, TokenId};
use crate::set::storage::store::LeafTable;
use crate::set::trie::Trie;

/// The arrays of a [`Trie`], lent.
///
/// Edge `e` has the token `tokens[e]`. The edges of node `n` are `first_child[n] .. first_child[n + 1]`; their tokens
/// ascend. Nodes beyond the end of `first_child` have no edges. Edge `e` leads to node `targets[e]`, in a tree to node
/// `e`. Item 0 of `tokens` and `targets` is unused, because no edge leads to the root, which is node 0.
///
/// The arrays are not checked here: call [`Trie::verify`] before you rely on the numbers of a mapped file.
///
/// ```
/// use trie_core::{TokenId, Trie};
/// let mut builder = Trie::builder();
/// for row in [&[1, 2][..], &[1, 2, 3], &[9]] {
///     builder.push(None, &row.iter().map(|&id| TokenId::new(id).unwrap()).collect::<Vec<_>>());
/// }
/// let trie = builder.build()?;
/// let arrays = trie.arrays();
/// assert_eq!(arrays.tokens[1..].iter().map(|id| id.get()).collect::<Vec<_>>(), [1, 9, 2, 3]);
/// assert_eq!((arrays.first_child, arrays.inner_terminals), (&[1, 3, 4, 4, 5][..], &[3][..]));
/// assert!(arrays.targets.is_none());
/// # Ok::<(), trie_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TrieArrays<'t> {
    /// The token of each edge.
    pub tokens: &'t [TokenId],
    /// Start of the edges of each node, followed by the end of the last node's edges.
    pub first_child: &'t [u32],
    /// The node that each edge leads to, in a set that is not a tree.
    pub targets: Option<&'t [u32]>,
    /// The nodes that end a leaf and have children, ascending.
    pub inner_terminals: &'t [u32],
    /// Bias on the logit of each edge, in a set that has weights.
    pub weights: Option<&'t [f32]>,
    /// Bias on the logit of an end token after each leaf, in a set that has such weights.
    pub end_weights: Option<&'t [f32]>,
}

impl Trie {
    /// The arrays that a walk reads. `O(1)`, without a copy.
    pub fn arrays(&self) -> TrieArrays<'_> {
        let store = self.store();
        TrieArrays {
            tokens: &store.tokens,
            first_child: &store.first_child,
            targets: store.graph.as_ref().map(|graph| &*graph.targets),
            inner_terminals: &store.inner_terminals,
            weights: self.info().weights().map(|weights| &*weights.edges),
            end_weights: self.info().weights().and_then(|weights| weights.ends.as_deref()),
        }
    }

    /// The leaf of a node in the table of leaves, on whatever path the node was reached; `None` if no leaf ends there.
    /// `O(log n)`.
    pub fn leaf_of_node(&self, node: NodeId) -> Option<LeafId> {
        self.store().leaves.leaf(node).filter(|_| node.index() < self.nodes())
    }

    /// Every node that ends a leaf, ascending, and the leaf of each. `O(leaves)`.
    ///
    /// ```
    /// # use trie_core::{TokenId, Trie};
    /// # let mut builder = Trie::builder();
    /// # for row in [&[1, 2][..], &[1, 2, 3], &[9]] {
    /// #     builder.push(None, &row.iter().map(|&id| TokenId::new(id).unwrap()).collect::<Vec<_>>());
    /// # }
    /// # let trie = builder.build()?;
    /// // The leaves are [1, 2], [1, 2, 3] and [9]; the last ends nearest to the root.
    /// assert_eq!(trie.end_nodes(), (vec![2, 3, 4], vec![2, 0, 1]));
    /// # Ok::<(), trie_core::BuildError>(())
    /// ```
    pub fn end_nodes(&self) -> (Vec<u32>, Vec<u32>) {
        match &self.store().leaves {
            &LeafTable::Tail(first, count) => ((0..count).map(|leaf| first + leaf).collect(), (0..count).collect()),
            LeafTable::Table { nodes, by_node } => {
                by_node.iter().filter_map(|&leaf| Some((*nodes.get(leaf as usize)?, leaf))).unzip()
            }
            LeafTable::Ends { nodes, leaves, .. } => (nodes.to_vec(), leaves.to_vec()),
        }
    }
}
