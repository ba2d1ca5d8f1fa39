//! Leaves whose last token may extend beyond them, into free text.

use super::positions::{Positions, Sequence};
use crate::set::builder::BuildError;
use crate::set::byte_trie::{ByteNode, ByteTrie};
use crate::set::ids::TokenId;
use crate::set::trie::Trie;
use std::cmp::Reverse;

/// One leaf of [`Trie::with_partial_tokens`].
#[derive(Debug, Clone, Copy)]
pub struct NamedLeaf<'a> {
    /// Name of the leaf.
    pub name: &'a str,
    /// Tokens of the leaf.
    pub tokens: &'a [TokenId],
}

impl Sequence for NamedLeaf<'_> {
    type Item = TokenId;

    fn items(&self) -> &[TokenId] {
        self.tokens
    }

    fn name(&self) -> &str {
        self.name
    }

    fn canonical(&self) -> &[TokenId] {
        self.tokens
    }
}

impl Trie {
    /// The set of these leaves, in which a single longer token may replace the last tokens of a leaf: a token of
    /// `vocab` whose bytes begin with all that is left of the leaf and continue beyond it.
    ///
    /// Such a token ends the leaf, and its bytes beyond the leaf are free text. If the token is also the next token of
    /// another leaf, it continues that leaf; if it extends beyond several leaves, it ends the longest of them. `piece`
    /// returns the bytes of a token. Leaves are numbered by the order of their tokens; equal ones get the smallest
    /// name. The set takes 8 bytes for each such token at each position.
    ///
    /// `O(nodes · tokens there)`, one thread.
    ///
    /// # Errors
    /// No leaf, an empty one, more than 32 bits count, or `stop` said so.
    pub fn with_partial_tokens<'v>(
        leaves: &[NamedLeaf<'_>],
        vocab: &ByteTrie,
        piece: impl Fn(TokenId) -> &'v [u8],
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, BuildError> {
        let positions = Positions::new(leaves, true)?;
        let draft = positions.draft(leaves);
        let mut beyond = Vec::new();
        let packed =
            draft.pack(stop, |position, edges| positions.edges_beyond(position, vocab, &piece, &mut beyond, edges))?;
        // Every leaf is reached by its own tokens.
        packed.map_err(|_| BuildError::NoLeaves)
    }
}

/// A token that extends beyond a leaf: the number of its bytes within the leaf, and where the leaf ends.
type LongToken = (TokenId, Reverse<usize>, u32);

impl Positions<TokenId> {
    fn edges_beyond<'v>(
        &self,
        position: u32,
        vocab: &ByteTrie,
        piece: &impl Fn(TokenId) -> &'v [u8],
        beyond: &mut Vec<LongToken>,
        edges: &mut Vec<(TokenId, u32)>,
    ) {
        edges.extend(self.successors(position).map(|next| (self.items[next as usize], next)));
        let own = edges.len();
        beyond.clear();
        let mut open: Vec<(u32, ByteNode, usize)> = vec![(position, vocab.root(), 0)];
        while let Some((position, at, length)) = open.pop() {
            for next in self.successors(position) {
                let bytes = piece(self.items[next as usize]);
                let Some(at) = bytes.iter().try_fold(at, |at, &byte| vocab.child(at, byte)) else { continue };
                let length = length + bytes.len();
                if self.is_end(next) {
                    beyond.extend(
                        vocab.tokens_below(at).iter().map(|&token| (token, Reverse(length), self.end_of(next))),
                    );
                }
                open.push((next, at, length));
            }
        }
        beyond.sort_unstable();
        beyond.dedup_by_key(|&mut (token, ..)| token);
        for &(token, _, end) in &*beyond {
            // Children come in ascending order of their tokens.
            if edges[..own].binary_search_by_key(&token, |&(token, _)| token).is_err() {
                edges.push((token, end));
            }
        }
    }
}
