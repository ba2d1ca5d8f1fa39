//! Every value of every prompt, as one tree.

use super::choice::{Choice, ChooseStats};
use super::error::ScoringError;
use super::job::WantedRows;
use super::scores::Scores;
use super::tree::TokenTree;
use super::values::{TrieSpanState, Values};
use crate::set::byte_order::shared_length;
use crate::set::ids::TokenId;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A node whose row is wanted.
#[derive(Debug)]
struct WantedRow {
    /// The number of its prompt.
    prompt: usize,
    at: TrieSpanState,
    /// Known once its parent's row was read. The same position may be reached on several paths, so it belongs to the
    /// node.
    logprob: f64,
}

/// The scoring of every value after each of some prompts. None may be empty.
#[derive(Debug)]
pub(super) struct WholeScoring {
    /// Common prefix of all prompts.
    held: Vec<TokenId>,
    /// Branches of the only prompt.
    branches: Vec<Vec<TokenId>>,
    tree: TokenTree,
    nodes: Vec<Option<WantedRow>>,
    /// The node behind a node and a token.
    below: HashMap<(usize, TokenId), usize>,
    /// Scores of each prompt.
    scores: Vec<Scores>,
}

impl WholeScoring {
    pub(super) fn new(asked: &[(&[TokenId], Arc<Values>)]) -> Self {
        let prompts: Vec<&[TokenId]> = asked.iter().map(|&(prompt, _)| prompt).collect();
        let common = common_prefix(&prompts);
        let held = prompts.first().map_or_else(Vec::new, |prompt| prompt[..common].to_vec());
        let mut whole = Self::empty(held, Vec::new());
        for (number, (prompt, values)) in asked.iter().enumerate() {
            whole.add(number, &prompt[common..], values);
        }
        whole
    }

    /// The scoring after one prompt with these branches, which neighbour each other; something follows them.
    pub(super) fn branched(prompt: &[TokenId], branches: &[Range<usize>], values: &Arc<Values>) -> Self {
        let head = branches.first().map_or(0, |first| first.start);
        let tail = branches.last().map_or(0, |last| last.end);
        let runs = branches.iter().map(|branch| prompt[branch.clone()].to_vec()).collect();
        let mut whole = Self::empty(prompt[..head].to_vec(), runs);
        whole.add(0, &prompt[tail..], values);
        whole
    }

    fn empty(held: Vec<TokenId>, branches: Vec<Vec<TokenId>>) -> Self {
        Self { held, branches, tree: TokenTree::new(), nodes: Vec::new(), below: HashMap::new(), scores: Vec::new() }
    }

    /// Adds the tail of a prompt, and the values after it.
    fn add(&mut self, prompt: usize, tail: &[TokenId], values: &Arc<Values>) {
        for (depth, &token) in tail.iter().enumerate() {
            let last = depth + 1 == tail.len();
            self.tree.push(depth, token, last);
            self.nodes.push(last.then(|| WantedRow { prompt, at: values.rules.start(), logprob: 0.0 }));
        }
        for (token, at) in values.positions() {
            let node = self.tree.push(tail.len() + at.depth() - 1, token, true);
            self.below.extend(self.tree.nodes()[node].parent.map(|parent| ((parent, token), node)));
            self.nodes.push(Some(WantedRow { prompt, at, logprob: f64::NEG_INFINITY }));
        }
        self.scores.push(Scores::new(Arc::clone(values), 0));
    }

    pub(super) fn want(&self) -> WantedRows<'_> {
        WantedRows { prompt: &self.held, branches: &self.branches, tree: &self.tree, is_draft: false }
    }

    pub(super) fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), ScoringError> {
        let Self { nodes, below, scores, .. } = self;
        let Some((node, &WantedRow { prompt, at, logprob })) =
            node.and_then(|node| Some((node, nodes[node].as_ref()?)))
        else {
            return Ok(());
        };
        scores[prompt].expand(at, logprob, row, |token, _, logprob| {
            if let Some(child) = below.get(&(node, token)).and_then(|&child| nodes[child].as_mut()) {
                child.logprob = logprob;
            }
        })
    }

    pub(super) fn into_choices(self, stats: ChooseStats) -> Vec<Choice> {
        self.scores.into_iter().map(|scores| scores.into_choice(usize::MAX, &[], true, stats)).collect()
    }
}

/// Returns the length of the common prefix of all prompts; the last token of each stays out, because its row is wanted.
fn common_prefix(prompts: &[&[TokenId]]) -> usize {
    let Some((first, others)) = prompts.split_first() else { return 0 };
    let mut common = first.len();
    for prompt in others {
        common = shared_length(&first[..common], prompt);
    }
    let shortest = prompts.iter().map(|prompt| prompt.len()).min().unwrap_or(0);
    common.min(shortest.saturating_sub(1))
}
