//! The shape of a trie, depth by depth.

use crate::set::ids::NodeId;
use crate::set::operations::SetError;
use crate::set::trie::{Cursor, Trie};

/// Statistics of one depth of a trie. A step leads to a node, and counts once for each leaf at or below the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// Nodes at this depth.
    pub nodes: usize,
    /// Number of steps that end a leaf.
    pub leaves: usize,
    /// Number of steps followed by a choice: between children, or to end or to continue.
    pub choices: usize,
    /// The most children of one node.
    pub most_children: usize,
    /// Steps to this depth.
    pub steps: usize,
    /// Number of steps without a choice before them.
    pub forced_steps: usize,
}

impl Trie {
    /// The levels from the root's downwards, of the canonical sequences if several stand for one leaf. `O(nodes)`.
    ///
    /// # Errors
    /// A damaged file that nobody verified.
    ///
    /// ```
    /// use trie_core::{TokenId, Trie};
    /// let mut builder = Trie::builder();
    /// for row in [[1, 2], [1, 3]] {
    ///     builder.push(None, &row.map(|id| TokenId::new(id).unwrap()));
    /// }
    /// let levels = builder.build()?.levels()?;
    /// let shape: Vec<_> = levels.iter().map(|level| (level.nodes, level.choices)).collect();
    /// assert_eq!(shape, [(1, 0), (1, 1), (2, 0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn levels(&self) -> Result<Vec<Level>, SetError> {
        self.verify()?;
        if !self.is_tree() {
            return self.canonical()?.levels();
        }
        let children = |node: usize| {
            let (first, tokens) = self.store().family(NodeId(node as u32));
            first as usize..first as usize + tokens.len()
        };
        let mut depth = vec![0u32; self.nodes()];
        for node in 0..self.nodes() {
            let deeper = depth[node] + 1;
            depth[children(node)].fill(deeper);
        }
        // Of a file that may change, whether a leaf ends depends on the depth too.
        let ends = |node: usize| self.is_terminal(Cursor::new(NodeId(node as u32), depth[node]));
        // Children are numbered after their parents: backwards, what is below a node is known before it is asked for.
        let mut below = vec![0usize; self.nodes()];
        for node in (0..self.nodes()).rev() {
            let deeper = children(node).fold(0, |sum: usize, child| sum.saturating_add(below[child]));
            below[node] = deeper.saturating_add(usize::from(ends(node)));
        }
        let mut levels: Vec<Level> = Vec::new();
        for (node, &level) in depth.iter().enumerate() {
            let level = level as usize;
            levels.resize(levels.len().max(level + 1), Level::default());
            let (family, leaf) = (children(node), ends(node));
            let choice = family.len() + usize::from(leaf) > 1;
            let at = &mut levels[level];
            at.nodes += 1;
            at.leaves += usize::from(leaf);
            at.choices += usize::from(choice);
            at.most_children = at.most_children.max(family.len());
            if family.is_empty() {
                continue;
            }
            levels.resize(levels.len().max(level + 2), Level::default());
            let steps = family.clone().fold(0, |sum: usize, child| sum.saturating_add(below[child]));
            let next = &mut levels[level + 1];
            next.steps = next.steps.saturating_add(steps);
            next.forced_steps = next.forced_steps.saturating_add(if choice { 0 } else { steps });
        }
        Ok(levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenId;

    #[test]
    fn counts_by_hand() {
        let mut builder = Trie::builder();
        for tokens in [&[1, 2][..], &[1, 2, 3], &[9], &[4, 4, 4]] {
            builder.push(None, &tokens.iter().filter_map(|&id| TokenId::new(id)).collect::<Vec<_>>());
        }
        let trie = builder.build().unwrap();
        let levels = trie.levels().unwrap();
        let level = |nodes, leaves, choices, most_children, steps, forced_steps| Level {
            nodes,
            leaves,
            choices,
            most_children,
            steps,
            forced_steps,
        };
        let expected = [
            level(1, 0, 1, 3, 0, 0),
            level(3, 1, 0, 1, 4, 0),
            // After [1, 2] a leaf ends or goes on.
            level(2, 1, 1, 1, 3, 3),
            level(2, 2, 0, 0, 2, 1),
        ];
        assert_eq!(levels, expected);
    }
}
