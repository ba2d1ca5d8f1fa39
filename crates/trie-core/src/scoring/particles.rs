//! Texts that are continued by draws, all of them in one tree of tokens at a time.

use super::error::{DeadEnd, ScoringError};
use super::job::WantedRows;
use super::mass::RowMass;
use super::tree::PathTree;
use crate::machine::constraint::{AnyState, Problem, Scratch};
use crate::machine::span::{SpanRules, SpanState, Status};
use crate::set::byte_order::shared_length;
use crate::set::ids::TokenId;
use std::sync::Arc;

/// Longest run of forced tokens whose rows are read at once.
const LONGEST_RUN: usize = 256;

/// The forced tokens after a state, at most so many, without one that ends the value: their rows can be read together.
pub(super) fn forced_run(rules: &SpanRules, at: &SpanState<AnyState>, most: usize) -> Vec<TokenId> {
    let (mut at, mut scratch, mut run) = (at.clone(), Scratch::default(), Vec::new());
    while run.len() < most.min(LONGEST_RUN)
        && let Some(token) = rules.forced(&at, &mut scratch)
        && rules.advance(&mut at, token).is_some()
        && at.status() == Status::Active
    {
        run.push(token);
    }
    run
}

/// The error of a state from which no way leads on.
pub(super) fn dead_end(rules: &SpanRules, at: &SpanState<AnyState>) -> ScoringError {
    match rules.problem(at) {
        Some(problem) => ScoringError::Problem(problem),
        None => DeadEnd { depth: at.depth() }.into(),
    }
}

/// One text on its way, with a note of what it is for.
#[derive(Debug, Clone)]
pub(super) struct Particle<T> {
    /// Tokens after the prompt.
    pub(super) tokens: Vec<TokenId>,
    pub(super) at: SpanState<AnyState>,
    /// The logarithm of its weight.
    pub(super) weight: f64,
    pub(super) is_over: bool,
    pub(super) note: T,
}

impl<T> Particle<T> {
    pub(super) fn new(tokens: Vec<TokenId>, at: SpanState<AnyState>, note: T) -> Self {
        Self { tokens, at, weight: 0.0, is_over: false, note }
    }

    /// Returns whether it ended with a token after which a value can only end.
    pub(super) fn is_complete(&self) -> bool {
        self.at.status() == Status::Complete
    }
}

/// The ways on from a state, with their probabilities under the whole vocabulary.
#[derive(Debug)]
pub(super) struct Fan {
    tokens: Vec<TokenId>,
    /// Probabilities of the tokens up to each.
    sums: Vec<f64>,
    /// Probability that the value ends here.
    pub(super) stops: f64,
    /// The most probable end token, where one is needed.
    pub(super) end: Option<TokenId>,
}

impl Fan {
    /// Probability of all tokens that continue.
    pub(super) fn goes_on(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// The tokens that continue, and the probability of each.
    pub(super) fn parts(&self) -> (&[TokenId], Vec<f64>) {
        let before = std::iter::once(&0.0).chain(&self.sums);
        (&self.tokens, self.sums.iter().zip(before).map(|(sum, before)| sum - before).collect())
    }

    /// The token at this share of [`Fan::goes_on`], from 0 to 1.
    pub(super) fn token_at(&self, share: f64) -> Option<TokenId> {
        let target = share * self.goes_on();
        let index = self.sums.partition_point(|&sum| sum <= target);
        self.tokens.get(index).or(self.tokens.last()).copied()
    }

    /// The fan of these tokens with their log-probabilities.
    pub(super) fn new(tokens: impl Iterator<Item = (TokenId, f64)>) -> Self {
        let (mut sum, mut fan) = (0.0, Self { tokens: Vec::new(), sums: Vec::new(), stops: 0.0, end: None });
        for (token, logprob) in tokens.filter(|&(_, logprob)| logprob > f64::NEG_INFINITY) {
            sum += logprob.exp();
            fan.tokens.push(token);
            fan.sums.push(sum);
        }
        fan
    }
}

/// Particles that are continued together.
#[derive(Debug)]
pub(super) struct Population<T> {
    rules: Arc<SpanRules>,
    prompt: Vec<TokenId>,
    /// The most tokens of a text.
    limit: usize,
    pub(super) particles: Vec<Particle<T>>,
    /// The prompt, and what the particles that go on begin with alike.
    held: Vec<TokenId>,
    paths: PathTree,
    /// The particles that wait for a row: of the held tokens, then of each node.
    waiting: Vec<Vec<usize>>,
    certain: Vec<f32>,
    spare: Vec<f32>,
}

impl<T> Population<T> {
    pub(super) fn new(rules: Arc<SpanRules>, prompt: &[TokenId], limit: usize, particles: Vec<Particle<T>>) -> Self {
        Self {
            rules,
            prompt: prompt.to_vec(),
            limit,
            particles,
            held: Vec::new(),
            paths: PathTree::default(),
            waiting: Vec::new(),
            certain: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Plans the next rows; returns `false` if all particles are over.
    pub(super) fn plan(&mut self) -> bool {
        let moving: Vec<usize> = (0..self.particles.len()).filter(|&at| !self.particles[at].is_over).collect();
        let Some(&first) = moving.first() else { return false };
        let of = |&number: &usize| &self.particles[number].tokens[..];
        let common = moving.iter().map(of).fold(of(&first), |common, tokens| &common[..shared_length(common, tokens)]);
        self.held = [&self.prompt, common].concat();
        let common = common.len();
        let path = |number: &usize| {
            let Particle { tokens, at, .. } = &self.particles[*number];
            let run = forced_run(&self.rules, at, self.limit.saturating_sub(tokens.len()));
            ([&tokens[common..], &run].concat(), tokens.len() - common)
        };
        let (paths, places) = PathTree::new(&moving.iter().map(path).collect::<Vec<_>>());
        self.waiting = vec![Vec::new(); paths.tree.nodes().len() + 1];
        for (place, number) in places.into_iter().zip(moving) {
            self.waiting[place.map_or(0, |node| node + 1)].push(number);
        }
        self.paths = paths;
        true
    }

    pub(super) fn want(&self) -> WantedRows<'_> {
        WantedRows { prompt: &self.held, branches: &[], tree: &self.paths.tree, is_draft: false }
    }

    /// Moves the particles that wait for this row. `choose` gives the token of each, by its number; `None` ends it.
    pub(super) fn take(
        &mut self,
        node: Option<usize>,
        row: &[f32],
        mut choose: impl FnMut(usize, &mut Particle<T>, &Fan) -> Option<TokenId>,
    ) -> Result<(), ScoringError> {
        let waiting = std::mem::take(&mut self.waiting[node.map_or(0, |node| node + 1)]);
        let Some(&first) = waiting.first() else { return Ok(()) };
        let at = self.particles[first].at.clone();
        let mass = RowMass::read(row, &mut self.certain)?;
        let mut scratch = Scratch::default();
        let ways = mass.ways(&self.rules, &at, &mut scratch, &mut self.spare);
        let ways = ways.ok_or_else(|| dead_end(&self.rules, &at))?;
        let goes_on = self.particles[first].tokens.len() < self.limit;
        let tokens = ways.tokens(mass.n_vocab()).filter(|_| goes_on).map(|token| (token, mass.logprob(token)));
        let fan = Fan { stops: ways.stops.map_or(0.0, f64::exp), end: mass.best(&ways.ends), ..Fan::new(tokens) };
        for number in waiting {
            let particle = &mut self.particles[number];
            let Some(token) = choose(number, particle, &fan) else {
                particle.is_over = true;
                continue;
            };
            particle.tokens.push(token);
            self.rules.advance(&mut particle.at, token).ok_or_else(|| dead_end(&self.rules, &at))?;
            particle.is_over = particle.is_complete();
            if let Some(below) = self.paths.node_after(node, token).filter(|_| !particle.is_over) {
                self.waiting[below + 1].push(number);
            }
        }
        Ok(())
    }
}

/// Positions at which `count` draws fall into parts of these weights, one draw from each of `count` equal stretches.
/// Returns the number of the part of each, ascending. No weight is negative, and one is not 0.
pub(super) fn spread(weights: &[f64], count: usize, mut uniform: impl FnMut() -> f64) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
    let (mut part, mut upto) = (0, weights.first().copied().unwrap_or(0.0));
    (0..count)
        .map(|draw| {
            let target = (draw as f64 + uniform()) / count as f64 * total;
            while part < last && upto <= target {
                part += 1;
                upto += weights[part];
            }
            part
        })
        .collect()
}

impl From<Problem> for ScoringError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}
