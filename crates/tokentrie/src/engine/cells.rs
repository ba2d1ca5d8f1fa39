//! What an engine asks of a context.

use llama_sampler::{Context, Placed, RuntimeError};
use trie_core::Host;

/// A cache that many sequences share, and forward passes over it. Sequences 0 … `slots` − 1 hold texts, the others are
/// branches.
pub trait Cells {
    /// Sequences that hold texts.
    fn slots(&self) -> usize;

    /// Sequences after them.
    fn branches(&self) -> usize;

    /// The most tokens of one pass.
    fn n_batch(&self) -> usize;

    /// What a job may ask for.
    fn host(&self) -> Host;

    /// Threads of the last pass.
    fn n_threads(&self) -> u32;

    /// One forward pass.
    ///
    /// # Errors
    /// It failed: what the cache holds is not known then.
    fn decode(&mut self, tokens: &[Placed]) -> Result<(), RuntimeError>;

    /// The row after the token at this index of the last pass, which asked for it.
    fn row(&self, index: usize) -> &[f32];

    /// Lets a sequence begin as another does, with so many tokens.
    ///
    /// # Errors
    /// There is no such sequence.
    fn copy(&mut self, from: i32, to: i32, tokens: usize) -> Result<(), RuntimeError>;

    /// Keeps the first tokens of a sequence. Returns how many it kept: none, where it cannot be cut.
    fn cut(&mut self, sequence: i32, tokens: usize) -> usize;

    /// Whether a part of a sequence can be copied and cut: not in recurrent models.
    fn has_parts(&self) -> bool;
}

impl Cells for Context {
    fn slots(&self) -> usize {
        self.slots()
    }

    fn branches(&self) -> usize {
        self.branches()
    }

    fn n_batch(&self) -> usize {
        self.n_batch()
    }

    fn host(&self) -> Host {
        self.host()
    }

    fn n_threads(&self) -> u32 {
        self.n_threads()
    }

    fn decode(&mut self, tokens: &[Placed]) -> Result<(), RuntimeError> {
        self.decode_pass(tokens)
    }

    fn row(&self, index: usize) -> &[f32] {
        self.row(index)
    }

    fn copy(&mut self, from: i32, to: i32, tokens: usize) -> Result<(), RuntimeError> {
        self.copy_sequence(from, to, tokens)
    }

    fn cut(&mut self, sequence: i32, tokens: usize) -> usize {
        self.cut_sequence(sequence, tokens)
    }

    fn has_parts(&self) -> bool {
        !self.is_recurrent()
    }
}
