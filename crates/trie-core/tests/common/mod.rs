//! The naive twin: a set of sequences and the plainest possible answers.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

pub mod multiples;
pub mod vectors;

use std::collections::{BTreeMap, BTreeSet};
use trie_core::{TokenId, Trie};

pub fn id(raw: u32) -> TokenId {
    TokenId::new(raw).expect("a token id")
}

pub fn ids(raw: &[u32]) -> Vec<TokenId> {
    raw.iter().map(|&raw| id(raw)).collect()
}

/// Rows as they came, with names.
#[derive(Debug, Clone)]
pub struct Naive {
    pub rows: Vec<(String, Vec<u32>)>,
}

impl Naive {
    pub fn trie(&self) -> Trie {
        let mut builder = Trie::builder();
        for (name, tokens) in &self.rows {
            builder.push(Some(name), &ids(tokens));
        }
        builder.build().expect("rows are usable")
    }

    /// Sequences in order, each with its smallest name and first row.
    pub fn leaves(&self) -> BTreeMap<Vec<u32>, (String, usize)> {
        let mut leaves = BTreeMap::<_, (String, usize)>::new();
        for (row, (name, tokens)) in self.rows.iter().enumerate() {
            let leaf = leaves.entry(tokens.clone()).or_insert_with(|| (name.clone(), row));
            leaf.0 = leaf.0.clone().min(name.clone());
        }
        leaves
    }

    pub fn children(&self, prefix: &[u32]) -> BTreeSet<u32> {
        let longer = self.rows.iter().filter(|(_, tokens)| tokens.len() > prefix.len() && tokens.starts_with(prefix));
        longer.map(|(_, tokens)| tokens[prefix.len()]).collect()
    }

    pub fn is_leaf(&self, prefix: &[u32]) -> bool {
        self.rows.iter().any(|(_, tokens)| tokens == prefix)
    }

    pub fn prefixes(&self) -> BTreeSet<Vec<u32>> {
        let all = self.rows.iter().flat_map(|(_, tokens)| (0..=tokens.len()).map(|end| tokens[..end].to_vec()));
        all.collect()
    }

    /// What must follow while only one token may. At a leaf the end tokens may, too, and without any it may end there.
    pub fn forced(&self, prefix: &[u32], ends: &[u32]) -> Vec<u32> {
        let mut at = prefix.to_vec();
        loop {
            let (children, leaf) = (self.children(&at), self.is_leaf(&at));
            let mut legal = children.clone();
            legal.extend(ends.iter().filter(|_| leaf));
            if (leaf && ends.is_empty()) || legal.len() != 1 {
                break;
            }
            at.extend(&legal);
            if children.is_empty() {
                break;
            }
        }
        at.split_off(prefix.len())
    }
}

/// The best of `allowed`, the plain way.
pub fn naive_best(row: &[f32], allowed: impl IntoIterator<Item = u32>) -> Option<u32> {
    let mut best: Option<(f32, u32)> = None;
    for token in allowed {
        let logit = row[token as usize];
        let logit = if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        if best.is_none_or(|(high, _)| logit > high) {
            best = Some((logit, token));
        }
    }
    best.map(|(_, token)| token)
}
