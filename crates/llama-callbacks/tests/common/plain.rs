//! What the test files share that needs no llama.cpp.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;
use trie_core::{SpanRules, TokenId, Trie};

pub fn id(id: u32) -> TokenId {
    TokenId::new(id).unwrap()
}

pub fn ids(ids: impl IntoIterator<Item = u32>) -> Vec<TokenId> {
    ids.into_iter().map(id).collect()
}

pub fn trie(leaves: &[(&str, &[u32])]) -> Trie {
    let mut builder = Trie::builder();
    for (name, tokens) in leaves {
        builder.push(Some(name), &ids(tokens.iter().copied()));
    }
    builder.build().unwrap()
}

pub fn rules(n_vocab: usize, leaves: &[(&str, &[u32])]) -> SpanRules {
    SpanRules::new(vec![("action".to_owned(), trie(leaves).into())], n_vocab).unwrap()
}

pub fn shared_rules(n_vocab: usize, leaves: &[(&str, &[u32])]) -> Arc<SpanRules> {
    Arc::new(rules(n_vocab, leaves))
}

/// A candidate array after a sampler.
#[derive(Debug, Clone)]
pub struct Applied {
    /// What remains.
    pub kept: Vec<(i32, f32)>,
    /// The whole original array, what was dropped included.
    pub backing: Vec<(i32, f32)>,
    pub sorted: bool,
    pub selected: Option<usize>,
}

impl Applied {
    pub fn kept_ids(&self) -> Vec<i32> {
        self.kept.iter().map(|&(id, _)| id).collect()
    }

    /// The logit of a token over the original array; −inf where it is not.
    pub fn logit(&self, id: i32) -> f32 {
        self.backing.iter().find(|&&(other, _)| other == id).map_or(f32::NEG_INFINITY, |&(_, logit)| logit)
    }

    pub fn token(&self) -> Option<i32> {
        self.selected.map(|at| self.kept[at].0)
    }
}

/// An array in id order, as llama.cpp builds it.
pub fn in_id_order(logits: &[f32]) -> Vec<(i32, f32)> {
    (0..).zip(logits.iter().copied()).collect()
}

/// A small generator of test data: the same numbers on every machine.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        // xorshift64*, https://en.wikipedia.org/wiki/Xorshift
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    pub fn logit(&mut self) -> f32 {
        (self.below(20_001) as f32 - 10_000.0) / 1_000.0
    }

    pub fn logits(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.logit()).collect()
    }
}
