//! Layout of ordered leaves in the arrays of a trie, in memory or in a file.
//!
//! Within a level, breadth-first order is the order of the leaves. So each level needs only one cursor, and counts
//! alone determine where each cursor begins.

use crate::set::ids::TokenId;

/// Receives the array items that sorted leaves add. In each level, nodes and ends come in the order of their numbers.
pub trait Sink {
    /// Error type of the arrays.
    type Error;

    /// A node of a level with the token that leads to it. Above the last level, also the start of its children, if it
    /// has any.
    ///
    /// # Errors
    /// An error of the sink.
    fn node(&mut self, level: usize, node: u32, token: TokenId, first_child: Option<u32>) -> Result<(), Self::Error>;

    /// A leaf, the node of a level that ends it, and its number among the leaves by node.
    ///
    /// # Errors
    /// An error of the sink.
    fn end(&mut self, level: usize, leaf: u32, node: u32, by_node: u32) -> Result<(), Self::Error>;

    /// A node of a level that ends a leaf and has children.
    ///
    /// # Errors
    /// An error of the sink.
    fn inner_terminal(&mut self, level: usize, node: u32) -> Result<(), Self::Error>;
}

/// The cursors of all levels, at the first of some leaves and later after the leaves that were taken.
#[derive(Debug, Clone)]
pub struct Cursors {
    /// The next node of each level, the root's first, and one item more than there are levels.
    pub nodes: Vec<u32>,
    /// The number of the next leaf that ends in each level, among the leaves by node.
    pub ends: Vec<u32>,
    /// The number of the next leaf.
    pub leaf: u32,
    /// Number of tokens of the leaf before it.
    pub length_before: usize,
}

impl Cursors {
    /// Takes the next leaf: the number of tokens that it shares with the leaf before, and its other tokens.
    ///
    /// # Errors
    /// An error of the sink.
    #[inline]
    pub fn push<S: Sink>(&mut self, shared: usize, tokens: &[TokenId], sink: &mut S) -> Result<(), S::Error> {
        let (length, last) = (shared + tokens.len(), self.nodes.len() - 2);
        if shared == self.length_before && self.leaf > 0 {
            sink.inner_terminal(shared, self.nodes[shared] - 1)?;
        }
        for (level, &token) in (shared + 1..).zip(tokens) {
            let node = self.nodes[level];
            // Children come in the order of their parents, so this node's begin at the next free place.
            let first_child = (level < last).then(|| self.nodes[level + 1]);
            sink.node(level, node, token, first_child)?;
            self.nodes[level] = node + 1;
        }
        sink.end(length, self.leaf, self.nodes[length] - 1, self.ends[length])?;
        self.ends[length] += 1;
        self.leaf += 1;
        self.length_before = length;
        Ok(())
    }
}
