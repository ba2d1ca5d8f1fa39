//! The most probable values of a large set, reading as few rows as that takes.
//!
//! Best first: a log-probability only falls along a path, so when the best value found beats every open position, it is
//! the best of all. Where several sequences stand for one value their probabilities add up, and what is open above a
//! value bounds what may still come: the search ends when the bounds do not overlap, when nothing is left that single
//! precision would tell, or when its budget is spent. The bounds hold in any case.

use super::choice::{Choice, ChooseOptions, ChooseStats};
use super::decoder::TreeDecoder;
use super::error::ChooseError;
use super::frontier::{Frontier, Open};
use super::rows::{DeadEnd, read_rows};
use super::scores::Scores;
use super::tree::TokenTree;
use super::values::{Values, needs_row};
use crate::machine::constraint::Step;
use crate::set::ids::TokenId;
use std::collections::HashMap;
use std::time::Instant;

/// Positions that are read together at first. It grows while a search goes on: then most of them are needed anyway.
const WIDTH: usize = 32;

/// The best `options.top` values, or where several sequences stand for one value, all of them as well as the budget
/// allows.
pub(super) fn best_first<D: TreeDecoder + ?Sized>(
    decoder: &mut D,
    prompt: &[TokenId],
    values: &Values,
    options: &ChooseOptions<'_>,
) -> Result<Choice, ChooseError<D::Error>> {
    let started = Instant::now();
    let mut stats = ChooseStats::default();
    let is_tree = values.trie().is_tree();
    let mut scores = Scores::new(values, options.top.unwrap_or(usize::from(is_tree)));
    let budget = options.max_rows.unwrap_or(if is_tree { usize::MAX } else { ChooseOptions::MAX_ROWS });
    let most = decoder.rows_at_once().max(WIDTH);
    let mut width = WIDTH;
    let mut frontier = Frontier::new(values.rules.start());
    // Paths that are too long for the host: nothing more will be known of them.
    let mut too_long = Vec::new();
    let room = decoder.room().saturating_sub(prompt.len());

    let mut canonical = Canonical::new(values, if is_tree { 0 } else { budget - 1 }, room, &mut frontier);
    let token_tree = std::mem::take(&mut canonical.tree);
    read_rows(decoder, prompt, &token_tree, &mut stats, |node, row| {
        canonical.expand(node, row, &mut scores, &mut frontier)
    })?;
    while scores.rows() < budget && (is_tree || !scores.is_settled(&frontier.left(&too_long))) {
        let threshold = scores.threshold();
        let mut chosen: Vec<Open> = Vec::new();
        while chosen.len() < width.min(budget - scores.rows())
            && let Some(next) = frontier.open.peek().copied().filter(|next| next.logprob > threshold)
        {
            frontier.open.pop();
            if frontier.at(next.step).depth() > room { too_long.push(next) } else { chosen.push(next) }
        }
        if chosen.is_empty() {
            break;
        }
        width = (width + width / 8).min(most);
        let (token_tree, open_of) = frontier.tree(&chosen);
        read_rows(decoder, prompt, &token_tree, &mut stats, |node, row| {
            let Some(Open { logprob, step }) = node.and_then(|node| open_of[node]) else { return Ok(()) };
            scores.expand(frontier.at(step), logprob, row, |token, at, logprob| frontier.push(step, token, at, logprob))
        })?;
    }
    stats.n_threads = decoder.n_threads();
    stats.seconds = started.elapsed().as_secs_f64();
    let left = frontier.left(&too_long);
    // A search that ends by itself ranks what it was for; with bounds something is known of every value.
    let bounds = !is_tree || options.max_rows.is_some();
    let ranked = options.top.unwrap_or(if bounds { usize::MAX } else { 1 });
    Ok(scores.into_choice(ranked, &left, bounds, stats))
}

/// The canonical sequences of a set's values, as one tree. They are read first, where the values have others besides:
/// whatever the budget is, something is then known of each.
#[derive(Debug)]
struct Canonical {
    tree: TokenTree,
    /// For each node how it was reached, and its log-probability once that is known.
    nodes: Vec<Open>,
    /// The node behind a node, or behind the root, and a token.
    below: HashMap<(Option<usize>, TokenId), usize>,
}

impl Canonical {
    /// The root, and at most so many other positions, none deeper than `room`.
    fn new(values: &Values, most: usize, room: usize, frontier: &mut Frontier) -> Self {
        let mut canonical = Self { tree: TokenTree::new(), nodes: Vec::new(), below: HashMap::new() };
        canonical.tree.want_root();
        if most == 0 {
            return canonical;
        }
        let mut sequences: Vec<Vec<TokenId>> = values.trie().leaves().map(|leaf| leaf.tokens).collect();
        sequences.sort_unstable();
        for tokens in sequences {
            let mut node = None;
            for (depth, &token) in tokens.iter().take(room).enumerate() {
                let before = canonical.open(node).step;
                let step = values.rules.step(&frontier.at(before), token).filter(|step| needs_row(&step.state));
                let Some(Step { state: at, .. }) = step else { break };
                node = Some(match canonical.below.get(&(node, token)) {
                    Some(&known) => known,
                    None if canonical.nodes.len() >= most => break,
                    None => {
                        let fresh = canonical.tree.push(depth, token, true);
                        canonical.below.insert((node, token), fresh);
                        let step = frontier.step(before, token, at);
                        canonical.nodes.push(Open { logprob: f64::NEG_INFINITY, step });
                        fresh
                    }
                });
            }
        }
        canonical
    }

    fn open(&self, node: Option<usize>) -> Open {
        node.map_or(Frontier::START, |node| self.nodes[node])
    }

    /// Reads the row of a node, or of the root. What is not among the nodes goes to the frontier.
    fn expand(
        &mut self,
        node: Option<usize>,
        row: &[f32],
        scores: &mut Scores<'_>,
        frontier: &mut Frontier,
    ) -> Result<(), DeadEnd> {
        let Open { logprob, step } = self.open(node);
        scores.expand(frontier.at(step), logprob, row, |token, at, logprob| match self.below.get(&(node, token)) {
            Some(&below) => self.nodes[below].logprob = logprob,
            None => frontier.push(step, token, at, logprob),
        })
    }
}
