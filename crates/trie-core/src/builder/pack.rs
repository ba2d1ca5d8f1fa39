//! Writes leaves that are in order as the arrays of a trie.
//!
//! One cursor a level is enough: within a level, breadth-first order is the order of the leaves.

use super::order::Leaves;
use super::rows::{NameList, Source};
use super::threads::both;
use super::{BuildError, LIMIT};
use crate::ids::TokenId;
use crate::trie::{LeafTable, Names, Store};

pub(super) fn pack<S: Source>(
    source: &S,
    names: Option<NameList<'_>>,
    leaves: Leaves,
    threads: usize,
) -> Result<Store, BuildError> {
    let levels = Levels::new(source, &leaves)?;
    let ((tokens, max_token), (first_child, leaf_nodes)) =
        both(threads, || tokens(source, &leaves, &levels), || nodes(source, &leaves, &levels));
    let (table, inner_terminals) = leaf_table(leaf_nodes, &leaves.shared, &levels);
    let mut rows = leaves.rows;
    rows.shrink_to_fit();
    Ok(Store {
        max_token,
        max_depth: levels.last() as u32,
        tokens,
        first_child,
        inner_terminals,
        leaves: table,
        names: names.map(|names| pack_names(names, &leaves.named)),
        input_rows: rows,
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
    fn new<S: Source>(source: &S, leaves: &Leaves) -> Result<Self, BuildError> {
        // A leaf adds a node to each level from the one after those it shares to its own.
        let (mut begin, mut end): (Vec<u32>, Vec<u32>) = (vec![1, 0], vec![1, 0]);
        for (&row, &shared) in leaves.rows.iter().zip(&leaves.shared) {
            let length = source.length(row as usize);
            if end.len() <= length {
                begin.resize(length + 1, 0);
                end.resize(length + 1, 0);
            }
            begin[shared as usize + 1] += 1;
            end[length] += 1;
        }
        let mut levels =
            Self { nodes: Vec::with_capacity(begin.len() + 1), leaves: Vec::with_capacity(begin.len() + 1) };
        let (mut width, mut nodes, mut leaves) = (0, 0, 0);
        for (level, (begin, end)) in begin.into_iter().zip(end).enumerate() {
            levels.nodes.push(nodes as u32);
            levels.leaves.push(leaves);
            width += begin as usize;
            nodes += width;
            width -= end as usize;
            leaves += if level == 0 { 0 } else { end };
            if nodes > LIMIT {
                return Err(BuildError::TooLarge { what: "nodes of the trie", count: nodes, limit: LIMIT });
            }
        }
        levels.nodes.push(nodes as u32);
        levels.leaves.push(leaves);
        Ok(levels)
    }

    /// The number of the last level; the root's is 0.
    fn last(&self) -> usize {
        self.nodes.len() - 2
    }

    fn node_count(&self) -> u32 {
        self.nodes[self.last() + 1]
    }
}

/// The token of each node and the largest.
fn tokens<S: Source>(source: &S, leaves: &Leaves, levels: &Levels) -> (Vec<TokenId>, TokenId) {
    let mut next = levels.nodes.clone();
    let mut tokens: Vec<TokenId> = bytemuck::zeroed_vec(levels.node_count() as usize);
    let mut max = TokenId::default();
    for (&row, &shared) in leaves.rows.iter().zip(&leaves.shared) {
        let shared = shared as usize;
        for (&token, next) in source.row(row as usize)[shared..].iter().zip(&mut next[shared + 1..]) {
            tokens[*next as usize] = token;
            *next += 1;
            max = max.max(token);
        }
    }
    (tokens, max)
}

/// The first child of each node, and the node of each leaf where not all leaves end in the last level.
fn nodes<S: Source>(source: &S, leaves: &Leaves, levels: &Levels) -> (Vec<u32>, Option<Vec<u32>>) {
    let mut next = levels.nodes.clone();
    let last = levels.last();
    let mut first_child: Vec<u32> = bytemuck::zeroed_vec(levels.node_count() as usize + 1);
    first_child[0] = 1;
    // Nodes of the last level have no children.
    first_child[next[last] as usize..].fill(levels.node_count());
    let mut leaf_nodes = (levels.leaves[last] > 0).then(|| Vec::with_capacity(leaves.rows.len()));
    for (&row, &shared) in leaves.rows.iter().zip(&leaves.shared) {
        let length = source.length(row as usize);
        for depth in shared as usize + 1..=length.min(last - 1) {
            // Children are written in the order of their parents, so this node's begin at the next free place.
            first_child[next[depth] as usize] = next[depth + 1];
            next[depth] += 1;
        }
        next[last] += u32::from(length == last);
        if let Some(leaf_nodes) = &mut leaf_nodes {
            leaf_nodes.push(next[length] - 1);
        }
    }
    (first_child, leaf_nodes)
}

/// Both ways between leaves and nodes, and the nodes of the leaves that are prefixes of others.
fn leaf_table(leaf_nodes: Option<Vec<u32>>, shared: &[u32], levels: &Levels) -> (LeafTable, Vec<u32>) {
    let count = shared.len() as u32;
    let tail = LeafTable::Tail(levels.node_count() - count, count);
    let Some(nodes) = leaf_nodes else { return (tail, Vec::new()) };
    // Within a level nodes are numbered as the leaves are.
    let mut next = levels.leaves.clone();
    let mut by_node = vec![0; nodes.len()];
    for (leaf, &node) in (0..).zip(&nodes) {
        let level = levels.nodes.partition_point(|&begin| begin <= node) - 1;
        let next = &mut next[level];
        by_node[*next as usize] = leaf;
        *next += 1;
    }
    let mut inner = Vec::new();
    for (level, leaves) in levels.leaves.windows(2).enumerate() {
        let of_level = &by_node[leaves[0] as usize..leaves[1] as usize];
        let goes_on = |leaf: u32| shared.get(leaf as usize + 1).is_some_and(|&shared| shared as usize == level);
        inner.extend(of_level.iter().filter(|&&leaf| goes_on(leaf)).map(|&leaf| nodes[leaf as usize]));
    }
    if nodes.iter().copied().eq(levels.node_count() - count..levels.node_count()) {
        return (tail, inner);
    }
    (LeafTable::Table { nodes, by_node }, inner)
}

fn pack_names(names: NameList<'_>, rows: &[u32]) -> Names {
    let mut text = String::with_capacity(names.text.len());
    let mut ends = Vec::with_capacity(rows.len());
    for &row in rows {
        text.push_str(names.get(row));
        ends.push(text.len() as u32);
    }
    text.shrink_to_fit();
    Names { text, ends }
}
