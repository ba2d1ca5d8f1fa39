//! Decoders: sources of rows of logits.

use super::tree::TokenTree;
use crate::set::ids::TokenId;

/// A host that can decode a tree of tokens, such as llama.cpp in waves over copied sequences, torch with a tree mask,
/// or a function of token prefixes ([`PrefixRows`](super::PrefixRows)). [`choose`](super::choose) asks it for rows of
/// logits.
///
/// Requirements for an implementation, and the effect of each violation:
///
/// - A row has [`TreeDecoder::n_vocab`] entries. Each wanted row is given once, and the row of a node after that of
///   its parent. Otherwise there is a [`RowProblem`](super::RowProblem) and no choice.
/// - A row depends only on the prompt and the path to its node. Otherwise probabilities are wrong.
/// - An error leaves the host usable and ends the choice. A host cancels a choice in this way.
///
/// It may decode a tree in pieces, several times, or in any order in which parents precede their children. It may keep
/// the KV cache of a prompt: all trees of one choice follow one prompt.
pub trait TreeDecoder {
    /// Error type of the host, which includes being cancelled.
    type Error;

    /// Numbers in a row.
    fn n_vocab(&self) -> usize;

    /// Largest number of tokens that a prompt and a path after it may have together.
    fn room(&self) -> usize;

    /// Number of rows that are efficient to ask for at once. A search starts with 32 rows at once and grows up to this
    /// number.
    fn rows_at_once(&self) -> usize;

    /// Threads of the last forward pass, for [`ChooseStats`](super::ChooseStats); 0 where nobody knows.
    fn n_threads(&self) -> u32 {
        0
    }

    /// Decodes `tree` after `prompt`, and calls `each` with the row after every wanted node, parents first. If
    /// [`TokenTree::wants_root`] is true, the row after the prompt (node `None`) comes before all others. Returns the
    /// cost.
    ///
    /// The prompt may be empty: then no row after it is wanted. All ids are below `n_vocab`, and prompt and tree have
    /// room.
    ///
    /// # Errors
    /// An error of the host; the rows given before it are discarded.
    fn decode(
        &mut self,
        prompt: &[TokenId],
        tree: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<DecodeCost, Self::Error>;
}

/// Limits of a host, as [`TreeDecoder`] reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Numbers in a row.
    pub n_vocab: usize,
    /// Largest number of tokens that a prompt and a path after it may have together.
    pub room: usize,
    /// Number of rows that are efficient to ask for at once.
    pub rows_at_once: usize,
}

impl Host {
    /// Reads the limits of a decoder.
    pub fn from_decoder<D: TreeDecoder + ?Sized>(decoder: &D) -> Self {
        Self { n_vocab: decoder.n_vocab(), room: decoder.room(), rows_at_once: decoder.rows_at_once() }
    }
}

/// Cost of a call of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeCost {
    /// Number of forward passes.
    pub forward_passes: u64,
    /// Tokens in them, those of the prompt included unless they were known.
    pub tokens: usize,
    /// Rows of which only the logits of allowed tokens left the device.
    pub gathered_rows: u64,
}

impl<D: TreeDecoder + ?Sized> TreeDecoder for &mut D {
    type Error = D::Error;

    fn n_vocab(&self) -> usize {
        (**self).n_vocab()
    }

    fn room(&self) -> usize {
        (**self).room()
    }

    fn rows_at_once(&self) -> usize {
        (**self).rows_at_once()
    }

    fn n_threads(&self) -> u32 {
        (**self).n_threads()
    }

    fn decode(
        &mut self,
        prompt: &[TokenId],
        tree: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<DecodeCost, D::Error> {
        (**self).decode(prompt, tree, each)
    }
}
