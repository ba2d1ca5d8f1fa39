//! The tokens of a vocabulary by their bytes: tokens that begin with a text, and tokens that a text begins with.

use crate::set::builder::{BuildError, fits};
use crate::set::byte_order::{shared_prefix, sort_by_bytes};
use crate::set::ids::TokenId;

/// Tokens sorted by their bytes, and a trie over them: nine bytes a node and four a token, in plain arrays.
///
/// Nodes are numbered breadth first, so the children of a node are neighbours, ascending by their byte. The tokens
/// below a node are neighbours too. A node stores only where its tokens begin; their end is found on the way down.
///
/// ```
/// use trie_core::{ByteTrie, TokenId};
///
/// let id = |id| TokenId::new(id).unwrap();
/// let trie = ByteTrie::new([(&b"a"[..], id(0)), (b"ab", id(1)), (b"b", id(2))])?;
/// assert_eq!(trie.starting_with(b"a"), [id(0), id(1)]);
/// assert_eq!(trie.prefixes(b"abc").map(|(length, _)| length).collect::<Vec<_>>(), [1, 2]);
/// # Ok::<(), trie_core::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteTrie {
    /// The byte that leads to each node; the root's means nothing.
    bytes: Vec<u8>,
    /// Children of node n: nodes `first_child[n] .. first_child[n + 1]`.
    first_child: Vec<u32>,
    /// The first of the tokens at or below each node.
    first_token: Vec<u32>,
    /// All tokens by their bytes, equal ones by id.
    tokens: Vec<TokenId>,
}

/// A node and where its tokens end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteNode {
    node: usize,
    end: usize,
}

impl Default for ByteTrie {
    /// Returns a trie without tokens.
    fn default() -> Self {
        Self { bytes: vec![0], first_child: vec![1, 1], first_token: vec![0], tokens: Vec::new() }
    }
}

impl ByteTrie {
    /// Sorts these tokens and writes the trie. `O(n log n)` comparisons and one pass over all bytes.
    ///
    /// Several tokens may have the same bytes. A token without bytes is a prefix of every text.
    ///
    /// # Errors
    /// More tokens or nodes than 32 bits count.
    pub fn new<'b>(tokens: impl IntoIterator<Item = (&'b [u8], TokenId)>) -> Result<Self, BuildError> {
        let mut rows: Vec<(&[u8], TokenId)> = tokens.into_iter().collect();
        fits("tokens", rows.len())?;
        sort_by_bytes(&mut rows);

        let mut shared = Vec::with_capacity(rows.len());
        let mut width = vec![1usize];
        let mut before: &[u8] = &[];
        for &(bytes, _) in &rows {
            let common = shared_prefix(bytes, before);
            width.resize(width.len().max(bytes.len() + 1), 0);
            for level in &mut width[common + 1..=bytes.len()] {
                *level += 1;
            }
            shared.push(common);
            before = bytes;
        }
        let nodes = width.iter().sum();
        fits("nodes of the byte trie", nodes)?;

        // The next free node of each level; one level more, whose first node is where the children of the last would
        // be.
        let mut next: Vec<u32> =
            width.iter().scan(0, |start, width| Some(std::mem::replace(start, *start + *width as u32))).collect();
        next.push(nodes as u32);
        let mut trie = Self {
            bytes: vec![0; nodes],
            first_child: vec![nodes as u32; nodes + 1],
            first_token: vec![0; nodes],
            tokens: rows.iter().map(|&(_, token)| token).collect(),
        };
        trie.first_child[0] = 1;
        for (row, (&(bytes, _), &shared)) in rows.iter().zip(&shared).enumerate() {
            for (depth, &byte) in bytes.iter().enumerate().skip(shared) {
                let node = next[depth + 1] as usize;
                next[depth + 1] += 1;
                trie.bytes[node] = byte;
                trie.first_token[node] = row as u32;
                // Children are written in the order of their parents, so this node's begin at the next free node.
                trie.first_child[node] = next[depth + 2];
            }
        }
        Ok(trie)
    }

    /// The arrays of the trie: the byte of each node, its first child, its first token, and the tokens.
    #[doc(hidden)]
    pub fn parts(&self) -> (&[u8], &[u32], &[u32], &[TokenId]) {
        (&self.bytes, &self.first_child, &self.first_token, &self.tokens)
    }

    /// A trie of such arrays, which the caller must have checked.
    #[doc(hidden)]
    pub fn from_parts(bytes: Vec<u8>, first_child: Vec<u32>, first_token: Vec<u32>, tokens: Vec<TokenId>) -> Self {
        Self { bytes, first_child, first_token, tokens }
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Number of nodes, the root included.
    pub fn nodes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of bytes held.
    pub fn nbytes(&self) -> usize {
        self.bytes.len() + size_of::<u32>() * (self.first_child.len() + self.first_token.len() + self.tokens.len())
    }

    /// Tokens whose bytes begin with these, by bytes, equal ones by id. `O(length · log 256)`.
    pub fn starting_with(&self, bytes: &[u8]) -> &[TokenId] {
        let end = bytes.iter().try_fold(self.root(), |at, &byte| self.child(at, byte));
        end.map_or(&[], |at| &self.tokens[self.first_token[at.node] as usize..at.end])
    }

    /// Tokens with exactly these bytes, ascending. `O(length · log 256)`.
    pub fn equal(&self, bytes: &[u8]) -> &[TokenId] {
        let end = bytes.iter().try_fold(self.root(), |at, &byte| self.child(at, byte));
        end.map_or(&[], |at| self.tokens_at(at))
    }

    /// Tokens whose bytes this text begins with, by length, shortest first; tokens of one length ascend.
    /// `O(longest token · log 256)`.
    pub fn prefixes<'t>(&'t self, bytes: &'t [u8]) -> impl Iterator<Item = (usize, &'t [TokenId])> + use<'t> {
        let mut at = Some(self.root());
        let mut rest = bytes.iter();
        std::iter::from_fn(move || {
            let here = at?;
            at = rest.next().and_then(|&byte| self.child(here, byte));
            Some(self.tokens_at(here))
        })
        .enumerate()
        .filter(|(_, tokens)| !tokens.is_empty())
    }

    pub(crate) fn root(&self) -> ByteNode {
        ByteNode { node: 0, end: self.tokens.len() }
    }

    /// The child behind this byte.
    pub(crate) fn child(&self, at: ByteNode, byte: u8) -> Option<ByteNode> {
        let (first, last) = (self.first_child[at.node] as usize, self.first_child[at.node + 1] as usize);
        let node = first + self.bytes[first..last].binary_search(&byte).ok()?;
        let end = if node + 1 < last { self.first_token[node + 1] as usize } else { at.end };
        Some(ByteNode { node, end })
    }

    /// The tokens that end at a node: they come before those below it.
    pub(crate) fn tokens_at(&self, at: ByteNode) -> &[TokenId] {
        &self.tokens[self.first_token[at.node] as usize..self.own_end(at)]
    }

    /// The tokens below a node, without its own, by their bytes.
    pub(crate) fn tokens_below(&self, at: ByteNode) -> &[TokenId] {
        &self.tokens[self.own_end(at)..at.end]
    }

    fn own_end(&self, at: ByteNode) -> usize {
        let (first, last) = (self.first_child[at.node] as usize, self.first_child[at.node + 1] as usize);
        if first < last { self.first_token[first] as usize } else { at.end }
    }
}
