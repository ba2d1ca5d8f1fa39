//! The probability of a whole constraint: that the model writes any of its texts.
//!
//! Allowed beginnings are read best first. At each, the model says how probable it is that the text ends there, and how
//! probable each token is that continues. What has ended bounds the probability from below; what may still end bounds
//! it from above. Where that is not enough, draws estimate what the open beginnings hold: each goes on from one of
//! them, drawn by its probability, by tokens that are drawn among the allowed ones. The probability that the text ends
//! is added up along its way, times the shares that the allowed tokens had of all. The mean over draws is unbiased.

use super::choice::{ChooseOptions, ChooseStats};
use super::decoder::{DecodeCost, Host};
use super::error::{ChooseError, ScoringError};
use super::job::{Job, WantedRows};
use super::mass::RowMass;
use super::particles::{Fan, Particle, Population, dead_end, forced_run, spread};
use super::paths::list_paths;
use super::scoring::check_prompt;
use super::tree::PathTree;
use crate::machine::constraint::{AnyConstraint, AnyState, Constraint, Ending, Scratch};
use crate::machine::span::{SpanRules, SpanState, Status};
use crate::rows::draw::Draw;
use crate::rows::softmax::log_add;
use crate::set::ids::TokenId;
use crate::work::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Positions that are read together at first; the number grows.
const WIDTH: usize = 32;
/// Continuations of a position that are always followed one by one.
const FEW: usize = 256;
/// Least share of the whole of a continuation that is followed where there are more, as a part of the tolerance. The
/// rest is only drawn from. Shares add up to 1, so this bounds the number of open positions.
const PART_OF_TOLERANCE: f64 = 1e-3;
/// Least tolerance of which that is a part.
const LEAST_TOLERANCE: f64 = 1e-4;
/// Share of the mass that single precision does not tell from none.
const NOTHING: f64 = f32::EPSILON as f64;
/// Weight below which a draw goes on only now and then, and then with this weight. So no draw follows texts that never
/// end.
const LEAST_WEIGHT: f64 = 0.01;
/// Half the width of a 95 % interval in standard errors.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// Options of a [`ProbabilityJob`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbabilityOptions {
    /// Share of the upper bound by which the bounds may differ at the end, 0 to 1. A constraint whose texts are so few
    /// that `max_rows` suffice is read to the end.
    pub tolerance: f64,
    /// The most rows of logits that are read for the bounds; at least 1.
    pub max_rows: usize,
    /// Number of draws where the bounds are not close enough; 0 for none. Each reads a row for each of its tokens.
    pub samples: usize,
    /// The most tokens of a text.
    pub max_tokens: usize,
    /// Seed of the draws.
    pub seed: u32,
}

/// The probability that a text of a constraint is written.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Probability {
    /// The estimate for texts up to the limit, inside the bounds: their common value, the mean of draws, or the middle
    /// between them.
    pub estimate: f64,
    /// The natural logarithm of the estimate.
    pub logprob: f64,
    /// Standard error of the draws; 0 if there were none, and the bounds say all.
    pub standard_error: f64,
    /// Interval that holds the probability in 95 of 100 seeds, inside the bounds; the bounds, if there were no draws.
    pub interval: [f64; 2],
    /// The probability is at least this.
    pub lower: f64,
    /// The probability is at most this.
    pub upper: f64,
    /// Probability that was found of texts that are longer than `max_tokens` or the room: at most this part of it is
    /// missing in `lower` and in the estimate because of the length alone.
    pub cut: f64,
    /// True if the bounds are equal up to single precision.
    #[serde(rename = "exact")]
    pub is_exact: bool,
    /// Number of draws that were made.
    pub samples: usize,
    /// The given text, if there is one.
    pub text: Option<TextProbability>,
    /// Cost of the estimation.
    pub stats: ChooseStats,
}

/// The probability of one text of the constraint.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct TextProbability {
    /// The natural logarithm of the probability that the model writes it.
    pub logprob: f64,
    /// Bounds on the probability that the model writes it.
    pub bounds: [f64; 2],
    /// Its share of the estimated probability of the constraint.
    pub share: f64,
    /// Bounds on that share.
    pub share_bounds: [f64; 2],
}

/// A position that is read or was read.
#[derive(Debug)]
struct Node {
    before: u32,
    token: TokenId,
    at: SpanState<AnyState>,
    /// Position in the given text, if the tokens begin it.
    in_text: Option<AnyState>,
    logprob: f64,
    is_read: bool,
}

/// A token after a position, whose row was not read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Open {
    logprob: f64,
    node: u32,
    token: TokenId,
}

impl Eq for Open {}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |open: &Self| (open.node, open.token);
        self.logprob.total_cmp(&other.logprob).then_with(|| place(other).cmp(&place(self)))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The improbable tokens after a position, together.
#[derive(Debug)]
struct OpenShare {
    node: u32,
    logprob: f64,
    /// Draws among them: as many as there are samples.
    drawn: Vec<TokenId>,
}

/// The estimation of a constraint's probability after a prompt, as a [`Job`].
#[derive(Debug)]
pub struct ProbabilityJob {
    rules: Arc<SpanRules>,
    text: Option<AnyConstraint>,
    prompt: Vec<TokenId>,
    options: ProbabilityOptions,
    limit: usize,
    /// True if so few texts are allowed that all of them are read.
    is_finite: bool,
    rows_at_once: usize,
    width: usize,
    nodes: Vec<Node>,
    /// Positions that are read now.
    reading: Vec<u32>,
    open: BinaryHeap<Open>,
    open_in_text: BinaryHeap<Open>,
    rests: Vec<OpenShare>,
    /// Logarithms of what has ended, of what is longer than the limit, and of the given text.
    ended: f64,
    cut: f64,
    text_ended: f64,
    /// The logarithm of what the first row allows.
    reach: f64,
    paths: PathTree,
    /// The position of each node of the tree, after that of the root.
    node_of: Vec<Option<u32>>,
    draw: Draw,
    draws: Option<(f64, Population<f64>)>,
    is_new: bool,
    certain: Vec<f32>,
    spare: Vec<f32>,
    started: Instant,
    stats: ChooseStats,
}

impl ProbabilityJob {
    /// The probability of the texts of the first constraint of `rules`, each followed by one of its end tokens; without
    /// end tokens, a text need only begin the output. `text` is a set of one text, whose probability is found, too.
    ///
    /// # Errors
    /// An empty prompt, one that does not fit, or an id outside the vocabulary.
    pub fn new<E>(
        host: Host,
        prompt: &[TokenId],
        rules: Arc<SpanRules>,
        text: Option<AnyConstraint>,
        options: ProbabilityOptions,
    ) -> Result<Self, ChooseError<E>> {
        check_prompt(host, prompt).map_err(|problem| ChooseError::Prompt { number: 0, problem })?;
        let limit = options.max_tokens.min(host.room - prompt.len());
        let is_finite = list_paths(&rules, options.max_rows.min(ChooseOptions::MAX_ROWS)).is_some();
        let options = ProbabilityOptions { tolerance: if is_finite { 0.0 } else { options.tolerance }, ..options };
        let (at, in_text) = (rules.start(), text.as_ref().map(Constraint::start));
        let root = Node { before: 0, token: TokenId::default(), at, in_text, logprob: 0.0, is_read: false };
        let (paths, _) = PathTree::new(&[(forced_run(&rules, &root.at, limit), 0)]);
        let mut node_of = vec![None; paths.tree.nodes().len() + 1];
        node_of[0] = Some(0);
        Ok(Self {
            rules,
            text,
            prompt: prompt.to_vec(),
            options,
            limit,
            is_finite,
            rows_at_once: host.rows_at_once.max(WIDTH),
            width: WIDTH,
            nodes: vec![root],
            reading: vec![0],
            open: BinaryHeap::new(),
            open_in_text: BinaryHeap::new(),
            rests: Vec::new(),
            ended: f64::NEG_INFINITY,
            cut: f64::NEG_INFINITY,
            text_ended: f64::NEG_INFINITY,
            reach: f64::NEG_INFINITY,
            paths,
            node_of,
            draw: Draw::new(options.seed),
            draws: None,
            is_new: true,
            certain: Vec::new(),
            spare: Vec::new(),
            started: Instant::now(),
            stats: ChooseStats::default(),
        })
    }

    /// The result so far: also if the job was stopped. `n_threads` is the number of threads of the host.
    pub fn finish(self, n_threads: u32) -> Probability {
        let open = self.open();
        let upper = log_add(self.ended, log_add(open, self.cut)).min(0.0);
        let (lower, bounds) = (self.ended.min(0.0), |low: f64, high: f64| [low.exp(), high.exp()]);
        let [low, high] = bounds(lower, upper);
        let is_exact = high - low <= NOTHING * low;
        let drawn = self.draws.as_ref().and_then(|(mass, population)| mean_of_draws(*mass, &population.particles));
        let (estimate, standard_error) = match drawn {
            Some((mean, error)) => ((low + mean).clamp(low, high), error),
            None if is_exact => (low, 0.0),
            None => ((low + open.exp() / 2.0).clamp(low, high), 0.0),
        };
        let margin = NORMAL_95 * standard_error;
        let interval = match drawn {
            Some(_) => [(estimate - margin).max(low), (estimate + margin).min(high)],
            None => [low, high],
        };
        let logprob = estimate.ln();
        let text = self.text.is_some().then(|| {
            let high = log_add(self.text_ended, self.open_in_text()).min(0.0);
            let share = |text: f64, whole: f64| (text - whole).exp().min(1.0);
            let share_low = if self.text_ended == f64::NEG_INFINITY { 0.0 } else { share(self.text_ended, upper) };
            let share_high = match (high, lower) {
                (f64::NEG_INFINITY, _) => 0.0,
                // The same texts are in both.
                (_, f64::NEG_INFINITY) => 1.0,
                (high, lower) => share(high, lower),
            };
            let likely = if self.text_ended == f64::NEG_INFINITY { 0.0 } else { share(self.text_ended, logprob) };
            TextProbability {
                logprob: self.text_ended,
                bounds: bounds(self.text_ended, high),
                share: likely.clamp(share_low, share_high),
                share_bounds: [share_low, share_high],
            }
        });
        let seconds = self.started.elapsed().as_secs_f64();
        Probability {
            estimate,
            logprob,
            standard_error,
            interval,
            lower: low,
            upper: high,
            cut: self.cut.exp(),
            is_exact,
            samples: drawn.map_or(0, |_| self.options.samples),
            text,
            stats: ChooseStats { seconds, n_threads, ..self.stats },
        }
    }

    /// The logarithm of what may still end.
    fn open(&self) -> f64 {
        let open = self.open.iter().chain(&self.open_in_text).map(|open| open.logprob);
        sum(open.chain(self.rests.iter().map(|rest| rest.logprob)).chain(self.unread(|_| true)))
    }

    /// The logarithm of what may still become the given text.
    fn open_in_text(&self) -> f64 {
        sum(self.open_in_text.iter().map(|open| open.logprob).chain(self.unread(|node| node.in_text.is_some())))
    }

    fn unread(&self, of: impl Fn(&Node) -> bool) -> impl Iterator<Item = f64> {
        let nodes = self.reading.iter().map(|&node| &self.nodes[node as usize]);
        nodes.filter(move |node| !node.is_read && of(node)).map(|node| node.logprob)
    }

    fn tokens(&self, mut node: u32) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        while node > 0 {
            let Node { before, token, .. } = self.nodes[node as usize];
            tokens.push(token);
            node = before;
        }
        tokens.reverse();
        tokens
    }

    /// Adds the position after a token, which the machine allows.
    fn add(&mut self, Open { logprob, node, token }: Open) -> Result<u32, ScoringError> {
        let Node { at, in_text, .. } = &self.nodes[node as usize];
        let after = self.rules.step(at, token).ok_or_else(|| dead_end(&self.rules, at))?;
        let in_text = self.text_after(in_text.as_ref(), token);
        self.nodes.push(Node { before: node, token, at: after.state, in_text, logprob, is_read: false });
        let added = self.nodes.len() as u32 - 1;
        self.reading.push(added);
        Ok(added)
    }

    /// Returns the position in the given text after one more token, if that still begins the text.
    fn text_after(&self, in_text: Option<&AnyState>, token: TokenId) -> Option<AnyState> {
        let (text, at) = self.text.as_ref().zip(in_text)?;
        Some(text.step(at, token)?.state)
    }

    /// Plans which positions are read next; returns `false` if the bounds are close enough or the rows are spent.
    fn plan(&mut self) -> Result<bool, ScoringError> {
        self.reading.clear();
        let left = self.options.max_rows.saturating_sub(self.stats.rows);
        let open = self.open();
        let is_close = open <= log_add(self.ended, log_add(open, self.cut)) + self.options.tolerance.max(NOTHING).ln();
        // The given text is looked for first, with at most half of the rows.
        let looks = self.open_in_text() > self.text_ended + NOTHING.ln() && left > self.options.max_rows / 2;
        if left == 0 || (is_close && !looks) {
            return Ok(false);
        }
        let mut paths = Vec::new();
        while paths.len() < self.width.min(left) {
            let (one, other) = (self.open.peek(), self.open_in_text.peek());
            let heap = if looks || other > one { &mut self.open_in_text } else { &mut self.open };
            let Some(next) = heap.pop() else { break };
            let node = self.add(next)?;
            let tokens = self.tokens(node);
            let run = forced_run(&self.rules, &self.nodes[node as usize].at, self.limit - tokens.len());
            paths.push(([&tokens[..], &run].concat(), tokens.len()));
        }
        self.width = (self.width + self.width / 8).min(self.rows_at_once);
        let places;
        (self.paths, places) = PathTree::new(&paths);
        self.node_of = vec![None; self.paths.tree.nodes().len() + 1];
        for (place, &node) in places.into_iter().zip(&self.reading) {
            self.node_of[place.map_or(0, |node| node + 1)] = Some(node);
        }
        Ok(!paths.is_empty())
    }

    /// Begins the draws, if they are wanted and anything is open.
    fn begin_draws(&mut self) -> Result<(), ScoringError> {
        let (samples, open) = (self.options.samples, self.open());
        let mass = log_add(self.ended, log_add(open, self.cut));
        if samples == 0 || open <= mass + self.options.tolerance.max(NOTHING).ln() {
            return Ok(());
        }
        let mut entries: Vec<Open> = self.open.iter().chain(&self.open_in_text).copied().collect();
        entries.sort_unstable_by(|one, other| other.cmp(one));
        let logprobs = entries.iter().map(|entry| entry.logprob).chain(self.rests.iter().map(|rest| rest.logprob));
        let weights: Vec<f64> = logprobs.map(|logprob| (logprob - open).exp()).collect();
        let mut particles = Vec::with_capacity(samples);
        for part in spread(&weights, samples, || self.draw.uniform()) {
            let (node, token) = if let Some(entry) = entries.get(part) {
                (entry.node, entry.token)
            } else {
                let rest = &mut self.rests[part - entries.len()];
                (rest.node, rest.drawn.pop().unwrap_or_default())
            };
            let at = &self.nodes[node as usize].at;
            let after = self.rules.step(at, token).ok_or_else(|| dead_end(&self.rules, at))?;
            let mut particle = Particle::new([&self.tokens(node)[..], &[token]].concat(), after.state, 0.0);
            particle.is_over = particle.is_complete();
            particles.push(particle);
        }
        let population = Population::new(Arc::clone(&self.rules), &self.prompt, self.limit, particles);
        self.draws = Some((open, population));
        Ok(())
    }

    /// Reads the row after a position.
    fn expand(&mut self, tree_node: Option<usize>, number: u32, row: &[f32]) -> Result<(), ScoringError> {
        let (rules, text) = (Arc::clone(&self.rules), self.text.clone());
        let node = &mut self.nodes[number as usize];
        node.is_read = true;
        let (at, in_text, logprob) = (node.at.clone(), node.in_text.clone(), node.logprob);
        let mut certain = std::mem::take(&mut self.certain);
        let mass = RowMass::read_after(logprob, row, &mut certain)?;
        let mut scratch = Scratch::default();
        let ways = mass.ways(&rules, &at, &mut scratch, &mut self.spare).ok_or_else(|| dead_end(&rules, &at))?;
        if let Some(stops) = ways.stops {
            self.end(logprob + stops, in_text.as_ref());
        }
        let goes_on = ways.tokens(mass.n_vocab()).map(|token| (token, logprob + mass.logprob(token)));
        let goes_on: Vec<(TokenId, f64)> = goes_on.filter(|&(_, logprob)| logprob > f64::NEG_INFINITY).collect();
        let all = sum(goes_on.iter().map(|&(_, logprob)| logprob));
        if number == 0 {
            self.reach = log_add(self.ended, all);
        }
        if at.depth() >= self.limit {
            self.cut = log_add(self.cut, all);
            self.certain = certain;
            return Ok(());
        }
        let mut text_scratch = Scratch::default();
        let text_tokens = text.as_ref().zip(in_text.as_ref()).map(|(text, at)| text.next(at, &mut text_scratch).tokens);
        let least = self.reach + (PART_OF_TOLERANCE * self.options.tolerance.max(LEAST_TOLERANCE)).ln();
        let least = if self.is_finite || goes_on.len() <= FEW { f64::NEG_INFINITY } else { least };
        // Without end tokens a value may be over at once.
        let may_complete = rules.end_tokens().is_empty();
        let mut rest = Vec::new();
        for (token, logprob) in goes_on {
            let continues_text = text_tokens.is_some_and(|tokens| tokens.contains(token));
            let open = Open { logprob, node: number, token };
            if let Some(below) = self.paths.node_after(tree_node, token) {
                self.node_of[below + 1] = Some(self.add(open)?);
                continue;
            }
            if logprob < least && !continues_text {
                rest.push((token, logprob));
                continue;
            }
            if may_complete {
                let after = rules.step(&at, token).ok_or_else(|| dead_end(&rules, &at))?;
                if after.state.status() == Status::Complete {
                    let in_text = self.text_after(in_text.as_ref(), token);
                    self.end(logprob, in_text.as_ref());
                    continue;
                }
            }
            if continues_text { self.open_in_text.push(open) } else { self.open.push(open) }
        }
        if !rest.is_empty() {
            let logprob = sum(rest.iter().map(|&(_, logprob)| logprob));
            let fan = Fan::new(rest.into_iter());
            let drawn = (0..self.options.samples).filter_map(|_| fan.token_at(self.draw.uniform())).collect();
            self.rests.push(OpenShare { node: number, logprob, drawn });
        }
        self.certain = certain;
        Ok(())
    }

    /// Adds what ends at a position.
    fn end(&mut self, logprob: f64, in_text: Option<&AnyState>) {
        self.ended = log_add(self.ended, logprob);
        if let (Some(text), Some(at)) = (&self.text, in_text)
            && matches!(text.ending(at), Ending::May | Ending::Must)
        {
            self.text_ended = log_add(self.text_ended, logprob);
        }
    }
}

impl Job for ProbabilityJob {
    type Error = ScoringError;

    fn advance(&mut self) -> Result<bool, ScoringError> {
        if std::mem::take(&mut self.is_new) {
            return Ok(true);
        }
        if self.draws.is_none() {
            if self.plan()? {
                return Ok(true);
            }
            self.begin_draws()?;
        }
        Ok(self.draws.as_mut().is_some_and(|(_, population)| population.plan()))
    }

    fn want(&self) -> WantedRows<'_> {
        match &self.draws {
            Some((_, population)) => population.want(),
            None => WantedRows { prompt: &self.prompt, branches: &[], tree: &self.paths.tree, is_draft: false },
        }
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), ScoringError> {
        self.stats.rows += 1;
        let Some((_, population)) = &mut self.draws else {
            return match self.node_of[node.map_or(0, |node| node + 1)] {
                Some(number) => self.expand(node, number, row),
                None => Ok(()),
            };
        };
        population.take(node, row, |_, particle, fan| {
            particle.note += particle.weight.exp() * fan.stops;
            particle.weight += fan.goes_on().ln();
            if particle.weight < LEAST_WEIGHT.ln() {
                if self.draw.uniform() >= particle.weight.exp() / LEAST_WEIGHT {
                    particle.weight = f64::NEG_INFINITY;
                    return None;
                }
                particle.weight = LEAST_WEIGHT.ln();
            }
            fan.token_at(self.draw.uniform())
        })
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.stats.add_cost(decoded);
    }
}

/// Mean and standard error of what draws found, of which open beginnings hold so much; `None` while any goes on.
fn mean_of_draws(mass: f64, particles: &[Particle<f64>]) -> Option<(f64, f64)> {
    if particles.iter().any(|particle| !particle.is_over) {
        return None;
    }
    let found =
        |particle: &Particle<f64>| particle.note + if particle.is_complete() { particle.weight.exp() } else { 0.0 };
    let count = particles.len() as f64;
    let mean = particles.iter().map(found).sum::<f64>() / count;
    let squares: f64 = particles.iter().map(|particle| (found(particle) - mean).powi(2)).sum();
    let error = if count > 1.0 { (squares / (count - 1.0) / count).sqrt() } else { mean };
    Some((mass.exp() * mean, mass.exp() * error))
}

fn sum(logprobs: impl Iterator<Item = f64>) -> f64 {
    // Summed apart from the logarithm: one `exp` each.
    let all: Vec<f64> = logprobs.collect();
    let best = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best == f64::NEG_INFINITY { best } else { best + all.iter().map(|one| (one - best).exp()).sum::<f64>().ln() }
}
