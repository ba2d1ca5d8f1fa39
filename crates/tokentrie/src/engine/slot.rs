//! A sequence of the cache: its tokens, and its job.

use super::job::Running;
use std::ops::Range;
use trie_core::{TokenId, shared_length};

#[derive(Default)]
pub(super) struct Slot {
    /// The tokens at positions 0, 1, ….
    pub(super) held: Vec<TokenId>,
    /// Number of them, from the first, that were decoded in whole pieces: see `Cells::piece`.
    pub(super) pieces: usize,
    /// True if the sequence has branches of a prompt after the held tokens.
    pub(super) is_joined: bool,
    /// The sequences of a draft's paths, of which the slot's own has the first: until the job tells which one goes on.
    pub(super) paths: Option<DraftPaths>,
    pub(super) running: Option<Running>,
    /// The pass that used it last.
    pub(super) used: u64,
}

/// Paths of a draft behind a prompt, each in a sequence.
pub(super) struct DraftPaths {
    pub(super) lent: Range<i32>,
    /// The tokens before them.
    pub(super) held: usize,
    /// For each of the sequences, its tokens behind these.
    pub(super) tokens: Vec<Vec<TokenId>>,
}

impl Slot {
    /// Tokens that it has in common with the beginning of these.
    pub(super) fn shared_prefix(&self, tokens: &[TokenId]) -> usize {
        shared_length(&self.held, tokens)
    }
}
