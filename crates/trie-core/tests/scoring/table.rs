//! A model in a hash, and the host of it.

use crate::common::id;
use std::collections::BTreeSet;
use trie_core::{DecodeCost, TokenId, TokenTree, TreeDecoder};

pub(crate) const VOCABULARY: usize = 24;

/// A model in a hash: the prefix seeds the row after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    pub(crate) seed: u64,
    /// Whether some logits are NaN or infinite.
    pub(crate) odd: bool,
    /// Whether some rows hold nothing else.
    pub(crate) starved: bool,
}

impl Model {
    pub(crate) fn row(self, prefix: &[TokenId]) -> Vec<f32> {
        let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let mut state = prefix.iter().fold(mix(self.seed, 77), |state, token| mix(state, u64::from(token.get()) + 1));
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let starved = self.starved && random(6) == 0;
        let certain = self.odd && random(4) == 0;
        (0..VOCABULARY)
            .map(|_| match random(if self.odd { 8 } else { 1 }) {
                _ if starved => [f32::NAN, f32::NEG_INFINITY][random(2) as usize],
                1 => f32::NAN,
                2 => f32::NEG_INFINITY,
                3 if certain => f32::INFINITY,
                _ => random(12_000) as f32 / 1000.0 - 6.0,
            })
            .collect()
    }

    /// The probability of a token, the plain way.
    pub(crate) fn share(self, prefix: &[TokenId], of: impl Fn(TokenId) -> bool) -> f64 {
        let row: Vec<f64> = self.row(prefix).into_iter().map(f64::from).collect();
        let best = row.iter().copied().filter(|logit| !logit.is_nan()).fold(f64::NEG_INFINITY, f64::max);
        let weight = |logit: f64| match best {
            f64::NEG_INFINITY => 0.0,
            f64::INFINITY => f64::from(u8::from(logit == f64::INFINITY)),
            _ if logit.is_nan() => 0.0,
            _ => (logit - best).exp(),
        };
        let part = |(token, logit): (usize, &f64)| if of(id(token as u32)) { weight(*logit) } else { 0.0 };
        let sum: f64 = row.iter().map(|&logit| weight(logit)).sum();
        if sum == 0.0 { 0.0 } else { row.iter().enumerate().map(part).sum::<f64>() / sum }
    }
}

/// The host of that model: decodes trees of tokens, and notes what it was asked.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) model: Model,
    pub(crate) room: usize,
    pub(crate) at_once: usize,
    /// The prompt of each call and the paths whose rows were wanted.
    pub(crate) asked: Vec<(Vec<TokenId>, Vec<Vec<TokenId>>)>,
    /// Tokens that it was given twice in one tree, after the same ones.
    pub(crate) twice: usize,
    /// Rows before it says that it cannot go on.
    pub(crate) left: usize,
}

impl Table {
    pub(crate) fn new(model: Model) -> Self {
        Self { model, room: 1000, at_once: 40, asked: Vec::new(), twice: 0, left: usize::MAX }
    }

    pub(crate) fn rows(&self) -> usize {
        self.asked.iter().map(|(_, paths)| paths.len()).sum()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("told to stop")]
pub(crate) struct Stopped;

impl TreeDecoder for Table {
    type Error = Stopped;

    fn n_vocab(&self) -> usize {
        VOCABULARY
    }

    fn room(&self) -> usize {
        self.room
    }

    fn rows_at_once(&self) -> usize {
        self.at_once
    }

    fn n_threads(&self) -> u32 {
        3
    }

    fn decode(
        &mut self,
        prompt: &[TokenId],
        tree: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<DecodeCost, Stopped> {
        assert!(prompt.len() + tree.depth() <= self.room, "more than there is room for");
        assert!(!tree.wants_root() || !prompt.is_empty(), "no row before the first token");
        assert!(tree.rows() > 0, "asked for nothing");
        let mut path: Vec<usize> = Vec::new();
        for (number, node) in tree.nodes().iter().enumerate() {
            path.truncate(node.depth - 1);
            assert_eq!(path.last().copied(), node.parent, "depth first");
            path.push(number);
            assert!(node.wanted || node.has_children, "decoded for nothing");
        }
        let distinct: BTreeSet<_> = tree.nodes().iter().map(|node| (node.parent, node.token)).collect();
        self.twice += tree.nodes().len() - distinct.len();
        self.asked.push((prompt.to_vec(), Vec::new()));
        let wanted = (0..tree.nodes().len()).filter(|&node| tree.nodes()[node].wanted).map(Some);
        for node in tree.wants_root().then_some(None).into_iter().chain(wanted) {
            self.left = self.left.checked_sub(1).ok_or(Stopped)?;
            let path = node.map_or_else(Vec::new, |node| tree.path(node));
            each(node, &self.model.row(&[prompt, &path].concat()));
            self.asked.last_mut().unwrap().1.push(path);
        }
        Ok(DecodeCost { forward_passes: 1, tokens: tree.nodes().len(), gathered_rows: 0 })
    }
}
