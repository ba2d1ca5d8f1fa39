//! The bytes of tokens as a tree, laid out for walks: one scan from front to back, which jumps over what begins
//! illegally.

use std::mem::size_of;
use std::ops::Range;
use trie_core::TokenId;

/// Some tokens of a vocabulary as a tree of their bytes, depth first. Tokens with the same beginning share the nodes
/// of it. None is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    nodes: Vec<Node>,
    /// Number of tokens that end before each node; one more than nodes.
    places: Vec<u32>,
    /// Tokens in the order of their bytes.
    tokens: Vec<TokenId>,
    /// The nodes of those that begin with a blank.
    blank: Range<usize>,
}

/// A byte of some tokens, after those of the nodes above it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// The next node that is not below this one.
    behind: u32,
    /// Depth in 24 bits, and the byte in 8.
    packed: u32,
}

/// Bytes that a token may have.
pub(crate) const LONGEST: usize = (1 << 24) - 1;

impl Node {
    #[inline]
    pub(crate) fn byte(self) -> u8 {
        self.packed as u8
    }

    #[inline]
    pub(crate) fn depth(self) -> usize {
        (self.packed >> 8) as usize
    }

    #[inline]
    pub(crate) fn behind(self) -> usize {
        self.behind as usize
    }
}

impl Order {
    /// Builds the order from sorted tokens, each with the length of the prefix that it shares with its predecessor.
    /// None is longer than [`LONGEST`], and all together have less than 4 GiB.
    pub(crate) fn new<'b>(rows: impl Iterator<Item = (&'b [u8], usize, TokenId)>) -> Self {
        let mut order = Self { places: vec![0], ..Self::default() };
        // Nodes above the next one.
        let mut open: Vec<usize> = Vec::new();
        for (bytes, common, token) in rows {
            let end = order.nodes.len() as u32;
            open.drain(common.min(open.len())..).for_each(|node| order.nodes[node].behind = end);
            for (depth, &byte) in bytes.iter().enumerate().skip(common) {
                open.push(order.nodes.len());
                order.nodes.push(Node { behind: 0, packed: (depth as u32) << 8 | u32::from(byte) });
                order.places.push(order.tokens.len() as u32);
            }
            order.tokens.push(token);
            if let Some(places) = order.places.last_mut() {
                *places = order.tokens.len() as u32;
            }
        }
        let end = order.nodes.len() as u32;
        for node in open {
            order.nodes[node].behind = end;
        }
        let firsts = std::iter::successors(Some(0), |&node| Some(order.nodes.get(node)?.behind()));
        let blank = firsts.take_while(|&node| node < order.nodes.len()).find(|&node| order.nodes[node].byte() == b' ');
        order.blank = blank.map_or(0..0, |node| node..order.nodes[node].behind());
        order
    }

    /// The nodes of tokens that begin with a blank, or of those that do not. Each range begins and ends between tokens
    /// with different first bytes.
    pub(crate) fn beginning(&self, with_blank: bool) -> [Range<usize>; 2] {
        if with_blank { [self.blank.clone(), 0..0] } else { [0..self.blank.start, self.blank.end..self.nodes.len()] }
    }

    /// Returns the number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn nbytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.places) + size_of::<TokenId>() * self.tokens.len()
    }

    #[inline]
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Tokens in the order of their bytes.
    pub(crate) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The tokens that end at some nodes that follow each other.
    #[inline]
    pub(crate) fn ending(&self, nodes: Range<usize>) -> &[TokenId] {
        &self.tokens[self.places[nodes.start] as usize..self.places[nodes.end] as usize]
    }
}

/// Returns the length of the common prefix of two tokens.
pub(crate) fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_bytes() {
        let texts = ["a", "ab", "abc", "abcd", "abd", "abd", "ac", "b", "ba", "baa", "bb", "ééé"];
        let mut before = "";
        let rows = texts.iter().enumerate().map(|(at, text)| {
            let common = common(text.as_bytes(), std::mem::replace(&mut before, text).as_bytes());
            (text.as_bytes(), common, TokenId::new(at as u32).unwrap())
        });
        let order = Order::new(rows);
        let (mut text, mut found) = (Vec::new(), Vec::new());
        for (at, node) in order.nodes().iter().enumerate() {
            text.truncate(node.depth());
            text.push(node.byte());
            found.extend(order.ending(at..at + 1).iter().map(|token| (text.clone(), token.index())));
            let below = |next: &usize| order.nodes()[*next].depth() <= node.depth();
            assert_eq!(node.behind(), (at + 1..order.nodes().len()).find(below).unwrap_or(order.nodes().len()));
        }
        assert_eq!(
            found,
            texts.iter().enumerate().map(|(at, text)| (text.as_bytes().to_vec(), at)).collect::<Vec<_>>()
        );
        assert_eq!(order.ending(0..order.nodes().len()), order.tokens());
        assert!(order.beginning(true).into_iter().flatten().next().is_none());
        assert!(order.beginning(false).into_iter().flatten().eq(0..order.nodes().len()));
        assert!(Order::new(std::iter::empty()).nodes().is_empty());
        let order =
            Order::new([(&b" a"[..], 0, TokenId::new(0).unwrap()), (b"b", 0, TokenId::new(0).unwrap())].into_iter());
        assert_eq!((order.beginning(true), order.beginning(false)), ([0..2, 0..0], [0..0, 2..3]));
    }
}
