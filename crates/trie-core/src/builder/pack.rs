//! Writes leaves that are in order as the arrays of a trie.
//!
//! One cursor a level is enough: within a level, breadth-first order is the order of the leaves.

use super::collect::{Leaves, NewLeaf};
use super::rows::NameList;
use super::threads::both;
use super::{BuildError, fits};
use crate::ids::TokenId;
use crate::packed::Packed;
use crate::trie::{LeafTable, Names, Store};
use std::mem::replace;

pub(super) fn pack(names: Option<NameList<'_>>, mut parts: Vec<Leaves>) -> Result<Store, BuildError> {
    let names = names.map(|names| pack_names(names, &parts));
    let mut rows = Vec::new();
    for part in &mut parts {
        take(&mut rows, &mut part.rows);
    }
    let (input_rows, levels) = both(parts.len(), || Packed::new(rows), || Levels::new(&parts));
    let levels = levels?;
    let ((tokens, max_token), nodes) = both(parts.len(), || tokens(&parts, &levels), || Nodes::new(&parts, &levels));
    Ok(Store {
        max_token,
        max_depth: levels.last() as u32,
        tokens: tokens.into(),
        first_child: nodes.first_child.into(),
        inner_terminals: nodes.inner_terminals.into(),
        leaves: nodes.leaves,
        verified: true,
        unread: None,
        graph: None,
        fingerprint: None,
        names,
        input_rows,
    })
}

/// Where the levels of the trie begin.
struct Levels {
    /// The first node of each level, the root's included, and after the last level the number of nodes.
    nodes: Vec<u32>,
    /// The same for the leaves that end in a level, in the order of their nodes.
    leaves: Vec<u32>,
}

impl Levels {
    fn new(parts: &[Leaves]) -> Result<Self, BuildError> {
        // A leaf adds a node to each level from the one after those it shares to its own.
        let (mut begin, mut end): (Vec<u32>, Vec<u32>) = (Vec::with_capacity(16), Vec::with_capacity(16));
        begin.extend([1, 0]);
        end.extend([1, 0]);
        Leaves::for_each(parts, |leaf| {
            let length = leaf.shared + leaf.tokens.len();
            if end.len() <= length {
                begin.resize(length + 1, 0);
                end.resize(length + 1, 0);
            }
            begin[leaf.shared + 1] += 1;
            end[length] += 1;
        });
        let (mut width, mut nodes, mut leaves) = (0, 0, 0);
        for (level, (begin, end)) in begin.iter_mut().zip(&mut end).enumerate() {
            width += replace(begin, nodes as u32) as usize;
            nodes += width;
            let ended = replace(end, leaves);
            width -= ended as usize;
            leaves += if level == 0 { 0 } else { ended };
            fits("nodes of the trie", nodes)?;
        }
        begin.push(nodes as u32);
        end.push(leaves);
        Ok(Self { nodes: begin, leaves: end })
    }

    /// The number of the last level; the root's is 0.
    fn last(&self) -> usize {
        self.nodes.len() - 2
    }

    fn node_count(&self) -> u32 {
        self.nodes[self.last() + 1]
    }

    fn leaf_count(&self) -> u32 {
        self.leaves[self.last() + 1]
    }

    /// All leaves are the last nodes.
    fn tail(&self) -> LeafTable {
        LeafTable::Tail(self.node_count() - self.leaf_count(), self.leaf_count())
    }
}

/// Appends without a copy where there is nothing yet.
fn take(all: &mut Vec<u32>, part: &mut Vec<u32>) {
    if all.is_empty() { std::mem::swap(all, part) } else { all.append(part) }
}

/// The token of each node and the largest.
fn tokens(parts: &[Leaves], levels: &Levels) -> (Vec<TokenId>, TokenId) {
    let mut next = levels.nodes.clone();
    let mut tokens: Vec<TokenId> = bytemuck::zeroed_vec(levels.node_count() as usize);
    let mut max = TokenId::default();
    Leaves::for_each(parts, |leaf| {
        for (&token, next) in leaf.tokens.iter().zip(&mut next[leaf.shared + 1..]) {
            tokens[*next as usize] = token;
            *next += 1;
            max = max.max(token);
        }
    });
    (tokens, max)
}

/// All of a trie but its tokens.
struct Nodes {
    first_child: Vec<u32>,
    inner_terminals: Vec<u32>,
    leaves: LeafTable,
}

impl Nodes {
    fn new(parts: &[Leaves], levels: &Levels) -> Self {
        let mut next = levels.nodes.clone();
        let last = levels.last();
        // Nodes of the last level have no children, and nodes before it may have none either.
        let mut first_child: Vec<u32> = bytemuck::zeroed_vec(levels.nodes[last] as usize + 1);
        first_child[0] = 1;
        first_child[levels.nodes[last] as usize] = levels.node_count();
        let mut table = (levels.leaves[last] > 0).then(|| Table::new(levels));
        Leaves::for_each(parts, |leaf| {
            let length = leaf.shared + leaf.tokens.len();
            for depth in leaf.shared + 1..=length.min(last - 1) {
                // Children are written in the order of their parents, so this node's begin at the next free place.
                first_child[next[depth] as usize] = next[depth + 1];
                next[depth] += 1;
            }
            next[last] += u32::from(length == last);
            if let Some(table) = &mut table {
                table.push(next[length] - 1, &leaf, length);
            }
        });
        let parents = first_child.partition_point(|&first| first < levels.node_count());
        first_child.truncate(parents + 1);
        let (leaves, inner_terminals) = table.map_or_else(|| (levels.tail(), Vec::new()), |table| table.finish(levels));
        Self { first_child, inner_terminals, leaves }
    }
}

/// Both ways between leaves and nodes, where not all leaves end in the last level.
struct Table {
    nodes: Vec<u32>,
    by_node: Vec<u32>,
    /// The next place for a leaf of each level: within a level nodes are numbered as leaves are.
    next: Vec<u32>,
    /// Nodes of the leaves that are prefixes of others.
    inner: Vec<u32>,
    last_length: usize,
}

impl Table {
    fn new(levels: &Levels) -> Self {
        let count = levels.leaf_count() as usize;
        let (nodes, by_node) = (Vec::with_capacity(count), vec![0; count]);
        Self { nodes, by_node, next: levels.leaves.clone(), inner: Vec::new(), last_length: 0 }
    }

    #[inline]
    fn push(&mut self, node: u32, leaf: &NewLeaf<'_>, length: usize) {
        if leaf.shared == self.last_length {
            self.inner.extend(self.nodes.last());
        }
        self.last_length = length;
        self.by_node[self.next[length] as usize] = self.nodes.len() as u32;
        self.next[length] += 1;
        self.nodes.push(node);
    }

    fn finish(mut self, levels: &Levels) -> (LeafTable, Vec<u32>) {
        self.inner.sort_unstable();
        self.inner.shrink_to_fit();
        let first = levels.node_count() - levels.leaf_count();
        if self.nodes.iter().copied().eq(first..levels.node_count()) {
            return (levels.tail(), self.inner);
        }
        (LeafTable::Table { nodes: self.nodes.into(), by_node: self.by_node.into() }, self.inner)
    }
}

fn pack_names(names: NameList<'_>, parts: &[Leaves]) -> Names {
    let mut text = String::with_capacity(names.text.len());
    let mut ends = Vec::with_capacity(parts.iter().map(|part| part.rows.len()).sum());
    for (_, row) in Leaves::origins(parts) {
        text.push_str(names.get(row));
        ends.push(text.len() as u32);
    }
    Names { text: text.into_bytes().into(), ends: ends.into() }
}
