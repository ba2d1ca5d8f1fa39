//! The most probable values of a large set, reading as few rows as that takes.
//!
//! Best first: a log-probability only falls along a path, so when the best value found beats every open position, it is the best
//! of all. Where several sequences stand for one value their probabilities add up, and what is open above a value bounds what
//! may still come: the search ends when the bounds do not overlap, when nothing is left that single precision would tell, or
//! when its budget is spent. The bounds hold in any case.

use super::choose::{Choice, ChooseOptions, ChooseStats};
use super::scores::Scores;
use super::tree::TokenTree;
use crate::runtime::context::Context;
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::time::Instant;
use trie_core::{Cursor, TokenId, Trie};

/// A position whose row is still to be read; the most probable is the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Open {
    pub(super) logprob: f64,
    pub(super) at: Cursor,
    /// The last step of the way there.
    step: u32,
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

/// What is still to be read, and the ways there.
#[derive(Debug)]
struct Frontier {
    open: BinaryHeap<Open>,
    /// All steps that were seen, each with the one before it; the first is none.
    steps: Vec<(u32, TokenId)>,
}

impl Frontier {
    fn new() -> Self {
        Self { open: BinaryHeap::new(), steps: vec![(0, TokenId::default())] }
    }

    fn step(&mut self, before: u32, token: TokenId) -> u32 {
        self.steps.push((before, token));
        self.steps.len() as u32 - 1
    }

    fn push(&mut self, before: u32, token: TokenId, at: Cursor, logprob: f64) {
        let step = self.step(before, token);
        self.open.push(Open { logprob, at, step });
    }

    fn way(&self, step: u32) -> Vec<TokenId> {
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

    /// A tree of the ways to these positions, whose rows are wanted; and which of them each node is.
    fn tree(&self, chosen: &[Open]) -> (TokenTree, Vec<Option<Open>>) {
        let mut ways: Vec<(Vec<TokenId>, Open)> = chosen.iter().map(|&open| (self.way(open.step), open)).collect();
        // A way comes before those it begins, and what two begin with alike is pushed once.
        ways.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut tree, mut places) = (TokenTree::default(), Vec::new());
        let mut path: Vec<(TokenId, usize)> = Vec::new();
        for (way, open) in ways {
            let shared = path.iter().zip(&way).take_while(|((on_path, _), token)| on_path == *token).count();
            path.truncate(shared);
            for (depth, &token) in way.iter().enumerate().skip(shared) {
                let last = depth + 1 == way.len();
                path.push((token, tree.push(path.last().map(|&(_, node)| node), token, last)));
                places.push(last.then_some(open));
            }
        }
        (tree, places)
    }
}

/// The canonical sequences of a set's values, as one tree. They are read first, where the values have others besides: whatever
/// the budget is, something is then known of each.
#[derive(Debug, Default)]
struct Canonical {
    tree: TokenTree,
    /// For each node, where it is, how it was reached, and its log-probability once that is known.
    nodes: Vec<Open>,
    /// The node behind a node, or behind the root, and a token.
    below: HashMap<(Option<usize>, TokenId), usize>,
}

impl Canonical {
    /// At most so many rows of them.
    fn new(scores: &Scores<'_>, most: usize, frontier: &mut Frontier) -> Self {
        let trie = scores.trie;
        let mut canonical = Self::default();
        if most == 0 {
            return canonical;
        }
        let mut sequences: Vec<Vec<TokenId>> = trie.leaves().map(|leaf| leaf.tokens).collect();
        sequences.sort_unstable();
        for tokens in sequences {
            let (mut at, mut node, mut step) = (Cursor::ROOT, None, 0);
            for &token in &tokens {
                let Some(next) = trie.step(at, token).filter(|&next| scores.needs_row(next)) else { break };
                at = next;
                node = Some(match canonical.below.get(&(node, token)) {
                    Some(&known) => known,
                    None if canonical.nodes.len() >= most => break,
                    None => {
                        let fresh = canonical.tree.push(node, token, true);
                        canonical.below.insert((node, token), fresh);
                        canonical.nodes.push(Open { logprob: f64::NEG_INFINITY, at, step: frontier.step(step, token) });
                        fresh
                    }
                });
                step = node.map_or(0, |node| canonical.nodes[node].step);
            }
        }
        canonical
    }

    /// Reads the row of a node, or of the root; `open` gets what is not among the nodes.
    fn expand(
        &mut self,
        node: Option<usize>,
        row: &[f32],
        scores: &mut Scores<'_>,
        mut open: impl FnMut(u32, TokenId, Cursor, f64),
    ) {
        let root = Open { logprob: 0.0, at: Cursor::ROOT, step: 0 };
        let Open { logprob, at, step } = node.map_or(root, |node| self.nodes[node]);
        scores.expand(at, logprob, row, |token, at, logprob| match self.below.get(&(node, token)) {
            Some(&below) => self.nodes[below].logprob = logprob,
            None => open(step, token, at, logprob),
        });
    }
}

impl Context {
    /// The best `options.top` values, or where several sequences stand for one value, all of them as well as the budget allows.
    pub(super) fn best_first(
        &mut self,
        prompt: &[TokenId],
        trie: &Trie,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Choice, RuntimeError> {
        /// Positions that are read together at first. It grows while a search goes on: then most of them are needed anyway.
        const WIDTH: usize = 32;
        let started = Instant::now();
        let before = self.forward_passes();
        let mut stats = ChooseStats { n_threads: self.n_threads(), ..ChooseStats::default() };
        stats.tokens_decoded = self.prefill(prompt, &mut || watch.stop())?;

        let is_tree = trie.is_tree();
        let mut scores = Scores::new(trie, options.end_tokens);
        scores.top = options.top.unwrap_or(usize::from(is_tree));
        let budget = options.budget(trie);
        let most = self.branches().max(WIDTH);
        let mut width = WIDTH;
        let mut frontier = Frontier::new();
        // Ways that are too long for the context: nothing more will be known of them.
        let mut too_long = Vec::new();
        let room = self.n_ctx() - prompt.len();
        let mut canonical = Canonical::new(&scores, if is_tree { 0 } else { budget - 1 }, &mut frontier);
        let mut push = |step, token, at, logprob| frontier.push(step, token, at, logprob);
        canonical.expand(None, self.logits()?, &mut scores, &mut push);
        let token_tree = std::mem::take(&mut canonical.tree);
        stats.tokens_decoded += self.decode_tree(&token_tree, &mut || watch.stop(), &mut |node, row| {
            canonical.expand(Some(node), row, &mut scores, &mut push);
        })?;
        let settled = |scores: &Scores<'_>, open: &BinaryHeap<Open>, too_long: &[Open]| {
            !is_tree && scores.is_settled(&[open.as_slice(), too_long].concat())
        };
        while scores.rows() < budget && !settled(&scores, &frontier.open, &too_long) {
            let threshold = scores.threshold();
            let mut chosen: Vec<Open> = Vec::new();
            while chosen.len() < width.min(budget - scores.rows())
                && let Some(next) = frontier.open.peek().copied().filter(|next| next.logprob > threshold)
            {
                frontier.open.pop();
                if next.at.depth() > room { too_long.push(next) } else { chosen.push(next) }
            }
            if chosen.is_empty() {
                break;
            }
            width = (width + width / 8).min(most);
            let (token_tree, places) = frontier.tree(&chosen);
            stats.tokens_decoded += self.decode_tree(&token_tree, &mut || watch.stop(), &mut |node, row| {
                if let Some(Open { logprob, at, step }) = places[node] {
                    scores.expand(at, logprob, row, |token, at, logprob| frontier.push(step, token, at, logprob));
                }
            })?;
        }
        stats.forward_passes = self.forward_passes() - before;
        stats.seconds = started.elapsed().as_secs_f64();
        let mut left = frontier.open.into_vec();
        left.extend(too_long);
        // A search that ends by itself ranks what it was for; with bounds something is known of every value.
        let bounds = !is_tree || options.max_rows.is_some();
        let ranked = options.top.unwrap_or(if bounds { usize::MAX } else { 1 });
        Ok(scores.into_choice(ranked, &left, bounds, stats))
    }
}
