//! The most probable values of a large set, found by reading as few rows as possible.
//!
//! Best first: a log-probability only falls along a path, so once the best value found beats every open position, it
//! is the best of all. If several sequences stand for one value, their probabilities add up, and the open positions
//! above a value bound the probability that it may still gain. The search ends when the bounds do not overlap, when
//! the probability left is too small for single precision, or when its budget is spent. The bounds hold in any case.

use super::choice::{Choice, ChooseOptions, ChooseStats};
use super::decoder::Host;
use super::error::ScoringError;
use super::frontier::{Frontier, Open};
use super::job::WantedRows;
use super::scores::Scores;
use super::tree::TokenTree;
use super::values::{Values, needs_row};
use crate::machine::constraint::Step;
use crate::set::ids::TokenId;
use std::collections::HashMap;
use std::sync::Arc;

/// Positions that are read together at first. The number grows during a search: most positions of a long search are
/// needed anyway.
const WIDTH: usize = 32;

/// The search for the best `options.top` values. If several sequences stand for one value, it finds all values as well
/// as the budget allows.
#[derive(Debug)]
pub(super) struct Search {
    prompt: Vec<TokenId>,
    values: Arc<Values>,
    top: Option<usize>,
    has_budget: bool,
    budget: usize,
    /// Positions that are read together: now, and at most.
    width: usize,
    most: usize,
    /// Maximum number of positions expanded per depth; `None` reads on until no better value is possible.
    beam: Option<usize>,
    room: usize,
    scores: Scores,
    frontier: Frontier,
    /// Depth of the positions that are read next, while a search with a budget begins with a beam. Without it the rows
    /// of a set without a preference would all be spent before the first value ends.
    dive: Option<usize>,
    /// Paths that are too long for the host, and those that a beam skipped: they are never read.
    passed_over: Vec<Open>,
    /// Until its rows were read.
    canonical: Option<Canonical>,
    /// Positions being read, and the node of each.
    tree: TokenTree,
    open_of: Vec<Option<Open>>,
    /// True until the first row was read.
    is_new: bool,
}

impl Search {
    pub(super) fn new(prompt: &[TokenId], values: &Arc<Values>, options: &ChooseOptions<'_>, host: Host) -> Self {
        let is_tree = values.trie().is_tree();
        // A beam is a budget of its own.
        let most = if is_tree || options.beam.is_some() { usize::MAX } else { ChooseOptions::MAX_ROWS };
        let budget = options.max_rows.unwrap_or(most);
        let mut frontier = Frontier::new(values.rules.start());
        let room = host.room.saturating_sub(prompt.len());
        let canonical = if is_tree || options.beam.is_some() { 0 } else { budget - 1 };
        let mut canonical = Canonical::new(values, canonical, room, &mut frontier);
        let top = options.top.or(options.beam);
        Self {
            prompt: prompt.to_vec(),
            top,
            has_budget: options.max_rows.is_some(),
            budget,
            width: WIDTH,
            most: host.rows_at_once.max(WIDTH),
            beam: options.beam,
            room,
            scores: Scores::new(Arc::clone(values), top.unwrap_or(usize::from(is_tree))),
            frontier,
            dive: (is_tree && options.beam.is_none() && (8 * WIDTH..usize::MAX).contains(&budget)).then_some(0),
            passed_over: Vec::new(),
            tree: std::mem::take(&mut canonical.tree),
            canonical: Some(canonical),
            open_of: Vec::new(),
            is_new: true,
            values: Arc::clone(values),
        }
    }

    /// Picks the rows to read next; returns `false` if there are none.
    pub(super) fn advance(&mut self) -> bool {
        if std::mem::take(&mut self.is_new) {
            return true;
        }
        self.canonical = None;
        let is_tree = self.values.trie().is_tree();
        let rows = self.scores.rows();
        let adds_up = !is_tree && self.beam.is_none();
        if rows >= self.budget
            || (adds_up && self.scores.is_settled(&self.frontier.unread_positions(&self.passed_over)))
        {
            return false;
        }
        if let Some(depth) = self.dive {
            let chosen = self.at_depth(depth + 1, self.budget - rows);
            self.dive = (!chosen.is_empty()).then_some(depth + 1);
            if !chosen.is_empty() {
                (self.tree, self.open_of) = self.frontier.tree(&chosen);
                return true;
            }
        }
        let threshold = self.scores.threshold();
        let mut chosen: Vec<Open> = Vec::new();
        let width = self.beam.unwrap_or(self.width);
        while chosen.len() < width.min(self.budget - rows)
            && let Some(next) = self.frontier.open.peek().copied().filter(|next| next.logprob > threshold)
        {
            self.frontier.open.pop();
            let is_too_long = self.frontier.position_after(next.step).depth() > self.room;
            if is_too_long { self.passed_over.push(next) } else { chosen.push(next) }
        }
        self.width = (self.width + self.width / 8).min(self.most);
        if self.beam.is_some() {
            self.passed_over.append(&mut std::mem::take(&mut self.frontier.open).into_vec());
        }
        (self.tree, self.open_of) = self.frontier.tree(&chosen);
        !chosen.is_empty()
    }

    /// Takes the most probable of the positions at a depth off the frontier, at most `most` of them.
    fn at_depth(&mut self, depth: usize, most: usize) -> Vec<Open> {
        let width = WIDTH.max(2 * self.top.unwrap_or(1)).min(most);
        let (mut here, others): (Vec<Open>, Vec<Open>) =
            std::mem::take(&mut self.frontier.open).into_iter().partition(|open| {
                let position = self.frontier.position_after(open.step);
                position.depth() == depth && depth <= self.room
            });
        here.sort_unstable_by(|one, other| other.cmp(one));
        let rest = here.split_off(width.min(here.len()));
        self.frontier.open = others.into_iter().chain(rest).collect();
        here
    }

    pub(super) fn want(&self) -> WantedRows<'_> {
        WantedRows { prompt: &self.prompt, branches: &[], tree: &self.tree, is_draft: false }
    }

    pub(super) fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), ScoringError> {
        let Self { canonical, scores, frontier, open_of, .. } = self;
        if let Some(canonical) = canonical {
            return canonical.expand(node, row, scores, frontier);
        }
        let Some(Open { logprob, step }) = node.and_then(|node| open_of[node]) else { return Ok(()) };
        scores.expand(frontier.position_after(step), logprob, row, |token, at, logprob| {
            frontier.push(step, token, at, logprob);
        })
    }

    pub(super) fn into_choice(self, stats: ChooseStats) -> Choice {
        let left = self.frontier.unread_positions(&self.passed_over);
        // A search that ends by itself ranks what it was for; with bounds something is known of every value.
        let bounds = !self.values.trie().is_tree() || self.has_budget;
        let ranked = self.top.unwrap_or(if bounds { usize::MAX } else { 1 });
        self.scores.into_choice(ranked, &left, bounds, stats)
    }
}

/// The canonical sequences of a set's values, as one tree. If values have other sequences too, these are read first,
/// so that something is known of each value whatever the budget.
#[derive(Debug)]
struct Canonical {
    tree: TokenTree,
    /// For each node how it was reached, and its log-probability once that is known.
    nodes: Vec<Open>,
    /// The node that follows a node, or the root, with a token.
    below: HashMap<(Option<usize>, TokenId), usize>,
}

impl Canonical {
    /// The tree with the root and at most `most` other positions, none deeper than `room`.
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
                let step =
                    values.rules.step(&frontier.position_after(before), token).filter(|step| needs_row(&step.state));
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

    /// Reads the row of a node or of the root. Tokens that lead to no node of the tree go to the frontier.
    fn expand(
        &mut self,
        node: Option<usize>,
        row: &[f32],
        scores: &mut Scores,
        frontier: &mut Frontier,
    ) -> Result<(), ScoringError> {
        let Open { logprob, step } = self.open(node);
        scores.expand(frontier.position_after(step), logprob, row, |token, at, logprob| {
            match self.below.get(&(node, token)) {
                Some(&below) => self.nodes[below].logprob = logprob,
                None => frontier.push(step, token, at, logprob),
            }
        })
    }
}
