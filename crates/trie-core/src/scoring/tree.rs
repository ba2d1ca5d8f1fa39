//! A tree of tokens to be decoded: what scoring asks a host for.

use crate::set::byte_order::shared_length;
use crate::set::ids::TokenId;
use std::collections::HashMap;

/// Tokens after a prompt, in depth-first order, each after its parent. Paths that begin alike share their first nodes.
///
/// ```
/// use trie_core::{TokenId, TokenTree};
/// let id = |id| TokenId::new(id).unwrap();
/// // [5, 6] and [5, 7, 8]: the rows after 5, 6 and 8 are wanted.
/// let mut tree = TokenTree::new();
/// for (depth, token, wanted) in [(0, 5, true), (1, 6, true), (1, 7, false), (2, 8, true)] {
///     tree.push(depth, id(token), wanted);
/// }
/// assert_eq!(tree.path(3), [id(5), id(7), id(8)]);
/// assert_eq!((tree.nodes()[3].parent, tree.depth(), tree.rows()), (Some(2), 3, 3));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenTree {
    nodes: Vec<TreeNode>,
    /// The path to the node added last.
    path: Vec<usize>,
    depth: usize,
    wants_root: bool,
}

/// A token in a [`TokenTree`]. A node is known by its index in [`TokenTree::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeNode {
    /// Token of the node.
    pub token: TokenId,
    /// The node before it, whose index is lower; `None` right after the prompt.
    pub parent: Option<usize>,
    /// Tokens after the prompt, this one included.
    pub depth: usize,
    /// True if the row after the token is wanted.
    pub wanted: bool,
    /// True if another token comes after it.
    pub has_children: bool,
}

impl TokenTree {
    pub(super) const EMPTY: Self = Self { nodes: Vec::new(), path: Vec::new(), depth: 0, wants_root: false };

    /// No tokens, and no row is wanted.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tree of these paths, and for each path the node of its position: `None` is the prompt. A path is a run of
    /// tokens with the number of tokens before the position; the rows of the position and of all tokens after it are
    /// wanted. What paths begin with alike is there once.
    pub(super) fn of_paths(paths: &[(Vec<TokenId>, usize)]) -> (Self, Vec<Option<usize>>) {
        // A path comes before those it begins.
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_by(|&a, &b| paths[a].0.cmp(&paths[b].0));
        let (mut tree, mut places) = (Self::new(), vec![None; paths.len()]);
        let mut before: &[TokenId] = &[];
        for number in order {
            let (path, position) = &paths[number];
            let shared = shared_length(path, before);
            tree.path.truncate(shared);
            for (depth, &token) in path.iter().enumerate().skip(shared) {
                tree.push(depth, token, false);
            }
            for &node in tree.path.iter().skip(position.saturating_sub(1)) {
                tree.nodes[node].wanted = true;
            }
            tree.wants_root |= *position == 0;
            places[number] = position.checked_sub(1).map(|last| tree.path[last]);
            before = path;
        }
        (tree, places)
    }

    /// No tokens, and the row after the prompt is wanted.
    pub const fn root() -> Self {
        Self { nodes: Vec::new(), path: Vec::new(), depth: 0, wants_root: true }
    }

    /// Adds a token after the first `depth` tokens of the path to the one added last (after all of them, if there are
    /// fewer). `wanted` asks for the row after it. Returns its index.
    pub fn push(&mut self, depth: usize, token: TokenId, wanted: bool) -> usize {
        self.path.truncate(depth);
        let parent = self.path.last().copied();
        if let Some(parent) = parent {
            self.nodes[parent].has_children = true;
        }
        let node = self.nodes.len();
        self.path.push(node);
        self.depth = self.depth.max(self.path.len());
        self.nodes.push(TreeNode { token, parent, depth: self.path.len(), wanted, has_children: false });
        node
    }

    /// Asks for the row after the prompt itself, too.
    pub fn want_root(&mut self) {
        self.wants_root = true;
    }

    /// Returns whether the row after the prompt itself is wanted.
    pub fn wants_root(&self) -> bool {
        self.wants_root
    }

    /// The tokens, depth first.
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// Tokens of the longest path.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of wanted rows, including the row after the prompt.
    pub fn rows(&self) -> usize {
        usize::from(self.wants_root) + self.nodes.iter().filter(|node| node.wanted).count()
    }

    /// The node and those before it, upwards.
    pub fn upwards(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(node), |&node| self.nodes[node].parent)
    }

    /// The tokens from the prompt to a node, it included.
    pub fn path(&self, node: usize) -> Vec<TokenId> {
        let mut tokens: Vec<TokenId> = self.upwards(node).map(|node| self.nodes[node].token).collect();
        tokens.reverse();
        tokens
    }
}

/// A tree of paths in which the node after another is looked up by its token.
#[derive(Debug, Default)]
pub(super) struct PathTree {
    pub(super) tree: TokenTree,
    /// The node after a node, or after the prompt, and a token.
    below: HashMap<(Option<usize>, TokenId), usize>,
}

impl PathTree {
    /// The tree and the places of [`TokenTree::of_paths`].
    pub(super) fn new(paths: &[(Vec<TokenId>, usize)]) -> (Self, Vec<Option<usize>>) {
        let (tree, places) = TokenTree::of_paths(paths);
        let below = tree.nodes.iter().zip(0..).map(|(node, number)| ((node.parent, node.token), number)).collect();
        (Self { tree, below }, places)
    }

    /// The node after a node, or after the prompt, and a token, if its row is wanted.
    pub(super) fn node_after(&self, node: Option<usize>, token: TokenId) -> Option<usize> {
        self.below.get(&(node, token)).copied().filter(|&node| self.tree.nodes()[node].wanted)
    }
}
