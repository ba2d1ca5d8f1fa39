//! A context for tests, without llama.cpp.

use super::cells::Cells;
use llama_sampler::{Placed, RuntimeError};
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
    let logit = |next: usize| {
        let mut hasher = DefaultHasher::new();
        (tokens, next).hash(&mut hasher);
        (hasher.finish() % 1000) as f32 / 100.0
    };
    (0..VOCABULARY).map(logit).collect()
}

/// A cache that refuses what llama.cpp would abort at, and passes that fail now and then.
pub(super) struct Fake {
    slots: usize,
    n_batch: usize,
    sequences: Vec<Vec<TokenId>>,
    rows: Vec<Option<Vec<f32>>>,
    passes: u64,
    /// The passes that fail.
    fails: HashSet<u64>,
    has_parts: bool,
}

impl Fake {
    pub(super) fn new(slots: usize, branches: usize, n_batch: usize) -> Self {
        let sequences = vec![Vec::new(); slots + branches];
        Self { slots, n_batch, sequences, rows: Vec::new(), passes: 0, fails: HashSet::new(), has_parts: true }
    }

    /// These passes fail.
    pub(super) fn failing(self, fails: HashSet<u64>) -> Self {
        Self { fails, ..self }
    }

    /// A recurrent model.
    pub(super) fn without_parts(self) -> Self {
        Self { has_parts: false, ..self }
    }
}

impl Cells for Fake {
    fn slots(&self) -> usize {
        self.slots
    }

    fn branches(&self) -> usize {
        self.sequences.len() - self.slots
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

    fn decode(&mut self, tokens: &[Placed]) -> Result<(), RuntimeError> {
        assert!((1..=self.n_batch).contains(&tokens.len()), "{} tokens in a pass", tokens.len());
        self.passes += 1;
        self.rows.clear();
        for placed in tokens {
            let mut text = None;
            assert!(!placed.sequences.is_empty());
            for sequence in placed.sequences.clone() {
                let held = &mut self.sequences[sequence as usize];
                assert_eq!(held.len(), placed.position, "of sequence {sequence}");
                held.push(placed.token);
                assert!(text.is_none_or(|text| text == *held), "a token belongs to sequences that are alike");
                text = Some(held.clone());
            }
            self.rows.push(text.filter(|_| placed.wanted).map(|text| row_after(&text)));
        }
        if self.fails.contains(&self.passes) {
            // What it holds is not known then.
            self.sequences.iter_mut().for_each(|held| held.push(id(0)));
            return Err(RuntimeError::Decode { position: 0, tokens: tokens.len(), reason: "as told".to_owned() });
        }
        Ok(())
    }

    fn row(&self, index: usize) -> &[f32] {
        self.rows[index].as_deref().expect("a row that was asked for")
    }

    fn copy(&mut self, from: i32, to: i32, tokens: usize) -> Result<(), RuntimeError> {
        self.sequences[to as usize] = self.sequences[from as usize][..tokens].to_vec();
        Ok(())
    }

    fn cut(&mut self, sequence: i32, tokens: usize) -> usize {
        let held = &mut self.sequences[sequence as usize];
        let kept = if self.has_parts || tokens == held.len() { tokens } else { 0 };
        held.truncate(kept);
        kept
    }

    fn has_parts(&self) -> bool {
        self.has_parts
    }
}
