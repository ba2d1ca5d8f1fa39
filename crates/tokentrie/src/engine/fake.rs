//! A context for tests, without llama.cpp.

use super::cells::Cells;
use llama_sampler::{PlacedToken, RuntimeError};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use trie_core::{Host, TokenId};

pub(super) const VOCABULARY: usize = 24;
const ROOM: usize = 40;

pub(super) fn id(id: usize) -> TokenId {
    TokenId::new(id as u32).unwrap()
}

/// The model: what comes after some tokens depends on each of them.
pub(super) fn row_after(tokens: &[TokenId]) -> Vec<f32> {
    row_of(tokens)
}

fn row_of<T: Hash>(text: &[T]) -> Vec<f32> {
    let logit = |next: usize| {
        let mut hasher = DefaultHasher::new();
        (text, next).hash(&mut hasher);
        (hasher.finish() % 1000) as f32 / 100.0
    };
    (0..VOCABULARY).map(logit).collect()
}

/// Hash of the tokens that a token was decoded beside; 0 where rows do not depend on them.
type BatchHash = u64;

/// A token in a sequence. Those of joined branches have the same positions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HeldCell {
    position: usize,
    token: TokenId,
    beside: BatchHash,
}

/// A cache that refuses what llama.cpp would abort at, and passes that fail now and then.
pub(super) struct Fake {
    slots: usize,
    n_batch: usize,
    sequences: Vec<Vec<HeldCell>>,
    rows: Vec<Option<Vec<f32>>>,
    passes: u64,
    /// The passes that fail.
    fails: HashSet<u64>,
    has_parts: bool,
    piece: Option<usize>,
}

impl Fake {
    pub(super) fn new(slots: usize, branches: usize, n_batch: usize) -> Self {
        let sequences = vec![Vec::new(); slots + branches];
        let (rows, fails) = (Vec::new(), HashSet::new());
        Self { slots, n_batch, sequences, rows, passes: 0, fails, has_parts: true, piece: None }
    }

    /// So many branches for each slot, and rows that depend on how each token of a text was decoded.
    pub(super) fn apart(slots: usize, branches: usize, n_batch: usize, piece: usize) -> Self {
        Self { piece: Some(piece.min(n_batch)), ..Self::new(slots, slots * branches, n_batch) }
    }

    /// The slot that a sequence belongs to.
    fn slot(&self, sequence: i32) -> usize {
        let sequence = sequence as usize;
        if sequence < self.slots { sequence } else { (sequence - self.slots) / self.branches() }
    }

    /// Makes the passes with these numbers fail.
    pub(super) fn failing(self, fails: HashSet<u64>) -> Self {
        Self { fails, ..self }
    }

    /// Makes it a recurrent model, whose cache cannot be cut.
    pub(super) fn without_parts(self) -> Self {
        Self { has_parts: false, ..self }
    }
}

impl Cells for Fake {
    fn slots(&self) -> usize {
        self.slots
    }

    fn branches(&self) -> usize {
        (self.sequences.len() - self.slots) / self.piece.map_or(1, |_| self.slots)
    }

    fn n_batch(&self) -> usize {
        self.n_batch
    }

    fn host(&self) -> Host {
        Host { n_vocab: VOCABULARY, room: ROOM, rows_at_once: self.branches() }
    }

    fn n_threads(&self) -> u32 {
        1
    }

    fn decode(&mut self, tokens: &[PlacedToken]) -> Result<(), RuntimeError> {
        assert!((1..=self.n_batch).contains(&tokens.len()), "{} tokens in a pass", tokens.len());
        self.passes += 1;
        self.rows.clear();
        let beside = self.piece.map_or(0, |_| {
            let slot = self.slot(tokens[0].sequences.start);
            let mut hasher = DefaultHasher::new();
            for placed in tokens {
                assert!(placed.sequences.clone().all(|sequence| self.slot(sequence) == slot), "one slot a pass");
                (placed.position, placed.sequences.len(), placed.wanted).hash(&mut hasher);
            }
            hasher.finish()
        });
        for placed in tokens {
            let mut text = None;
            assert!(!placed.sequences.is_empty());
            for sequence in placed.sequences.clone() {
                let held = &mut self.sequences[sequence as usize];
                let next = held.iter().map(|cell| cell.position + 1).max().unwrap_or(0);
                assert_eq!(next, placed.position, "of sequence {sequence}");
                held.push(HeldCell { position: placed.position, token: placed.token, beside });
                assert!(text.is_none_or(|text| text == *held), "a token belongs to sequences that are alike");
                text = Some(held.clone());
            }
            let row = |mut text: Vec<HeldCell>| {
                text.sort_by_key(|cell| cell.position);
                match self.piece {
                    Some(_) => row_of(&text.iter().map(|cell| (cell.token, cell.beside)).collect::<Vec<_>>()),
                    None => row_after(&text.iter().map(|cell| cell.token).collect::<Vec<_>>()),
                }
            };
            self.rows.push(text.filter(|_| placed.wanted).map(row));
        }
        if self.fails.contains(&self.passes) {
            // What it holds is not known then.
            let slot = self.slot(tokens[0].sequences.start);
            for sequence in 0..self.sequences.len() {
                if self.piece.is_none() || self.slot(sequence as i32) == slot {
                    self.sequences[sequence].push(HeldCell { position: 99, token: id(0), beside: 0 });
                }
            }
            return Err(RuntimeError::Decode { position: 0, tokens: tokens.len(), reason: "as told".to_owned() });
        }
        Ok(())
    }

    fn row(&self, index: usize) -> &[f32] {
        self.rows[index].as_deref().expect("a row that was asked for")
    }

    fn copy(&mut self, from: i32, to: i32, tokens: usize) -> Result<(), RuntimeError> {
        assert!(self.piece.is_none() || self.slot(from) == self.slot(to), "copied between caches");
        let first = self.sequences[from as usize].iter().filter(|cell| cell.position < tokens);
        self.sequences[to as usize] = first.copied().collect();
        Ok(())
    }

    fn join(&mut self, from: i32, to: i32, position: usize) -> Result<(), RuntimeError> {
        assert!(self.piece.is_none() || self.slot(from) == self.slot(to), "joined between caches");
        let more = self.sequences[from as usize].iter().filter(|cell| cell.position >= position).copied();
        let more: Vec<HeldCell> = more.collect();
        self.sequences[to as usize].extend(more);
        Ok(())
    }

    fn cut_sequence(&mut self, sequence: i32, tokens: usize) -> usize {
        let held = &mut self.sequences[sequence as usize];
        let kept = if self.has_parts || tokens == held.len() { tokens } else { 0 };
        held.retain(|cell| cell.position < kept);
        kept
    }

    fn shares(&self) -> bool {
        self.has_parts && self.piece.is_none()
    }

    fn piece(&self) -> Option<usize> {
        self.piece
    }
}
