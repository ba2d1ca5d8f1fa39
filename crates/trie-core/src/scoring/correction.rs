//! Draws from a constraint as a whole: a text is drawn as the model would write it if it had to write one of them.
//!
//! A walk that draws among the allowed tokens at each step prefers texts that begin well, even where the model then
//! leaves the constraint: the shares that the allowed tokens had are lost. Few texts are therefore scored, and one is
//! drawn by its probability. Of others several beginnings, all of them different, are continued at once. The part of
//! each that ends is kept with its probability, and all its continuations become beginnings. Where these are too many,
//! the most probable stay as they are, and of the others some are drawn, which then stand for all of them (the optimal
//! resampling of Fearnhead and Clifford). So nothing is drawn twice, and sums stay unbiased.
//!
//! A probable beginning may still leave the constraint. Of a constraint of few states, beginnings are therefore kept by
//! the probability times an outlook: a guess of what the rest will take. What is drawn gets the weight that it had,
//! divided by how probable its draw was, so a wrong guess costs precision only.

use super::choice::{ChooseOptions, ChooseStats};
use super::decoder::{DecodeCost, Host};
use super::error::{ChooseError, ScoringError};
use super::job::{Job, WantedRows};
use super::outlook::Outlook;
use super::particles::{Particle, Population, dead_end, spread};
use super::paths::list_paths;
use super::scoring::{Scoring, check_prompt};
use crate::machine::span::SpanRules;
use crate::rows::adjustments::LogitBias;
use crate::rows::draw::Draw;
use crate::rows::softmax::log_add;
use crate::set::ids::TokenId;
use crate::set::trie::Trie;
use std::borrow::Cow;
use std::sync::Arc;

/// Rows up to which all texts are scored.
const EXACT_ROWS: usize = 512;
/// Most continuations of one beginning that are weighed with the others, in multiples of the number of particles.
const OF_EACH: usize = 8;
/// Power of the guess of the outlook: its square root, since guesses are often wrong by a factor of ten.
const TRUST: f64 = 0.5;
/// Least logarithm of a guess: nothing is impossible that was not read.
const LEAST_OUTLOOK: f64 = -1000.0;
/// Beginnings are over when they could only add this share.
const LEAST_SHARE: f64 = 1e-9;

/// Options of a [`CorrectionJob`].
#[derive(Debug, Clone, PartialEq)]
pub struct CorrectionOptions {
    /// The most beginnings that are continued at once, at least 1.
    pub particles: usize,
    /// Seed of the draws.
    pub seed: u32,
    /// Number that divides the logits of the model; more than 0.
    pub temperature: f32,
    /// Bias added to the logits of the model.
    pub bias: LogitBias,
    /// The most tokens of a text. Longer ones are not drawn.
    pub max_tokens: usize,
}

/// A text that was drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct CorrectedDraw {
    /// Tokens of the text.
    pub tokens: Vec<TokenId>,
    /// The end token after it, where one is needed.
    pub end: Option<TokenId>,
    /// False if no text ended within the limit: then there are no tokens.
    pub is_whole: bool,
    /// Account of the draw.
    pub correction: Correction,
    /// Cost of the draw.
    pub stats: ChooseStats,
}

/// Account of the draw of a text from a constraint as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Correction {
    /// The most beginnings that were continued at once; 0 if every text was scored.
    pub particles: usize,
    /// Times that beginnings were drawn, because there were too many; 0 if the draw is exact.
    pub resamplings: usize,
    /// Number of texts of equal weight that would say as much as those among which the text was drawn.
    pub effective_sample_size: f64,
    /// Estimate of the logarithm of the probability that the model writes any of the texts; exact if the draw is.
    pub log_normalizer: f64,
    /// Rows of logits that were read.
    pub rows: usize,
}

/// The draw of a text from a constraint after a prompt, as a [`Job`].
#[derive(Debug)]
pub struct CorrectionJob {
    rules: Arc<SpanRules>,
    options: CorrectionOptions,
    way: Way,
    draw: Draw,
    is_new: bool,
    adjusted: Vec<f32>,
    stats: ChooseStats,
}

#[derive(Debug)]
enum Way {
    Exact(Box<Scoring>, Trie),
    Particles(Box<Beginnings>),
}

/// Beginnings that are continued, and what has ended.
#[derive(Debug)]
struct Beginnings {
    /// The note of each is its state in the outlook.
    population: Population<usize>,
    outlook: Option<Outlook>,
    next: Vec<Continuation>,
    ended: EndedTexts,
    resamplings: usize,
}

/// A token after a beginning.
#[derive(Debug, Clone, Copy)]
struct Continuation {
    particle: usize,
    token: TokenId,
    weight: f64,
}

/// The texts that have ended, of which one is drawn by weight as they come.
#[derive(Debug)]
struct EndedTexts {
    /// Logarithms of the sums of weights and of their squares.
    all: f64,
    squares: f64,
    drawn: Option<(Vec<TokenId>, Option<TokenId>)>,
}

impl Default for EndedTexts {
    fn default() -> Self {
        Self { all: f64::NEG_INFINITY, squares: f64::NEG_INFINITY, drawn: None }
    }
}

impl EndedTexts {
    fn add(&mut self, weight: f64, tokens: &[TokenId], end: Option<TokenId>, draw: &mut Draw) {
        if weight == f64::NEG_INFINITY {
            return;
        }
        self.all = log_add(self.all, weight);
        self.squares = log_add(self.squares, 2.0 * weight);
        if draw.uniform() < (weight - self.all).exp() {
            self.drawn = Some((tokens.to_vec(), end));
        }
    }
}

impl CorrectionJob {
    /// The draw of a text of the first constraint of `rules`, which one of its end tokens follows; if there are none, a
    /// text need only begin the output.
    ///
    /// # Errors
    /// An empty prompt, one that does not fit, or an id outside the vocabulary.
    pub fn new<E>(
        host: Host,
        prompt: &[TokenId],
        rules: Arc<SpanRules>,
        options: CorrectionOptions,
    ) -> Result<Self, ChooseError<E>> {
        check_prompt(host, prompt).map_err(|problem| ChooseError::Prompt { number: 0, problem })?;
        let limit = options.max_tokens.min(host.room - prompt.len());
        let listed = list_paths(&rules, EXACT_ROWS).filter(|trie| trie.max_depth() <= limit);
        let way = if let Some(trie) = listed {
            let of_set = ChooseOptions::new().with_end_tokens(rules.end_tokens());
            let scoring = Scoring::new(host, &[prompt], &trie.clone().into(), &of_set)?;
            Way::Exact(Box::new(scoring), trie)
        } else {
            let first = vec![Particle::new(Vec::new(), rules.start(), Outlook::START)];
            Way::Particles(Box::new(Beginnings {
                population: Population::new(Arc::clone(&rules), prompt, limit, first),
                outlook: Outlook::new(&rules),
                next: Vec::new(),
                ended: EndedTexts::default(),
                resamplings: 0,
            }))
        };
        let (draw, stats) = (Draw::new(options.seed), ChooseStats::default());
        Ok(Self { rules, options, way, draw, is_new: true, adjusted: Vec::new(), stats })
    }

    /// The draw, once the job is over; `n_threads` is the number of threads of the host.
    pub fn finish(mut self, n_threads: u32) -> CorrectedDraw {
        let (rows, stats) = (self.stats.rows, ChooseStats { n_threads, ..self.stats });
        let (ended, particles, resamplings) = match self.way {
            Way::Particles(beginnings) => (beginnings.ended, self.options.particles, beginnings.resamplings),
            Way::Exact(scoring, trie) => {
                let mut ended = EndedTexts::default();
                let choice = scoring.finish(n_threads).pop();
                let end = self.rules.end_tokens().first().copied();
                for (leaf, weight) in trie.leaves().zip(choice.map_or_else(Vec::new, |choice| choice.logprobs)) {
                    ended.add(weight, &leaf.tokens, end, &mut self.draw);
                }
                (ended, 0, 0)
            }
        };
        let effective_sample_size =
            if ended.all > f64::NEG_INFINITY { (2.0 * ended.all - ended.squares).exp() } else { 0.0 };
        let correction = Correction { particles, resamplings, effective_sample_size, log_normalizer: ended.all, rows };
        let is_whole = ended.drawn.is_some();
        let (tokens, end) = ended.drawn.unwrap_or_default();
        CorrectedDraw { tokens, end, is_whole, correction, stats }
    }
}

impl Beginnings {
    /// Makes the continuations the next beginnings: all of them, or as many as there may be; at least 1.
    fn advance(&mut self, rules: &SpanRules, most: usize, draw: &mut Draw) -> Result<(), ScoringError> {
        let Self { population, outlook, next, ended, resamplings } = self;
        let before = std::mem::take(&mut population.particles);
        for particle in before.iter().filter(|particle| particle.is_complete()) {
            ended.add(particle.weight, &particle.tokens, None, draw);
        }
        // Those that only one token could follow have it already.
        let moved = before.iter().enumerate().filter(|(_, particle)| !particle.is_over);
        let mut all: Vec<(usize, Option<TokenId>, f64)> =
            moved.map(|(number, particle)| (number, None, particle.weight)).collect();
        all.extend(std::mem::take(next).into_iter().map(|next| (next.particle, Some(next.token), next.weight)));
        let best = all.iter().map(|&(.., weight)| weight).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = all.iter().map(|&(.., weight)| (weight - best).exp()).collect();
        let open = best + weights.iter().sum::<f64>().ln();
        let share = (open - log_add(open, ended.all)).exp();
        if best == f64::NEG_INFINITY || share < LEAST_SHARE {
            return Ok(());
        }
        // The logarithm of what each is kept by, beside its weight.
        let mut views = vec![0.0; all.len()];
        if let Some(outlook) = outlook {
            outlook.update();
            for (view, &(number, token, _)) in views.iter_mut().zip(&all) {
                let state = before[number].note;
                let state = token.map_or(Some(state), |token| outlook.after(state, token));
                *view = TRUST * state.map_or(0.0, |state| outlook.value(state).max(LEAST_OUTLOOK));
            }
        }
        let most_seen = all.iter().zip(&views).map(|(&(.., weight), view)| weight + view);
        let most_seen = most_seen.fold(f64::NEG_INFINITY, f64::max);
        let seen = all.iter().zip(&views).map(|(&(.., weight), view)| (weight + view - most_seen).exp());
        let seen: Vec<f64> = seen.collect();
        // What is left matters less and less.
        let fewer = || ((most * most) as f64 * share).ceil().min(most as f64) as usize;
        let count = if all.len() <= most { most } else { fewer() };
        *resamplings += usize::from(all.len() > count);
        for (index, weight) in thin(&seen, count.max(1), draw) {
            let (number, token, exact) = all[index];
            let mut particle = before[number].clone();
            if let Some(token) = token {
                let at = &before[number].at;
                particle.at = rules.step(at, token).ok_or_else(|| dead_end(rules, at))?.state;
                particle.tokens.push(token);
                particle.note = outlook.as_ref().and_then(|outlook| outlook.after(particle.note, token)).unwrap_or(0);
            }
            // A kept one has the weight that it had, to the last bit.
            let is_kept = weight == seen[index];
            particle.weight = if is_kept { exact } else { most_seen + weight.ln() - views[index] };
            particle.is_over = particle.is_complete();
            if particle.is_over {
                ended.add(particle.weight, &particle.tokens, None, draw);
            } else {
                population.particles.push(particle);
            }
        }
        Ok(())
    }

    fn take(&mut self, node: Option<usize>, row: &[f32], most: usize, draw: &mut Draw) -> Result<(), ScoringError> {
        let Self { population, outlook, next, ended, .. } = self;
        if let Some(outlook) = outlook {
            outlook.add_row(row)?;
        }
        population.take(node, row, |number, particle, fan| {
            ended.add(particle.weight + fan.stops.ln(), &particle.tokens, fan.end, draw);
            let (tokens, weights) = fan.parts();
            if let [only] = tokens {
                particle.weight += fan.goes_on().ln();
                particle.note = outlook.as_ref().and_then(|outlook| outlook.after(particle.note, *only)).unwrap_or(0);
                return Some(*only);
            }
            // With an outlook there are not too many of them.
            let most = if outlook.is_some() { weights.len() } else { OF_EACH * most };
            for (index, weight) in thin(&weights, most, draw) {
                next.push(Continuation {
                    particle: number,
                    token: tokens[index],
                    weight: particle.weight + weight.ln(),
                });
            }
            None
        })
    }
}

impl Job for CorrectionJob {
    type Error = ScoringError;

    fn advance(&mut self) -> Result<bool, ScoringError> {
        let is_new = std::mem::take(&mut self.is_new);
        match &mut self.way {
            Way::Exact(scoring, _) => scoring.advance(),
            Way::Particles(beginnings) => {
                if !is_new {
                    beginnings.advance(&self.rules, self.options.particles, &mut self.draw)?;
                }
                Ok(beginnings.population.plan())
            }
        }
    }

    fn want(&self) -> WantedRows<'_> {
        match &self.way {
            Way::Exact(scoring, _) => scoring.want(),
            Way::Particles(beginnings) => beginnings.population.want(),
        }
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), ScoringError> {
        self.stats.rows += 1;
        let CorrectionOptions { temperature, bias, particles, .. } = &self.options;
        let mut row = Cow::Borrowed(row);
        if !bias.is_empty() || *temperature != 1.0 {
            self.adjusted.clear();
            self.adjusted.extend_from_slice(&row);
            bias.add_to(&mut self.adjusted);
            self.adjusted.iter_mut().for_each(|logit| *logit /= temperature);
            row = Cow::Borrowed(&self.adjusted);
        }
        match &mut self.way {
            Way::Exact(scoring, _) => scoring.take(node, &row),
            Way::Particles(beginnings) => beginnings.take(node, &row, *particles, &mut self.draw),
        }
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.stats.add_cost(decoded);
        if let Way::Exact(scoring, _) = &mut self.way {
            scoring.finish_batch(decoded);
        }
    }
}

/// At most `count` of these weights, each with its index and a weight, so that the expected weight of each stays the
/// same, and the sum does. The greatest keep theirs; of the others, the drawn ones have equal weights.
fn thin(weights: &[f64], count: usize, draw: &mut Draw) -> Vec<(usize, f64)> {
    let mut some: Vec<usize> = (0..weights.len()).filter(|&index| weights[index] > 0.0).collect();
    if some.len() <= count {
        return some.into_iter().map(|index| (index, weights[index])).collect();
    }
    let falling = |one: &usize, other: &usize| weights[*other].total_cmp(&weights[*one]).then(one.cmp(other));
    some.select_nth_unstable_by(count, falling);
    some[..count].sort_unstable_by(falling);
    // A weight is kept if it is more than an equal part of all that is not. From the least upwards, so that no small
    // sum is lost in a difference.
    let mut kept = count - 1;
    let mut rest: f64 = some[kept..].iter().map(|&index| weights[index]).sum();
    while let Some(&next) = kept.checked_sub(1).and_then(|next| some.get(next))
        && weights[next] * (count - kept + 1) as f64 <= rest + weights[next]
    {
        kept -= 1;
        rest += weights[next];
    }
    let drawn = &mut some[kept..];
    drawn.sort_unstable();
    let parts: Vec<f64> = drawn.iter().map(|&index| weights[index]).collect();
    let (left, uniform) = (count - kept, draw.uniform());
    let of_rest: Vec<(usize, f64)> =
        spread(&parts, left, || uniform).into_iter().map(|place| (drawn[place], rest / left as f64)).collect();
    some[..kept].iter().map(|&index| (index, weights[index])).chain(of_rest).collect()
}
