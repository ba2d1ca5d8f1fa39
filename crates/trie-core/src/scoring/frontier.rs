//! Positions whose rows are still to be read, and the paths there.

use super::tree::TokenTree;
use super::values::At;
use crate::ids::TokenId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A position whose row is still to be read; the most probable is the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Open {
    pub(super) logprob: f64,
    pub(super) at: At,
    /// The last step of the path there.
    pub(super) step: u32,
}

impl Eq for Open {}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.logprob.total_cmp(&other.logprob).then_with(|| other.step.cmp(&self.step))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is still to be read.
#[derive(Debug)]
pub(super) struct Frontier {
    pub(super) open: BinaryHeap<Open>,
    /// All steps that were seen, each with the one before it; the first is none.
    steps: Vec<(u32, TokenId)>,
}

impl Frontier {
    pub(super) fn new() -> Self {
        Self { open: BinaryHeap::new(), steps: vec![(0, TokenId::default())] }
    }

    pub(super) fn step(&mut self, before: u32, token: TokenId) -> u32 {
        self.steps.push((before, token));
        self.steps.len() as u32 - 1
    }

    pub(super) fn push(&mut self, before: u32, token: TokenId, at: At, logprob: f64) {
        let step = self.step(before, token);
        self.open.push(Open { logprob, at, step });
    }

    fn path(&self, step: u32) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        let mut at = step;
        while at > 0 {
            let (before, token) = self.steps[at as usize];
            tokens.push(token);
            at = before;
        }
        tokens.reverse();
        tokens
    }

    /// A tree of the paths to these positions, whose rows are wanted; and which of them each node is.
    pub(super) fn tree(&self, chosen: &[Open]) -> (TokenTree, Vec<Option<Open>>) {
        let mut paths: Vec<(Vec<TokenId>, Open)> = chosen.iter().map(|&open| (self.path(open.step), open)).collect();
        // A path comes before those it begins, and what two begin with alike is pushed once.
        paths.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut tree, mut open_of) = (TokenTree::new(), Vec::new());
        let mut before: &[TokenId] = &[];
        for (path, open) in &paths {
            let shared = path.iter().zip(before).take_while(|(one, other)| one == other).count();
            for (depth, &token) in path.iter().enumerate().skip(shared) {
                let last = depth + 1 == path.len();
                tree.push(depth, token, last);
                open_of.push(last.then_some(*open));
            }
            before = path;
        }
        (tree, open_of)
    }
}
