//! Contexts of an engine: one that all slots share, or one for each slot.

use super::cells::Cells;
use super::options::Batching;
use llama_sampler::{Context, ContextOptions, Model, PlacedToken, RuntimeError};
use trie_core::Host;

/// Tokens that are decoded together where nothing else may be beside them.
const PIECE: usize = 128;

/// One context with many slots, or many with one.
pub(super) struct Pool {
    contexts: Vec<Context>,
    is_apart: bool,
    /// The context of the last pass.
    last: usize,
}

impl Pool {
    /// With as many slots as the options say.
    ///
    /// # Errors
    /// An option out of range, or too little memory.
    pub(super) fn new(model: &Model, options: ContextOptions, batching: Batching) -> Result<Self, RuntimeError> {
        let is_apart = batching == Batching::Fixed;
        if !is_apart {
            return Ok(Self { contexts: vec![model.context(options)?], is_apart, last: 0 });
        }
        let slots = u64::from(options.slots);
        if !(1..=ContextOptions::MAX_SLOTS).contains(&slots) {
            let most = ContextOptions::MAX_SLOTS;
            return Err(RuntimeError::OutOfRange { what: "slots", value: slots, least: 1, most });
        }
        let contexts = (0..options.slots).map(|_| model.context(options.with_slots(1))).collect::<Result<_, _>>()?;
        Ok(Self { contexts, is_apart, last: 0 })
    }

    pub(super) fn most_threads(&self) -> u32 {
        self.contexts[0].most_threads()
    }

    /// The context that is used where nothing runs beside it.
    pub(super) fn first(&mut self) -> &mut Context {
        &mut self.contexts[0]
    }

    /// The context of a sequence, and its number there. Where they are apart, the branches of each slot follow those of
    /// the slot before.
    fn place(&self, sequence: i32) -> (usize, i32) {
        if !self.is_apart {
            return (0, sequence);
        }
        let (slots, branches) = (self.contexts.len() as i32, self.branches() as i32);
        if sequence < slots {
            return (sequence as usize, 0);
        }
        let branch = sequence - slots;
        ((branch / branches) as usize, 1 + branch % branches)
    }
}

impl Cells for Pool {
    fn slots(&self) -> usize {
        if self.is_apart { self.contexts.len() } else { self.contexts[0].slots() }
    }

    fn branches(&self) -> usize {
        self.contexts[0].branches()
    }

    fn n_batch(&self) -> usize {
        self.contexts[0].n_batch()
    }

    fn host(&self) -> Host {
        self.contexts[0].host()
    }

    fn n_threads(&self) -> u32 {
        self.contexts[self.last].n_threads()
    }

    fn decode(&mut self, tokens: &[PlacedToken]) -> Result<(), RuntimeError> {
        if !self.is_apart {
            return self.contexts[0].decode_pass(tokens);
        }
        let placed: Vec<PlacedToken> = tokens
            .iter()
            .map(|placed| {
                let (context, from) = self.place(placed.sequences.start);
                self.last = context;
                let count = placed.sequences.end - placed.sequences.start;
                PlacedToken { sequences: from..from + count, ..*placed }
            })
            .collect();
        self.contexts[self.last].decode_pass(&placed)
    }

    fn row(&self, index: usize) -> &[f32] {
        self.contexts[self.last].row(index)
    }

    fn copy(&mut self, from: i32, to: i32, tokens: usize) -> Result<(), RuntimeError> {
        let ((context, from), (_, to)) = (self.place(from), self.place(to));
        self.contexts[context].copy_sequence(from, to, tokens)
    }

    fn join(&mut self, from: i32, to: i32, position: usize) -> Result<(), RuntimeError> {
        let ((context, from), (_, to)) = (self.place(from), self.place(to));
        self.contexts[context].join_sequence(from, to, position)
    }

    fn cut_sequence(&mut self, sequence: i32, tokens: usize) -> usize {
        let (context, sequence) = self.place(sequence);
        self.contexts[context].cut_sequence(sequence, tokens)
    }

    fn shares(&self) -> bool {
        !self.is_apart && !self.contexts[0].is_recurrent()
    }

    fn piece(&self) -> Option<usize> {
        self.is_apart.then(|| PIECE.min(self.n_batch()))
    }
}
