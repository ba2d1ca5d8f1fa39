//! A tree of tokens after what a context holds, in as few forward passes as its sequences and cells allow.
//!
//! Every path from the root to an end is a sequence of its own; a token that several paths share is decoded once and
//! belongs to all of their sequences. A tree that does not fit at once is decoded in waves.

use crate::runtime::context::PlacedToken;
use trie_core::{TokenId, TokenTree, WantedRows};

/// Bytes of logits in one pass: rows are as long as the vocabulary.
const MAX_OUTPUT: usize = 128 << 20;

/// Neighbouring ends of paths that fit into one go, and all nodes on those paths in depth-first order.
#[derive(Debug, Default)]
struct Wave {
    ends: Vec<usize>,
    nodes: Vec<usize>,
}

impl Wave {
    /// Waves of at most `paths` paths and `cells` nodes; one path always fits.
    fn split(tree: &TokenTree, paths: usize, cells: usize) -> Vec<Self> {
        let mut waves: Vec<Self> = Vec::new();
        let mut begin = 0;
        for end in (0..tree.nodes().len()).filter(|&node| !tree.nodes()[node].has_children) {
            // In depth-first order, whatever came since the last end is on the path to this one.
            let fresh = begin..end + 1;
            begin = end + 1;
            match waves.last_mut() {
                Some(wave) if wave.ends.len() < paths && wave.nodes.len() + fresh.len() <= cells => {
                    wave.nodes.extend(fresh);
                    wave.ends.push(end);
                }
                _ => {
                    let mut nodes: Vec<usize> = tree.upwards(end).collect();
                    nodes.reverse();
                    waves.push(Self { ends: vec![end], nodes });
                }
            }
        }
        waves
    }

    /// For each node of the wave, the paths through it: they are neighbours.
    fn paths(&self, tree: &TokenTree) -> Vec<(usize, usize)> {
        let place = |node: usize| self.nodes.binary_search(&node).ok();
        let mut through = vec![(usize::MAX, 0); self.nodes.len()];
        for (number, &end) in self.ends.iter().enumerate() {
            for at in tree.upwards(end).filter_map(place) {
                through[at] = (through[at].0.min(number), number + 1);
            }
        }
        through
    }
}

/// Tokens of a tree that are decoded in branches, which begin where the prompt ends.
#[derive(Debug)]
pub struct PlannedWave {
    /// Branches that it needs.
    pub branches: usize,
    /// Its tokens, parents first. They may be cut anywhere and decoded in several passes. Branch 0 is the first branch.
    pub tokens: Vec<PlacedToken>,
    /// For each of its tokens, the node whose row is wanted, if any.
    pub nodes: Vec<Option<usize>>,
}

/// Limits of a host.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Number of simultaneous branches.
    pub branches: usize,
    /// Tokens behind the prompt at once.
    pub cells: usize,
}

impl PlannedWave {
    /// The most rows of logits of one pass.
    pub fn most_rows(n_vocab: usize) -> usize {
        (MAX_OUTPUT / (4 * n_vocab.max(1))).max(1)
    }

    /// Returns the number of tokens from this one on that fit into a pass with room for so many tokens and rows.
    pub fn piece(&self, from: usize, tokens: usize, rows: usize) -> usize {
        let mut left = rows;
        let fits = |placed: &&PlacedToken| {
            let fits = !placed.wanted || left > 0;
            left -= usize::from(placed.wanted && left > 0);
            fits
        };
        self.tokens[from..].iter().take(tokens).take_while(fits).count()
    }
}

/// The tokens of branches that do not see each other, behind `held` tokens: the first in sequence 0, the next in 1, ….
/// They may be cut anywhere and decoded in several passes.
pub fn place_branches(branches: &[Vec<TokenId>], held: usize) -> Vec<PlacedToken> {
    let of = |(number, branch): (i32, &Vec<TokenId>)| {
        let place = move |(index, &token)| PlacedToken {
            token,
            position: held + index,
            sequences: number..number + 1,
            wanted: false,
        };
        branch.iter().enumerate().map(place).collect::<Vec<_>>()
    };
    (0..).zip(branches).flat_map(of).collect()
}

/// The pass that decodes the rest of a prompt behind `held` tokens and, after it, as much of the draft of a job as fits
/// into `tokens` tokens and `rows` rows: its first paths. The row after the prompt is wanted. Tokens of the prompt have
/// no node.
pub fn plan_draft(want: WantedRows<'_>, held: usize, bounds: Bounds, tokens: usize, rows: usize) -> PlannedWave {
    let rest = &want.prompt[held..];
    let draft = want.is_draft.then(|| plan(want.tree, want.prompt.len(), bounds).into_iter().next());
    let mut draft = draft.flatten().unwrap_or(PlannedWave { branches: 1, tokens: Vec::new(), nodes: Vec::new() });
    let fits = draft.piece(0, tokens.saturating_sub(rest.len()), rows.saturating_sub(1));
    draft.tokens.truncate(fits);
    draft.nodes.truncate(fits);
    let branches = draft.tokens.iter().map(|placed| placed.sequences.end as usize).max().unwrap_or(1);
    let place = |(index, &token): (usize, &TokenId)| PlacedToken {
        token,
        position: held + index,
        sequences: 0..branches as i32,
        wanted: index + 1 == rest.len(),
    };
    let placed = rest.iter().enumerate().map(place).chain(draft.tokens).collect();
    PlannedWave { branches, tokens: placed, nodes: vec![None; rest.len()].into_iter().chain(draft.nodes).collect() }
}

/// The waves that decode a tree behind `held` tokens. Each wanted node has one row, parents first.
pub fn plan(tree: &TokenTree, held: usize, bounds: Bounds) -> Vec<PlannedWave> {
    let mut done = vec![false; tree.nodes().len()];
    let planned = |wave: Wave| {
        let (mut tokens, mut nodes) = (Vec::new(), Vec::new());
        for (&number, &(first, last)) in wave.nodes.iter().zip(&wave.paths(tree)) {
            let node = &tree.nodes()[number];
            let wanted = node.wanted && !std::mem::replace(&mut done[number], true);
            let (position, sequences) = (held + node.depth - 1, first as i32..last as i32);
            tokens.push(PlacedToken { token: node.token, position, sequences, wanted });
            nodes.push(wanted.then_some(number));
        }
        PlannedWave { branches: wave.ends.len(), tokens, nodes }
    };
    Wave::split(tree, bounds.branches, bounds.cells).into_iter().map(planned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trie_core::TokenId;

    /// 0 ─ 1 ─ 2, 1 ─ 3 ─ 4, 0 ─ 5, 6 ─ 7
    fn tree() -> TokenTree {
        let mut tree = TokenTree::new();
        for (node, depth) in [0, 1, 2, 2, 3, 1, 0, 1].into_iter().enumerate() {
            assert_eq!(tree.push(depth, TokenId::new(node as u32).unwrap(), true), node);
        }
        tree
    }

    fn waves(paths: usize, cells: usize) -> Vec<Vec<usize>> {
        Wave::split(&tree(), paths, cells).into_iter().map(|wave| wave.nodes).collect()
    }

    #[test]
    fn waves_keep_to_their_limits_and_repeat_ancestors() {
        assert_eq!(waves(9, 99), [vec![0, 1, 2, 3, 4, 5, 6, 7]]);
        assert_eq!(waves(1, 99), [vec![0, 1, 2], vec![0, 1, 3, 4], vec![0, 5], vec![6, 7]]);
        assert_eq!(waves(2, 99), [vec![0, 1, 2, 3, 4], vec![0, 5, 6, 7]]);
        assert_eq!(waves(9, 4), [vec![0, 1, 2], vec![0, 1, 3, 4], vec![0, 5, 6, 7]]);
        assert_eq!(waves(9, 1), waves(1, 1), "a path alone is never cut");
    }

    #[test]
    fn a_shared_token_belongs_to_all_of_its_paths() {
        let tree = tree();
        let [wave] = &Wave::split(&tree, 9, 99)[..] else { panic!("one wave") };
        assert_eq!(wave.ends, [2, 4, 5, 7]);
        assert_eq!(wave.paths(&tree), [(0, 3), (0, 2), (0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (3, 4)]);
        assert_eq!(tree.depth(), 4);
    }
}
