//! Operations that an engine needs from a context.

use llama_sampler::{PlacedToken, RuntimeError};
use trie_core::Host;

/// Sequences in caches, and forward passes over them. Sequences 0 … `slots` − 1 hold texts, the others are branches.
pub(super) trait Cells {
    /// Sequences that hold texts.
    fn slots(&self) -> usize;

    /// Sequences after them; with [`Cells::piece`] so many for each slot.
    fn branches(&self) -> usize;

    /// The most tokens of one pass.
    fn n_batch(&self) -> usize;

    /// Returns the limits of a job's requests.
    fn host(&self) -> Host;

    /// Threads of the last pass.
    fn n_threads(&self) -> u32;

    /// One forward pass.
    ///
    /// # Errors
    /// It failed: what the cache holds is not known then.
    fn decode(&mut self, tokens: &[PlacedToken]) -> Result<(), RuntimeError>;

    /// The row after the token at this index of the last pass, which asked for it.
    fn row(&self, index: usize) -> &[f32];

    /// Copies the first tokens of one sequence to the beginning of another.
    ///
    /// # Errors
    /// There is no such sequence.
    fn copy(&mut self, from: i32, to: i32, tokens: usize) -> Result<(), RuntimeError>;

    /// Lets a sequence own the tokens of another from this position on, beside those that it has there.
    ///
    /// # Errors
    /// There is no such sequence.
    fn join(&mut self, from: i32, to: i32, position: usize) -> Result<(), RuntimeError>;

    /// Keeps the first tokens of a sequence. Returns how many it kept: none, where it cannot be cut.
    fn cut_sequence(&mut self, sequence: i32, tokens: usize) -> usize;

    /// Returns whether a slot can begin with a part of what another holds: not in recurrent models.
    fn shares(&self) -> bool;

    /// Returns the size of a piece; `None` if slots share a KV cache. With pieces, each slot has a KV cache and
    /// branches of its own, so that the rows of a job depend on no other job. A piece is a run of prompt tokens that
    /// are decoded together, with no other tokens in the pass. Another job can reuse a piece only as a whole.
    fn piece(&self) -> Option<usize>;
}
