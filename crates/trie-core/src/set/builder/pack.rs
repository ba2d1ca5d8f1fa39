//! Writes sorted leaves as the arrays of a trie.
//!
//! Counts alone determine where each part of the leaves begins in each level. So all parts are written at the same
//! time, each with its own cursors (`layout.rs`).

use super::collect::Leaves;
use super::sequences::NameList;
use super::threads::Threads;
use super::{BuildError, fits};
use crate::set::ids::TokenId;
use crate::set::storage::layout::{Cursors, Sink};
use crate::set::storage::packed::PackedInts;
use crate::set::trie::{LeafTable, Names, Store};
use std::convert::Infallible;
use std::mem::replace;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) fn pack(names: Option<NameList<'_>>, parts: &[Leaves], threads: &Threads) -> Result<Store, BuildError> {
    let (levels, cursors) = Levels::new(parts)?;
    let arrays = Arrays::new(&levels);
    let mut input_rows = PackedInts::room(parts.iter().map(|part| &part.rows[..]));
    let others = || {
        input_rows.fill(parts.iter().map(|part| &part.rows[..]));
        names.map(|names| pack_names(names, parts))
    };
    let work = parts.iter().zip(cursors).collect();
    let write = || threads.map_parts(work, |(part, cursors)| arrays.write(part, cursors));
    let (names, written) = threads.run_both(others, write);
    let max_token = written.iter().map(|(max, _)| *max).max().unwrap_or_default();
    let inner = written.into_iter().flat_map(|(_, inner)| inner).collect();
    Ok(arrays.store(&levels, max_token, inner, input_rows, names))
}

/// Start of each level of the trie.
struct Levels {
    /// The first node of each level, the root's included, and after the last level the number of nodes.
    nodes: Vec<u32>,
    /// The same for the leaves that end in a level, in the order of their nodes.
    leaves: Vec<u32>,
}

impl Levels {
    /// Counts the levels, and returns also the start of each part.
    fn new(parts: &[Leaves]) -> Result<(Self, Vec<Cursors>), BuildError> {
        let last = parts.iter().filter_map(|part| part.ends.iter().rposition(|&ends| ends > 0)).max().unwrap_or(0);
        // First how many nodes and ends there are in each level, then where it begins.
        let (mut nodes, mut leaves, mut leaf) = (vec![0; last + 2], vec![0; last + 2], 0);
        let mut cursors = Vec::with_capacity(parts.len());
        for part in parts {
            let length_before = part.length_before as usize;
            cursors.push(Cursors { nodes: nodes.clone(), ends: leaves.clone(), leaf, length_before });
            // A leaf adds a node to each level from the one after those it shares to its own.
            let mut width = 0;
            for (level, (begins, ends)) in part.begins.iter().zip(&part.ends).enumerate().take(last + 1) {
                width += begins;
                nodes[level] += width;
                leaves[level] += ends;
                width -= ends;
            }
            leaf += part.rows.len() as u32;
        }
        fits("nodes of the trie", 1 + nodes.iter().map(|&nodes| nodes as usize).sum::<usize>())?;
        nodes[0] = 1;
        let [mut node, mut end] = [0; 2];
        for (nodes, leaves) in nodes.iter_mut().zip(&mut leaves) {
            node += replace(nodes, node);
            end += replace(leaves, end);
        }
        for part in &mut cursors {
            part.nodes.iter_mut().zip(&nodes).for_each(|(node, begin)| *node += begin);
            part.ends.iter_mut().zip(&leaves).for_each(|(end, begin)| *end += begin);
        }
        Ok((Self { nodes, leaves }, cursors))
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

    /// The table for leaves that are exactly the last nodes.
    fn tail(&self) -> LeafTable {
        LeafTable::Tail(self.node_count() - self.leaf_count(), self.leaf_count())
    }
}

/// Output arrays that several threads fill, each item once.
struct Arrays {
    tokens: Vec<AtomicU32>,
    first_child: Vec<AtomicU32>,
    /// The node of each leaf, and the leaves by node, unless all leaves end in the last level.
    table: Option<[Vec<AtomicU32>; 2]>,
}

fn zeroed_counters(items: u32) -> Vec<AtomicU32> {
    bytemuck::zeroed_vec(items as usize)
}

#[inline]
fn store(items: &[AtomicU32], at: u32, value: u32) {
    items[at as usize].store(value, Ordering::Relaxed);
}

fn plain(items: Vec<AtomicU32>) -> Vec<u32> {
    items.into_iter().map(AtomicU32::into_inner).collect()
}

impl Arrays {
    fn new(levels: &Levels) -> Self {
        let (last, leaves) = (levels.last(), levels.leaf_count());
        // Nodes of the last level have no children, and nodes before it may have none either.
        let first_child = zeroed_counters(levels.nodes[last] + 1);
        store(&first_child, 0, 1);
        store(&first_child, levels.nodes[last], levels.node_count());
        let table = (levels.leaves[last] > 0).then(|| [zeroed_counters(leaves), zeroed_counters(leaves)]);
        Self { tokens: zeroed_counters(levels.node_count()), first_child, table }
    }

    /// Writes a part. Returns its largest token, and its nodes that end a leaf and have children.
    fn write(&self, part: &Leaves, mut cursors: Cursors) -> (TokenId, Vec<u32>) {
        let mut sink = PartSink {
            tokens: &self.tokens,
            first_child: &self.first_child,
            table: self.table.as_ref().map(|table| table.each_ref().map(Vec::as_slice)),
            max_token: TokenId::default(),
            inner: Vec::new(),
        };
        part.for_each(|leaf| {
            let Ok(()) = cursors.push(leaf.shared, leaf.tokens, &mut sink);
        });
        (sink.max_token, sink.inner)
    }

    fn store(
        self,
        levels: &Levels,
        max_token: TokenId,
        mut inner: Vec<u32>,
        input_rows: PackedInts,
        names: Option<Names>,
    ) -> Store {
        inner.sort_unstable();
        let mut first_child = plain(self.first_child);
        let parents = first_child.partition_point(|&first| first < levels.node_count());
        first_child.truncate(parents + 1);
        let nodes = self.table.map(|table| table.map(plain));
        let tail = levels.node_count() - levels.leaf_count()..levels.node_count();
        let leaves = match nodes {
            Some([nodes, by_node]) if !nodes.iter().copied().eq(tail) => {
                LeafTable::Table { nodes: nodes.into(), by_node: by_node.into() }
            }
            _ => levels.tail(),
        };
        Store {
            max_token,
            max_depth: levels.last() as u32,
            tokens: bytemuck::allocation::cast_vec::<u32, TokenId>(plain(self.tokens)).into(),
            first_child: first_child.into(),
            inner_terminals: inner.into(),
            leaves,
            verified: true,
            graph: None,
            unread: None,
            names,
            input_rows,
        }
    }
}

/// One part on its way into the arrays.
struct PartSink<'a> {
    tokens: &'a [AtomicU32],
    first_child: &'a [AtomicU32],
    table: Option<[&'a [AtomicU32]; 2]>,
    max_token: TokenId,
    inner: Vec<u32>,
}

impl Sink for PartSink<'_> {
    type Error = Infallible;

    #[inline]
    fn node(&mut self, _: usize, node: u32, token: TokenId, first_child: Option<u32>) -> Result<(), Infallible> {
        store(self.tokens, node, token.get());
        if let Some(first_child) = first_child {
            store(self.first_child, node, first_child);
        }
        self.max_token = self.max_token.max(token);
        Ok(())
    }

    #[inline]
    fn end(&mut self, _: usize, leaf: u32, node: u32, nth: u32) -> Result<(), Infallible> {
        if let Some([nodes, by_node]) = self.table {
            store(nodes, leaf, node);
            store(by_node, nth, leaf);
        }
        Ok(())
    }

    #[inline]
    fn inner_terminal(&mut self, _: usize, node: u32) -> Result<(), Infallible> {
        self.inner.push(node);
        Ok(())
    }
}

fn pack_names(names: NameList<'_>, parts: &[Leaves]) -> Names {
    let mut text = String::with_capacity(names.text.len());
    let mut ends = Vec::with_capacity(parts.iter().map(|part| part.rows.len()).sum());
    for (_, row) in parts.iter().flat_map(Leaves::origins) {
        text.push_str(names.get(row));
        ends.push(text.len() as u32);
    }
    Names::new(text.into_bytes().into(), ends.into())
}
