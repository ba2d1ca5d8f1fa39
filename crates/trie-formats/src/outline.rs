//! A part of a trie, to be displayed.

use trie_core::SetError;
use trie_core::{Cursor, Trie};
use trie_core::{LeafId, TokenId};

/// Size limits of an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutlineLimits {
    /// Largest number of choices below each other.
    pub depth: usize,
    /// Largest number of children of a node.
    pub children: usize,
}

/// A run of tokens up to the next choice or the end of a leaf; all of its tokens but the first are forced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineNode {
    /// The number of the node above, which comes earlier; `None` at the root.
    pub parent: Option<usize>,
    /// Tokens of the run. For the root, the common prefix of all leaves, often empty.
    pub run: Vec<TokenId>,
    /// The leaf that ends here.
    pub leaf: Option<LeafId>,
    /// Number of leaves at and below the node.
    pub leaves: usize,
    /// Children that are not shown.
    pub hidden_children: usize,
    /// Number of leaves below those.
    pub hidden_leaves: usize,
}

impl OutlineLimits {
    /// Largest number of leaves of a trie that is shown whole.
    pub const SMALL: usize = 200;

    /// Returns the requested limits; by default, all of a small trie and the first levels of a large one.
    pub fn choose(trie: &Trie, depth: Option<usize>, children: Option<usize>) -> Self {
        let (all, some) = (usize::MAX, (2, 12));
        let default = if trie.len() <= Self::SMALL { (all, all) } else { some };
        Self { depth: depth.unwrap_or(default.0), children: children.unwrap_or(default.1) }
    }
}

/// Outlines of a [`Trie`].
pub trait TrieOutline {
    /// The nodes to show, each before those below it. `O(shown · depth · log n)`. If several sequences stand for a
    /// leaf, the canonical one is shown. A file that was never verified is read completely the first time.
    ///
    /// # Errors
    /// A damaged file that nobody verified.
    ///
    /// ```
    /// use trie_core::{TokenId, Trie};
    /// use trie_formats::{OutlineLimits, TrieOutline as _};
    /// let mut builder = Trie::builder();
    /// for row in [[1, 2], [3, 4]] {
    ///     builder.push(None, &row.map(|id| TokenId::new(id).unwrap()));
    /// }
    /// let trie = builder.build()?;
    /// let nodes = trie.outline(OutlineLimits::choose(&trie, None, Some(1)))?;
    /// assert_eq!((nodes.len(), nodes[0].hidden_children, nodes[1].run.len()), (2, 1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn outline(&self, limits: OutlineLimits) -> Result<Vec<OutlineNode>, SetError>;
}

impl TrieOutline for Trie {
    fn outline(&self, limits: OutlineLimits) -> Result<Vec<OutlineNode>, SetError> {
        self.verify()?;
        if !self.is_tree() {
            let tree = self.canonical()?;
            let mut nodes = tree.outline(limits)?;
            for leaf in nodes.iter_mut().filter_map(|node| node.leaf.as_mut()) {
                // Leaves are numbered otherwise where they are ordered by text.
                *leaf = tree.leaf(*leaf).and_then(|leaf| self.find(&leaf.tokens)).unwrap_or(*leaf);
            }
            return Ok(nodes);
        }
        let mut nodes: Vec<OutlineNode> = Vec::new();
        // Where the run begins, its first token, the node above and the choices that may still follow.
        let mut open = vec![(Cursor::ROOT, None, None, limits.depth)];
        while let Some((at, first, parent, depth)) = open.pop() {
            let mut run: Vec<TokenId> = Vec::from_iter(first);
            let mut forced = self.forced(at);
            run.extend(forced.by_ref());
            let at = forced.position();
            let count = self.children(at).len();
            let shown = if depth == 0 { 0 } else { count.min(limits.children) };
            let number = nodes.len();
            // Last first, so that the first is taken from the stack next.
            for nth in (0..shown).rev() {
                open.push((self.child(at, nth), Some(self.children(at)[nth]), Some(number), depth - 1));
            }
            let hidden_leaves = if shown < count {
                self.leaves_below(at).end.saturating_sub(self.leaves_below(self.child(at, shown)).start)
            } else {
                0
            };
            nodes.push(OutlineNode {
                parent,
                run,
                leaf: self.leaf_at(at),
                leaves: self.leaves_below(at).len(),
                hidden_children: count - shown,
                hidden_leaves: hidden_leaves as usize,
            });
        }
        Ok(nodes)
    }
}
