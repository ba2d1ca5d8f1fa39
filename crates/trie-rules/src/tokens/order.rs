//! The bytes of tokens as a tree, laid out for walks: one scan from front to back, which skips tokens with an illegal
//! prefix.

use std::mem::size_of;
use std::ops::Range;
use trie_core::{TokenId, shared_prefix, sort_by_bytes};

/// Tokens of a vocabulary as a tree of their bytes, or of the last bytes of each, in depth-first order. Tokens with a
/// common prefix share its nodes. No text is empty.
///
/// ```
/// use trie_core::TokenId;
/// use trie_rules::TokenTree;
///
/// let id = |n| TokenId::new(n).unwrap();
/// let tree = TokenTree::new(vec![(&b"b"[..], id(0)), (b"ab", id(1)), (b"a", id(2))]);
/// // The nodes: a, ab, b.
/// let bytes: Vec<u8> = tree.nodes().iter().map(|node| node.byte()).collect();
/// assert_eq!((bytes.as_slice(), tree.nodes()[1].depth(), tree.nodes()[0].subtree_end()), (&b"abb"[..], 1, 2));
/// assert_eq!(tree.ending(0..2), [id(2), id(1)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct TokenTree {
    nodes: Vec<TreeNode>,
    /// Number of tokens that end before each node; one more than nodes.
    places: Vec<u32>,
    /// Tokens in the order of their bytes.
    tokens: Vec<TokenId>,
    /// The nodes of those that begin with a blank.
    blank: Range<usize>,
}

/// Node of a [`TokenTree`]: a byte of some tokens, after the bytes of the nodes above it.
#[derive(Debug, Clone, Copy)]
pub struct TreeNode {
    /// Index of the next node that is not below this one.
    behind: u32,
    /// Depth in 24 bits, and the byte in 8.
    packed: u32,
}

/// Bytes that a token may have.
pub(crate) const LONGEST: usize = (1 << 24) - 1;

impl TreeNode {
    /// Returns the byte that leads to this node.
    #[inline]
    pub fn byte(self) -> u8 {
        self.packed as u8
    }

    /// Returns the number of bytes before it.
    #[inline]
    pub fn depth(self) -> usize {
        (self.packed >> 8) as usize
    }

    /// Returns the index of the next node that is not below this one.
    #[inline]
    pub fn subtree_end(self) -> usize {
        self.behind as usize
    }
}

impl TokenTree {
    /// Builds the tree from sorted tokens, each with the length of the prefix that it shares with its predecessor.
    /// None is longer than [`LONGEST`], and all together have less than 4 GiB.
    pub(crate) fn of_rows<'b>(rows: impl Iterator<Item = (&'b [u8], usize, TokenId)>) -> Self {
        let mut order = Self { places: vec![0], ..Self::default() };
        // Nodes above the next one.
        let mut open: Vec<usize> = Vec::new();
        for (bytes, common, token) in rows {
            let end = order.nodes.len() as u32;
            open.drain(common.min(open.len())..).for_each(|node| order.nodes[node].behind = end);
            let deeper = bytes.iter().enumerate().skip(common);
            order.nodes.extend(
                deeper.map(|(depth, &byte)| TreeNode { behind: 0, packed: (depth as u32) << 8 | u32::from(byte) }),
            );
            open.extend(end as usize..order.nodes.len());
            order.places.resize(order.nodes.len() + 1, order.tokens.len() as u32);
            order.tokens.push(token);
            if let Some(places) = order.places.last_mut() {
                *places = order.tokens.len() as u32;
            }
        }
        let end = order.nodes.len() as u32;
        for node in open {
            order.nodes[node].behind = end;
        }
        let firsts = std::iter::successors(Some(0), |&node| Some(order.nodes.get(node)?.subtree_end()));
        let blank = firsts.take_while(|&node| node < order.nodes.len()).find(|&node| order.nodes[node].byte() == b' ');
        order.blank = blank.map_or(0..0, |node| node..order.nodes[node].subtree_end());
        order
    }

    /// The nodes of tokens that begin with a blank, or of those that do not. Each range begins and ends between tokens
    /// with different first bytes.
    pub(crate) fn beginning(&self, with_blank: bool) -> [Range<usize>; 2] {
        if with_blank { [self.blank.clone(), 0..0] } else { [0..self.blank.start, self.blank.end..self.nodes.len()] }
    }

    /// Builds the tree from tokens in any order, each with its bytes or their end. A token may come several times.
    pub fn new(mut rows: Vec<(&[u8], TokenId)>) -> Self {
        rows.retain(|(text, _)| !text.is_empty());
        sort_by_bytes(&mut rows);
        rows.dedup();
        let mut before: &[u8] = &[];
        Self::of_rows(
            rows.into_iter()
                .map(|(text, token)| (text, shared_prefix(text, std::mem::replace(&mut before, text)), token)),
        )
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the number of bytes that it holds in memory.
    pub fn nbytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.places) + size_of::<TokenId>() * self.tokens.len()
    }

    /// Returns the nodes, each before the nodes below it.
    #[inline]
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// Returns the tokens in the order of their bytes.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Returns the tokens that end at a range of nodes.
    #[inline]
    pub fn ending(&self, nodes: Range<usize>) -> &[TokenId] {
        &self.tokens[self.places[nodes.start] as usize..self.places[nodes.end] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_bytes() {
        let texts = ["a", "ab", "abc", "abcd", "abd", "abd", "ac", "b", "ba", "baa", "bb", "ééé"];
        let mut before = "";
        let rows = texts.iter().enumerate().map(|(at, text)| {
            let common = shared_prefix(text.as_bytes(), std::mem::replace(&mut before, text).as_bytes());
            (text.as_bytes(), common, TokenId::new(at as u32).unwrap())
        });
        let order = TokenTree::of_rows(rows);
        let (mut text, mut found) = (Vec::new(), Vec::new());
        for (at, node) in order.nodes().iter().enumerate() {
            text.truncate(node.depth());
            text.push(node.byte());
            found.extend(order.ending(at..at + 1).iter().map(|token| (text.clone(), token.index())));
            let below = |next: &usize| order.nodes()[*next].depth() <= node.depth();
            assert_eq!(node.subtree_end(), (at + 1..order.nodes().len()).find(below).unwrap_or(order.nodes().len()));
        }
        assert_eq!(
            found,
            texts.iter().enumerate().map(|(at, text)| (text.as_bytes().to_vec(), at)).collect::<Vec<_>>()
        );
        assert_eq!(order.ending(0..order.nodes().len()), order.tokens());
        assert!(order.beginning(true).into_iter().flatten().next().is_none());
        assert!(order.beginning(false).into_iter().flatten().eq(0..order.nodes().len()));
        assert!(TokenTree::of_rows(std::iter::empty()).nodes().is_empty());
        let order = TokenTree::of_rows(
            [(&b" a"[..], 0, TokenId::new(0).unwrap()), (b"b", 0, TokenId::new(0).unwrap())].into_iter(),
        );
        assert_eq!((order.beginning(true), order.beginning(false)), ([0..2, 0..0], [0..0, 2..3]));
    }
}
