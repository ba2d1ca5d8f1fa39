//! Positions whose rows are still to be read, and the paths there.

use super::scores::UnreadPosition;
use super::tree::TokenTree;
use super::values::TrieSpanState;
use crate::set::ids::TokenId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A position whose row is still to be read; the most probable is the greatest. Small: a search sorts millions of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Open {
    pub(super) logprob: f64,
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

/// Positions still to be read.
#[derive(Debug)]
pub(super) struct Frontier {
    pub(super) open: BinaryHeap<Open>,
    /// All steps that were seen; the first is none.
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    /// The one before it.
    before: u32,
    token: TokenId,
    /// Position that the step leads to.
    at: TrieSpanState,
}

impl Frontier {
    /// Before the first token.
    pub(super) const START: Open = Open { logprob: 0.0, step: 0 };

    pub(super) fn new(start: TrieSpanState) -> Self {
        let none = Step { before: 0, token: TokenId::default(), at: start };
        Self { open: BinaryHeap::new(), steps: vec![none] }
    }

    /// Returns the position that a step leads to.
    pub(super) fn position_after(&self, step: u32) -> TrieSpanState {
        self.steps[step as usize].at
    }

    pub(super) fn step(&mut self, before: u32, token: TokenId, at: TrieSpanState) -> u32 {
        self.steps.push(Step { before, token, at });
        self.steps.len() as u32 - 1
    }

    pub(super) fn push(&mut self, before: u32, token: TokenId, at: TrieSpanState, logprob: f64) {
        let step = self.step(before, token, at);
        self.open.push(Open { logprob, step });
    }

    fn path(&self, step: u32) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        let mut at = step;
        while at > 0 {
            let Step { before, token, .. } = self.steps[at as usize];
            tokens.push(token);
            at = before;
        }
        tokens.reverse();
        tokens
    }

    /// A tree of the paths to these positions, whose rows are wanted, and the position of each node.
    pub(super) fn tree(&self, chosen: &[Open]) -> (TokenTree, Vec<Option<Open>>) {
        let path = |open: &Open| {
            let path = self.path(open.step);
            let position = path.len();
            (path, position)
        };
        let paths: Vec<(Vec<TokenId>, usize)> = chosen.iter().map(path).collect();
        let (tree, places) = TokenTree::of_paths(&paths);
        let mut open_of = vec![None; tree.nodes().len()];
        for (place, open) in places.into_iter().zip(chosen) {
            if let Some(node) = place {
                open_of[node] = Some(*open);
            }
        }
        (tree, open_of)
    }

    /// Returns the positions that were not read, and `others` that cannot be.
    pub(super) fn unread_positions(&self, others: &[Open]) -> Vec<UnreadPosition> {
        let left = |open: &Open| UnreadPosition {
            at: self.position_after(open.step).position().cursor(),
            logprob: open.logprob,
        };
        self.open.iter().chain(others).map(left).collect()
    }
}
