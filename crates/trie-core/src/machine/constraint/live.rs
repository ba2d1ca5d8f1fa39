//! Nodes of a trie that lead to an allowed leaf: computed from the leaves upwards, and only for the leaves that are
//! stored.

use crate::set::ids::{LeafId, NodeId};
use crate::set::leaf_set::{LeafSet, slice_within};
use crate::set::storage::store::{LeafTable, Store};
use crate::set::trie::{Cursor, Trie};
use std::collections::VecDeque;
use std::ops::Range;

/// The nodes of a trie that lead to an allowed leaf, in the form that is smallest.
#[derive(Debug)]
pub(super) enum Live {
    /// All but these, ascending.
    AllBut(Box<[u32]>),
    /// Only these nodes, ascending.
    Only(Box<[u32]>),
    /// A bit for each node.
    Bits(Box<[u64]>),
}

/// Up to this many nodes, one bit for each takes at most half a megabyte: it is written in microseconds and looked up
/// without a search. In tests the limit is low, so that small sets take both paths.
const FEW: usize = if cfg!(debug_assertions) { 64 } else { 1 << 22 };

impl Live {
    /// `O(d log n)` if the set lists `d` leaves, `O(nodes)` if it stores bits, and `O(edges)` for a graph.
    pub(super) fn from_leaves(trie: &Trie, leaves: &LeafSet) -> Self {
        let store = trie.store();
        if !trie.is_tree() {
            return Self::Bits(bits(store, leaves));
        }
        let nodes_of = |leaves: &[u32]| {
            let mut nodes: Vec<u32> =
                leaves.iter().filter_map(|&leaf| store.leaves.node(LeafId(leaf))).map(|node| node.0).collect();
            // In order already where all leaves are equally long.
            nodes.sort_unstable();
            nodes
        };
        match leaves.listed_leaves() {
            Some((denied, true)) => {
                let dead = dead(trie, leaves, &nodes_of(denied));
                if store.nodes() > FEW { Self::AllBut(dead.into()) } else { Self::Bits(bits_of(store, &dead, true)) }
            }
            Some((allowed, false)) => {
                let live = with_ancestors(store, &nodes_of(allowed));
                if store.nodes() > FEW { Self::Only(live.into()) } else { Self::Bits(bits_of(store, &live, false)) }
            }
            None => Self::Bits(bits(store, leaves)),
        }
    }

    /// Returns whether a node leads to an allowed leaf.
    #[inline]
    pub(super) fn contains(&self, node: u32) -> bool {
        match self {
            Self::AllBut(dead) => dead.binary_search(&node).is_err(),
            Self::Only(live) => live.binary_search(&node).is_ok(),
            Self::Bits(words) => is_set(words, node),
        }
    }

    /// Counts the nodes of a range that lead to an allowed leaf.
    #[inline]
    pub(super) fn count(&self, nodes: Range<u32>) -> usize {
        match self {
            Self::AllBut(dead) => nodes.len() - slice_within(dead, nodes).len(),
            Self::Only(live) => slice_within(live, nodes).len(),
            Self::Bits(words) => ones(words, nodes),
        }
    }

    /// Calls back with each of these nodes that does, ascending.
    pub(super) fn for_each_live(&self, nodes: Range<u32>, mut with: impl FnMut(u32)) {
        match self {
            Self::AllBut(dead) => {
                let mut from = nodes.start;
                for &node in slice_within(dead, nodes.clone()) {
                    (from..node).for_each(&mut with);
                    from = node + 1;
                }
                (from..nodes.end).for_each(with);
            }
            Self::Only(live) => slice_within(live, nodes).iter().copied().for_each(with),
            Self::Bits(words) => nodes.filter(|&node| is_set(words, node)).for_each(with),
        }
    }
}

fn is_set(words: &[u64], node: u32) -> bool {
    words.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
}

fn ones(words: &[u64], nodes: Range<u32>) -> usize {
    let (first, last) = (nodes.start as usize / 64, nodes.end as usize / 64);
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let low = u64::MAX << (nodes.start % 64);
    let high = (1u64 << (nodes.end % 64)) - 1;
    if first == last {
        return (word(first) & low & high).count_ones() as usize;
    }
    let whole: u32 =
        words.get(first + 1..last.min(words.len())).unwrap_or_default().iter().map(|w| w.count_ones()).sum();
    ((word(first) & low).count_ones() + whole + (word(last) & high).count_ones()) as usize
}

/// The parent of a node, searched from the parent of a later one on: neighbours have neighbours for parents.
struct Parents<'s> {
    store: &'s Store,
    from: usize,
    /// Distance between the last two hits, used as a guess for the next distance.
    stride: usize,
}

impl<'s> Parents<'s> {
    fn new(store: &'s Store) -> Self {
        Self { store, from: store.first_child.len().saturating_sub(1), stride: 1 }
    }

    /// `None` for the root, and in damaged arrays for anything that is not a child of a lower node.
    fn parent(&self, node: u32) -> Option<u32> {
        let first = &self.store.first_child;
        let (mut high, mut step) = (self.from + 1, self.stride + 1);
        let low = loop {
            let low = high.saturating_sub(step);
            if low == 0 || first.get(low).is_none_or(|&first| first <= node) {
                break low;
            }
            (high, step) = (low, step * 2);
        };
        let after = low + first.get(low..high.min(first.len()))?.partition_point(|&first| first <= node);
        let parent = after.checked_sub(1)? as u32;
        (parent < node).then_some(parent)
    }

    /// No later child than those of this node is asked for any more.
    fn came_to(&mut self, parent: Option<u32>) {
        if let Some(parent) = parent.map(|parent| parent as usize) {
            self.stride = self.from.saturating_sub(parent);
            self.from = parent;
        }
    }
}

/// Ascending nodes and all above them.
fn with_ancestors(store: &Store, nodes: &[u32]) -> Vec<u32> {
    let mut live: Vec<u32> = Vec::with_capacity(nodes.len() * 2);
    let (mut parents, mut above) = (Parents::new(store), VecDeque::new());
    let mut below = nodes.iter().rev().copied().peekable();
    // The highest first: so parents come in order, too.
    while let Some(node) = below.peek().copied().max(above.front().copied()) {
        below.next_if_eq(&node);
        if above.front() == Some(&node) {
            above.pop_front();
        }
        if live.last() == Some(&node) {
            continue;
        }
        live.push(node);
        let parent = parents.parent(node);
        parents.came_to(parent);
        if let Some(parent) = parent.filter(|parent| above.back() != Some(parent)) {
            above.push_back(parent);
        }
    }
    live.reverse();
    live
}

/// The nodes that lead to no allowed leaf, from the ascending nodes of the leaves that are denied.
fn dead(trie: &Trie, leaves: &LeafSet, denied: &[u32]) -> Vec<u32> {
    let store = trie.store();
    let mut dead: Vec<u32> = Vec::with_capacity(denied.len());
    let (mut parents, mut above) = (Parents::new(store), VecDeque::new());
    let childless = |&node: &u32| store.children(NodeId(node)).is_empty();
    let mut below = denied.iter().rev().copied().filter(childless).peekable();
    // The parent of those that were looked at last, and how many of its children are dead.
    let mut family: Option<(u32, usize)> = None;
    loop {
        let node = below.peek().copied().max(above.front().copied());
        let parent = node.and_then(|node| parents.parent(node));
        if let Some((complete, count)) = family.filter(|family| Some(family.0) != parent) {
            family = None;
            if count == store.children(NodeId(complete)).len() && !ends_allowed(trie, leaves, complete) {
                above.push_back(complete);
                // It may be higher than the one that is next.
                continue;
            }
        }
        let Some(node) = node else { break };
        if below.next_if_eq(&node).is_none() {
            above.pop_front();
        }
        dead.push(node);
        parents.came_to(parent);
        family = parent.map(|parent| (parent, family.map_or(0, |family| family.1) + 1));
    }
    dead.reverse();
    dead
}

/// A bit for each node of these, or of all others.
fn bits_of(store: &Store, nodes: &[u32], others: bool) -> Box<[u64]> {
    let mut words = vec![if others { u64::MAX } else { 0 }; store.nodes().div_ceil(64)];
    for &node in nodes {
        if let Some(word) = words.get_mut(node as usize / 64) {
            let bit = 1 << (node % 64);
            *word = if others { *word & !bit } else { *word | bit };
        }
    }
    words.into()
}

/// Returns whether an allowed leaf ends at this node, which has children.
pub(super) fn ends_allowed(trie: &Trie, leaves: &LeafSet, node: u32) -> bool {
    let inner = trie.is_inner_terminal(Cursor::new(NodeId(node), 0));
    inner && trie.store().leaves.leaf(NodeId(node)).is_some_and(|leaf| leaves.contains(leaf))
}

/// A bit for each node that leads to one of these leaves. In a graph the leaves below a node say more than is reached
/// from it, so its edges are followed.
fn bits(store: &Store, leaves: &LeafSet) -> Box<[u64]> {
    let count = store.nodes();
    let mut words = vec![0u64; count.div_ceil(64)];
    let mut set = |node: u32| {
        if let Some(word) = words.get_mut(node as usize / 64).filter(|_| (node as usize) < count) {
            *word |= 1 << (node % 64);
        }
    };
    match &store.leaves {
        LeafTable::Ends { nodes, leaves: of, .. } => {
            nodes
                .iter()
                .zip(&**of)
                .filter(|&(_, &leaf)| leaves.contains(LeafId(leaf)))
                .for_each(|(&node, _)| set(node));
        }
        _ => leaves.iter().filter_map(|leaf| store.leaves.node(leaf)).for_each(|node| set(node.0)),
    }
    // Children are numbered above their parents: from the last one on each is final when it is looked at.
    for parent in (0..store.first_child.len().saturating_sub(1).min(count) as u32).rev() {
        let (first, children) = store.family(NodeId(parent));
        let edges = first..first + children.len() as u32;
        let live = match &store.graph {
            None => ones(&words, edges) > 0,
            Some(graph) => edges.into_iter().any(|edge| is_set(&words, graph.target(NodeId(parent), edge).0)),
        };
        if live {
            words[parent as usize / 64] |= 1 << (parent % 64);
        }
    }
    words.into()
}
