//! Number of nodes in each level of a set, counted while its leaves go by in order.

use trie_core::BuildError;
use trie_core::TokenId;
use trie_core::storage::Cursors;
use trie_core::storage::fits;

/// The nodes at one depth.
#[derive(Debug, Clone, Default)]
pub(super) struct LevelCount {
    pub(super) nodes: u64,
    /// Number of nodes that end a leaf.
    pub(super) leaves: u64,
    /// Number of those that have children.
    pub(super) inner: u64,
    /// Nodes up to the last one that has children.
    pub(super) parents: u64,
    /// Nodes before the first that ends a leaf.
    before_leaves: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// Counts of each level, the root's first.
    levels: Vec<LevelCount>,
    leaves: u64,
    name_bytes: u64,
    max_token: TokenId,
    last_length: usize,
    /// No leaf is shorter than the one before it.
    ascending: bool,
}

impl Default for Shape {
    fn default() -> Self {
        let root = LevelCount { nodes: 1, ..LevelCount::default() };
        let levels = vec![root];
        Self { levels, leaves: 0, name_bytes: 0, max_token: TokenId::default(), last_length: 0, ascending: true }
    }
}

impl Shape {
    /// The next leaf: how many tokens it shares with the one before, its others, and the bytes of its name.
    pub(super) fn add(&mut self, shared: usize, tokens: &[TokenId], name: usize) {
        let length = shared + tokens.len();
        if self.levels.len() <= length {
            self.levels.resize(length + 1, LevelCount::default());
        }
        if self.leaves > 0 && shared == self.last_length {
            self.levels[shared].inner += 1;
        }
        for depth in shared + 1..=length {
            self.levels[depth].nodes += 1;
            self.levels[depth - 1].parents = self.levels[depth - 1].nodes;
        }
        let level = &mut self.levels[length];
        if level.leaves == 0 {
            level.before_leaves = level.nodes - 1;
        }
        level.leaves += 1;
        self.max_token = tokens.iter().copied().fold(self.max_token, TokenId::max);
        self.ascending &= length >= self.last_length;
        self.last_length = length;
        self.leaves += 1;
        self.name_bytes += name as u64;
    }

    /// Checks that 32 bits suffice.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let nodes = self.levels.iter().map(|level| level.nodes).sum();
        for (what, count) in [("nodes of the trie", nodes), ("bytes of all names", self.name_bytes)] {
            fits(what, usize::try_from(count).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }

    pub(super) fn levels(&self) -> &[LevelCount] {
        &self.levels
    }

    pub(super) fn leaves(&self) -> u64 {
        self.leaves
    }

    /// After `check`, as are the others that give 32 bits.
    pub(super) fn leaf_count(&self) -> u32 {
        self.leaves as u32
    }

    pub(super) fn node_count(&self) -> u32 {
        self.levels.iter().map(|level| level.nodes as u32).sum()
    }

    pub(super) fn max_token(&self) -> TokenId {
        self.max_token
    }

    pub(super) fn max_depth(&self) -> u32 {
        self.levels.len() as u32 - 1
    }

    pub(super) fn name_bytes(&self) -> usize {
        self.name_bytes as usize
    }

    /// Returns the start of the nodes and ends of each level.
    pub(super) fn cursors(&self) -> Cursors {
        let (mut nodes, mut ends) = (vec![0], vec![0]);
        for level in &self.levels {
            nodes.push(nodes[nodes.len() - 1] + level.nodes as u32);
            ends.push(ends[ends.len() - 1] + level.leaves as u32);
        }
        Cursors { nodes, ends, leaf: 0, length_before: 0 }
    }

    /// Returns whether the leaves are the last nodes, in leaf order.
    pub(super) fn leaves_are_last(&self) -> bool {
        let Some(first) = self.levels.iter().position(|level| level.leaves > 0) else { return false };
        let level = &self.levels[first];
        self.ascending
            && level.before_leaves + level.leaves == level.nodes
            && self.levels[first + 1..].iter().all(|level| level.leaves == level.nodes)
    }
}
