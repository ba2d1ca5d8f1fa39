//! From leaves in any order to the packed, breadth-first trie.

use crate::ids::TokenId;
use crate::trie::{LeafTable, Names, Store, Trie};

/// Collects leaves; [`TrieBuilder::build`] packs them. Order does not matter: the same set gives the same trie.
#[derive(Debug, Clone, Default)]
pub struct TrieBuilder {
    tokens: Vec<TokenId>,
    ends: Vec<usize>,
    names: String,
    name_ends: Vec<usize>,
}

/// Leaves that make no trie.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// There is nothing to choose from.
    #[error("the set has no leaf")]
    NoLeaves,
    /// A leaf without tokens could never be produced.
    #[error("row {row} is empty: a leaf needs at least one token")]
    EmptySequence {
        /// The row, from 0 in the order of the input.
        row: usize,
    },
    /// Names are given for all leaves or for none.
    #[error("{names} of {rows} leaves have a name: give all of them one, or none")]
    MixedNames {
        /// Leaves with a name.
        names: usize,
        /// All leaves.
        rows: usize,
    },
    /// 32-bit offsets would not be enough.
    #[error("{what}: {count} is over the limit of {limit}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        count: usize,
        /// How much there may be.
        limit: usize,
    },
}

/// Nodes, rows and bytes of names are counted in 32 bits; one value is kept free.
const LIMIT: usize = u32::MAX as usize - 1;

/// A row in sorting order: its first two tokens as one number decide nearly every comparison.
#[derive(Clone, Copy)]
struct Row {
    key: u64,
    row: u32,
}

/// The rows that stand for one leaf.
#[derive(Clone, Copy)]
struct UniqueRow {
    /// Carries the smallest name.
    named: u32,
    /// Came first in the input.
    first: u32,
}

impl TrieBuilder {
    /// A builder with room for `rows` leaves of `tokens` tokens together.
    pub fn with_capacity(rows: usize, tokens: usize) -> Self {
        Self { tokens: Vec::with_capacity(tokens), ends: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Adds a leaf. Equal sequences become one leaf with the smallest name, by code point.
    pub fn push(&mut self, name: Option<&str>, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
        self.ends.push(self.tokens.len());
        if let Some(name) = name {
            self.names.push_str(name);
            self.name_ends.push(self.names.len());
        }
    }

    /// Leaves so far.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no leaf yet.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn row(&self, row: u32) -> &[TokenId] {
        slice_of(&self.tokens, &self.ends, row)
    }

    fn name(&self, row: u32) -> &[u8] {
        if self.name_ends.is_empty() { &[] } else { slice_of(self.names.as_bytes(), &self.name_ends, row) }
    }

    /// Sorts the leaves and packs them. `O(n log n)` comparisons, one pass to write.
    ///
    /// # Errors
    /// No leaf at all, an empty leaf, names for some leaves only, or more than 32-bit offsets can address.
    pub fn build(self) -> Result<Trie, BuildError> {
        self.check()?;
        let order = self.sorted();
        let (leaves, shared) = self.unique(&order);
        let level_starts = self.level_starts(&leaves, &shared)?;
        Ok(Trie::from_store(self.pack(&leaves, &shared, level_starts)))
    }

    fn check(&self) -> Result<(), BuildError> {
        if self.is_empty() {
            return Err(BuildError::NoLeaves);
        }
        for (what, count) in [
            ("leaves", self.len()),
            ("tokens of all leaves", self.tokens.len()),
            ("bytes of all names", self.names.len()),
        ] {
            if count > LIMIT {
                return Err(BuildError::TooLarge { what, count, limit: LIMIT });
            }
        }
        if !self.name_ends.is_empty() && self.name_ends.len() != self.len() {
            return Err(BuildError::MixedNames { names: self.name_ends.len(), rows: self.len() });
        }
        let mut begin = 0;
        for (row, &end) in self.ends.iter().enumerate() {
            if begin == end {
                return Err(BuildError::EmptySequence { row });
            }
            begin = end;
        }
        Ok(())
    }

    /// All rows by tokens, then name, then place in the input.
    fn sorted(&self) -> Vec<Row> {
        let key = |tokens: &[TokenId]| {
            // One is added so that "no second token" sorts before every token.
            let part = |at: usize| tokens.get(at).map_or(0, |token| u64::from(token.get()) + 1);
            part(0) << 32 | part(1)
        };
        let mut begin = 0;
        let mut rows: Vec<Row> = Vec::with_capacity(self.len());
        for (row, &end) in self.ends.iter().enumerate() {
            rows.push(Row { key: key(&self.tokens[begin..end]), row: row as u32 });
            begin = end;
        }
        rows.sort_unstable_by(|a, b| {
            a.key
                .cmp(&b.key)
                .then_with(|| self.row(a.row).cmp(self.row(b.row)))
                .then_with(|| self.name(a.row).cmp(self.name(b.row)))
                .then(a.row.cmp(&b.row))
        });
        rows
    }

    /// One row for each leaf, and how many tokens it shares with the leaf before it.
    fn unique(&self, order: &[Row]) -> (Vec<UniqueRow>, Vec<u32>) {
        let mut leaves: Vec<UniqueRow> = Vec::with_capacity(order.len());
        let mut shared = Vec::with_capacity(order.len());
        for row in order {
            let tokens = self.row(row.row);
            let before = leaves.last().map_or(&[][..], |leaf| self.row(leaf.named));
            let common = tokens.iter().zip(before).take_while(|(a, b)| a == b).count();
            match leaves.last_mut() {
                // Names were sorted too, so the row kept for the name stays the smallest one.
                Some(leaf) if common == tokens.len() && common == before.len() => leaf.first = leaf.first.min(row.row),
                _ => {
                    leaves.push(UniqueRow { named: row.row, first: row.row });
                    shared.push(common as u32);
                }
            }
        }
        (leaves, shared)
    }

    /// The first node of each level, the root's included, and after the last level the number of nodes.
    fn level_starts(&self, leaves: &[UniqueRow], shared: &[u32]) -> Result<Vec<u32>, BuildError> {
        let depth = leaves.iter().map(|leaf| self.row(leaf.named).len()).max().unwrap_or(0);
        let mut width = vec![0u32; depth + 1];
        width[0] = 1;
        for (leaf, &shared) in leaves.iter().zip(shared) {
            for level in &mut width[shared as usize + 1..=self.row(leaf.named).len()] {
                *level += 1;
            }
        }
        let mut start = 0usize;
        let mut starts = Vec::with_capacity(depth + 2);
        for width in width {
            starts.push(start as u32);
            start += width as usize;
        }
        if start > LIMIT {
            return Err(BuildError::TooLarge { what: "nodes of the trie", count: start, limit: LIMIT });
        }
        starts.push(start as u32);
        Ok(starts)
    }

    /// Writes every level with one cursor each: within a level, breadth-first order is the order of the rows.
    fn pack(&self, leaves: &[UniqueRow], shared: &[u32], mut next: Vec<u32>) -> Store {
        let nodes = next.last().copied().unwrap_or(1) as usize;
        let mut tokens = vec![TokenId::default(); nodes];
        let mut first_child = vec![nodes as u32; nodes + 1];
        first_child[0] = 1;
        let mut leaf_nodes = Vec::with_capacity(leaves.len());
        let mut inner_terminals = Vec::new();
        for (index, leaf) in leaves.iter().enumerate() {
            let row = self.row(leaf.named);
            for (depth, &token) in row.iter().enumerate().skip(shared[index] as usize) {
                let node = next[depth + 1];
                next[depth + 1] += 1;
                tokens[node as usize] = token;
                // Children are written in the order of their parents, so this node's begin at the next free place.
                first_child[node as usize] = next[depth + 2];
            }
            let node = next[row.len()] - 1;
            leaf_nodes.push(node);
            if shared.get(index + 1).is_some_and(|&next| next as usize == row.len()) {
                inner_terminals.push(node);
            }
        }
        inner_terminals.sort_unstable();
        Store {
            max_token: tokens.iter().copied().max().unwrap_or_default(),
            max_depth: next.len() as u32 - 2,
            tokens: tokens.into(),
            first_child: first_child.into(),
            inner_terminals: inner_terminals.into(),
            verified: true,
            leaves: LeafTable::new(leaf_nodes, nodes as u32),
            names: self.pack_names(leaves),
            input_rows: leaves.iter().map(|leaf| leaf.first).collect(),
        }
    }

    fn pack_names(&self, leaves: &[UniqueRow]) -> Option<Names> {
        if self.name_ends.is_empty() {
            return None;
        }
        let mut text = String::with_capacity(self.names.len());
        let mut ends = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let end = self.name_ends[leaf.named as usize];
            let begin = (leaf.named as usize).checked_sub(1).map_or(0, |before| self.name_ends[before]);
            text.push_str(&self.names[begin..end]);
            ends.push(text.len() as u32);
        }
        Some(Names { text: text.into_bytes().into(), ends: ends.into() })
    }
}

fn slice_of<'a, T>(all: &'a [T], ends: &[usize], row: u32) -> &'a [T] {
    let row = row as usize;
    let begin = row.checked_sub(1).map_or(0, |before| ends[before]);
    &all[begin..ends[row]]
}

impl LeafTable {
    fn new(nodes: Vec<u32>, node_count: u32) -> Self {
        let first = node_count - nodes.len() as u32;
        if nodes.iter().copied().eq(first..node_count) {
            return Self::Tail(first, nodes.len() as u32);
        }
        let mut by_node: Vec<u32> = (0..nodes.len() as u32).collect();
        by_node.sort_unstable_by_key(|&leaf| nodes[leaf as usize]);
        Self::Table { nodes: nodes.into(), by_node: by_node.into() }
    }
}
