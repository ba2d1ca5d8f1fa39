//! Builds the arrays of a set from nodes in order and the edges of each.

use super::Graph;
use crate::set::builder::{BuildError, fits};
use crate::set::ids::TokenId;
use crate::set::storage::packed::PackedInts;
use crate::set::trie::{LeafTable, Names, Store, Trie};

/// Marks a missing node.
const NONE: u32 = u32::MAX;

/// Nodes numbered so that edges lead to higher numbers and the leaves at and below a node are neighbours. Their edges
/// are given later.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The number of the first leaf after those at and below each node.
    pub(super) leaves_end: Vec<u32>,
    /// The token that is forced at each node; if absent, a token is forced where it is the only one.
    pub(super) forced: Option<Vec<Option<TokenId>>>,
    /// Pairs of a node and the leaf that it ends, ascending. Several may end one.
    pub(super) ends: Vec<(u32, u32)>,
    /// The canonical sequence of each leaf, and where it ends among them.
    pub(super) canonical: Vec<TokenId>,
    pub(super) canonical_ends: Vec<u32>,
    pub(super) names: Option<Names>,
    pub(super) input_rows: Vec<u32>,
}

/// Edges of the nodes that are on a path from the root to the end of a leaf.
struct Edges {
    /// Token and target, the edges of one node together.
    all: Vec<(TokenId, u32)>,
    /// End of the edges of each node; nodes from the last to the first.
    ends: Vec<usize>,
}

impl Draft {
    pub(super) fn nodes(&self) -> usize {
        self.leaves_end.len()
    }

    /// The set. `edges` adds the edges of one node, each token once, in any order. Nodes that are not on a path from
    /// the root to the end of a leaf are dropped. `stop` is asked now and then. `O(edges · log)`.
    ///
    /// # Errors
    /// More edges than 32 bits can count, or a stop by `stop`; a leaf that cannot be reached, by its number.
    pub(super) fn pack(
        self,
        stop: &dyn Fn() -> bool,
        edges: impl FnMut(u32, &mut Vec<(TokenId, u32)>),
    ) -> Result<Result<Trie, u32>, BuildError> {
        let mut is_end = vec![false; self.nodes()];
        for &(node, _) in &self.ends {
            is_end[node as usize] = true;
        }
        let (kept, max_depth) = Edges::edges_to_ends(&is_end, stop, edges)?;
        let number = kept.numbers(self.nodes());
        let reached =
            |&(node, leaf): &(u32, u32)| (number[node as usize] != NONE).then_some((number[node as usize], leaf));
        let ends: Vec<(u32, u32)> = self.ends.iter().filter_map(reached).collect();
        let leaves = self.canonical_ends.len() as u32;
        // A leaf may have several ends, so it is the numbers that must be without gaps.
        let mut next = 0;
        for &(_, leaf) in &ends {
            if leaf > next {
                return Ok(Err(next));
            }
            next = leaf + 1;
        }
        if next < leaves {
            return Ok(Err(next));
        }
        Ok(Ok(Trie::from_store(self.store(&kept, &number, &ends, max_depth))))
    }

    fn store(self, kept: &Edges, number: &[u32], ends: &[(u32, u32)], max_depth: u32) -> Store {
        let nodes = number.iter().filter(|&&number| number != NONE).count();
        let slots = kept.all.len() + 1;
        let (mut tokens, mut targets) = (Vec::with_capacity(slots), Vec::with_capacity(slots));
        tokens.push(TokenId::default());
        targets.push(0);
        let (mut first_child, mut forced) = (Vec::with_capacity(nodes + 1), Vec::with_capacity(nodes));
        let mut family: Vec<(TokenId, u32)> = Vec::new();
        let stays = |&node: &u32| number[node as usize] != NONE;
        for node in (0..self.nodes() as u32).filter(stays) {
            first_child.push(tokens.len() as u32);
            family.clear();
            family.extend_from_slice(kept.node_edges(node));
            family.sort_unstable();
            let must = match &self.forced {
                None => (family.len() == 1).then_some(0),
                Some(forced) => {
                    forced[node as usize].and_then(|must| family.iter().position(|&(token, _)| token == must))
                }
            };
            forced.push(must.map_or(0, |nth| (tokens.len() + nth) as u32));
            tokens.extend(family.iter().map(|&(token, _)| token));
            targets.extend(family.iter().map(|&(_, target)| number[target as usize]));
        }
        first_child.push(tokens.len() as u32);
        let childless = |node: u32| first_child[node as usize] == first_child[node as usize + 1];
        let inner: Vec<u32> = ends.iter().map(|&(node, _)| node).filter(|&node| !childless(node)).collect();
        let leaves_end: Vec<u32> =
            (0..self.nodes() as u32).filter(stays).map(|node| self.leaves_end[node as usize]).collect();
        let max_token = tokens.iter().chain(&self.canonical).copied().max().unwrap_or_default();
        Store {
            max_token,
            max_depth,
            tokens: tokens.into(),
            first_child: first_child.into(),
            inner_terminals: inner.into(),
            leaves: LeafTable::Ends {
                nodes: ends.iter().map(|&(node, _)| node).collect::<Vec<_>>().into(),
                leaves: ends.iter().map(|&(_, leaf)| leaf).collect::<Vec<_>>().into(),
                count: self.canonical_ends.len() as u32,
            },
            names: self.names,
            input_rows: PackedInts::new(std::iter::once(&self.input_rows[..])),
            verified: true,
            unread: None,
            graph: Some(Graph {
                targets: targets.into(),
                forced: forced.into(),
                leaves_end: leaves_end.into(),
                canonical: self.canonical.into(),
                canonical_ends: self.canonical_ends.into(),
            }),
        }
    }
}

impl Edges {
    /// Edges to nodes from which an end can be reached, and the most edges on a path from the root to one.
    fn edges_to_ends(
        is_end: &[bool],
        stop: &dyn Fn() -> bool,
        mut edges: impl FnMut(u32, &mut Vec<(TokenId, u32)>),
    ) -> Result<(Self, u32), BuildError> {
        /// The most edges on a path to an end.
        const DEAD: u32 = u32::MAX;
        let mut longest = vec![DEAD; is_end.len()];
        let mut kept = Self { all: Vec::new(), ends: Vec::with_capacity(is_end.len()) };
        let mut family = Vec::new();
        for node in (0..is_end.len()).rev() {
            if node % (1 << 12) == 0 && stop() {
                return Err(BuildError::Stopped);
            }
            family.clear();
            edges(node as u32, &mut family);
            family.retain(|&(_, target)| longest[target as usize] != DEAD);
            let below = family.iter().map(|&(_, target)| longest[target as usize] + 1).max();
            longest[node] = below.unwrap_or(if is_end[node] { 0 } else { DEAD });
            kept.all.extend_from_slice(&family);
            kept.ends.push(kept.all.len());
            fits("edges of the set", kept.all.len())?;
        }
        let depth = longest.first().copied().filter(|&depth| depth != DEAD).unwrap_or(0);
        Ok((kept, depth))
    }

    fn node_edges(&self, node: u32) -> &[(TokenId, u32)] {
        let at = self.ends.len() - 1 - node as usize;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[begin..self.ends[at]]
    }

    /// New numbers of the nodes that the root leads to.
    fn numbers(&self, nodes: usize) -> Vec<u32> {
        let mut number = vec![NONE; nodes];
        number[0] = 0;
        let mut next = 0;
        for node in 0..nodes {
            if number[node] == NONE {
                continue;
            }
            number[node] = next;
            next += 1;
            for &(_, target) in self.node_edges(node as u32) {
                number[target as usize] = 0;
            }
        }
        number
    }
}
