//! Beam search over the values of a set: it finds the best of them and never produces anything else.

use super::continuations::{Continuations, Ends, ScoreMode};
use super::rows::Rows;
use super::{Batch, BatchError, Worker};
use crate::machine::constraint::{AnyConstraint, Constraint, Scratch, Tokens};
use crate::machine::span::{Allowed, SpanError, SpanRules};
use crate::rows::chooser::SamplerOptions;
use crate::rows::element::Logit;
use crate::rows::logits::{NoLogits, nothing_in};
use crate::set::ids::TokenId;
use crate::set::trie::Leaf;
use rand_mt::Mt;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

/// Ranking and width of a beam search.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BeamOptions {
    /// Hypotheses kept after each step, finished ones included; at least 1.
    pub width: usize,
    /// Score that a token adds.
    pub mode: ScoreMode,
    /// Ranks by `score / length^penalty`; 0 ranks by the score. Finite.
    pub length_penalty: f64,
    /// Draws hypotheses without replacement, with this seed, instead of keeping the best. The chance of each is
    /// proportional to the product of its tokens' probabilities among the allowed tokens.
    pub seed: Option<u32>,
}

impl BeamOptions {
    /// Options for a beam of this width.
    pub fn new(width: usize) -> Self {
        Self { width, mode: ScoreMode::default(), length_penalty: 0.0, seed: None }
    }

    /// The same options with this scoring mode.
    #[must_use]
    pub fn mode(self, mode: ScoreMode) -> Self {
        Self { mode, ..self }
    }

    /// The same options with this length penalty.
    #[must_use]
    pub fn length_penalty(self, length_penalty: f64) -> Self {
        Self { length_penalty, ..self }
    }

    /// Ranks by keys drawn without replacement.
    #[must_use]
    pub fn without_replacement(self, seed: u32) -> Self {
        Self { seed: Some(seed), ..self }
    }
}

/// A value that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// The value; of constraints that follow each other the last.
    pub leaf: Leaf,
    /// The tokens that were walked, without those that only end the value.
    pub tokens: Vec<TokenId>,
    /// Its score: the log of its probability, where tokens add the log of theirs.
    pub logprob: f64,
}

/// A beam search that asks for rows of logits, one step after the other.
///
/// After each step the beam holds the `width` best hypotheses, finished or not. Ties go to finished hypotheses, then
/// to the better parent, then to the lower token. A value counts as a whole: several end tokens are one way to end,
/// and their probabilities add up. Where a value may end or continue and no end token decides, its end gets the
/// probability that its children leave. If the width is at least the number of values, the search finds every value
/// that the rows of logits do not call impossible.
///
/// ```
/// use trie_core::{BeamOptions, BeamSearch, Rows, ScoreMode, SpanRules, TokenId, Trie};
/// # use std::sync::Arc;
/// let id = |n| TokenId::new(n).unwrap();
/// let mut items = Trie::builder();
/// for (name, tokens) in [("a", [1, 2]), ("b", [1, 3]), ("c", [4, 2])] {
///     items.push(Some(name), &tokens.map(id));
/// }
/// let rules = Arc::new(SpanRules::for_constraint(items.build()?, 6)?);
/// let mut search = BeamSearch::new(rules, BeamOptions::new(2).mode(ScoreMode::Renormalised))?;
/// while !search.prefixes().is_empty() {
///     // A model that likes high tokens, whatever came before.
///     let logits = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].repeat(search.prefixes().len());
///     search.advance(Rows::new(&logits, search.prefixes().len(), 6, 6)?)?;
/// }
/// let found = search.into_hypotheses();
/// assert_eq!(found.iter().map(|found| found.leaf.name.as_deref()).collect::<Vec<_>>(), [Some("c"), Some("b")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BeamSearch {
    batch: Batch,
    options: BeamOptions,
    live: Vec<Beam>,
    prefixes: Vec<Vec<TokenId>>,
    /// For each live row, the row of the previous step that it continues.
    parents: Vec<usize>,
    finished: Vec<(Beam, Vec<TokenId>, Leaf)>,
    rng: Option<Mt>,
    /// True if several sequences may stand for one value. The best of them then represents it.
    repeats: bool,
}

/// State of a hypothesis beside its tokens.
#[derive(Debug, Clone, Copy)]
struct Beam {
    /// Reported score of the hypothesis.
    score: f64,
    /// The log of the product of shares, equal to the score if scores are shares. Draws use it.
    share: f64,
    /// Sort key of the beam: the score, normalised by length, or a drawn key.
    rank: f64,
}

/// Continuation of a row: by a token, or to its end.
#[derive(Debug, Clone, Copy)]
struct Way {
    parent: usize,
    token: Option<TokenId>,
    beam: Beam,
}

impl BeamSearch {
    /// At the start of the set, with one live row.
    ///
    /// # Errors
    /// A width of 0, or a penalty that is not a number.
    pub fn new(rules: Arc<SpanRules>, options: BeamOptions) -> Result<Self, BatchError> {
        if options.width == 0 {
            return Err(BatchError::NoWidth);
        }
        if !options.length_penalty.is_finite() {
            return Err(BatchError::LengthPenalty { penalty: options.length_penalty });
        }
        let graph = |constraint: &AnyConstraint| constraint.sets().iter().any(|set| !set.is_tree());
        let mut search = Self {
            repeats: rules.constraints().iter().any(|(_, constraint)| graph(constraint)),
            batch: Batch::new(rules, 1, SamplerOptions::default())?,
            rng: options.seed.map(Mt::new),
            options,
            live: vec![Beam { score: 0.0, share: 0.0, rank: 0.0 }],
            prefixes: vec![Vec::new()],
            parents: vec![0],
            finished: Vec::new(),
        };
        search.skip_forced()?;
        Ok(search)
    }

    /// The tokens of each live row: the search wants one row of logits after each. Empty once the search is over.
    pub fn prefixes(&self) -> &[Vec<TokenId>] {
        &self.prefixes
    }

    /// For each live row, the row of the previous step that it continues: for hosts that keep a KV cache for each row.
    pub fn parents(&self) -> &[usize] {
        &self.parents
    }

    /// Returns the hypotheses, best first, or in the order in which they were drawn; complete once no row is live.
    pub fn into_hypotheses(mut self) -> Vec<Hypothesis> {
        self.finished.sort_by(|(one, ..), (other, ..)| by_rank(*one, *other));
        if self.repeats {
            let mut seen = HashSet::new();
            self.finished.retain(|(.., leaf)| seen.insert(leaf.index));
        }
        let hypothesis = |(beam, tokens, leaf): (Beam, _, _)| Hypothesis { leaf, tokens, logprob: beam.score };
        self.finished.into_iter().map(hypothesis).collect()
    }

    /// Makes one step: row `i` of `logits` holds the logits after `prefixes()[i]`.
    ///
    /// # Errors
    /// As [`Batch::top_children`], a row in which every token is allowed, or one in which no token can be chosen.
    pub fn advance<L: Logit>(&mut self, logits: Rows<'_, L>) -> Result<(), BatchError> {
        self.refuse_endless()?;
        self.batch.check_logits(logits.count(), logits.width())?;
        let n_vocab = self.batch.n_vocab;
        for row in 0..logits.count() {
            if let Some(found) = nothing_in(&logits.row(row)[..n_vocab]) {
                let prefix = self.prefixes[row].clone();
                return Err(BatchError::NoLogits { row, source: NoLogits { prefix, found, n_vocab } });
            }
        }
        let ways = match self.rng.take() {
            None => self.best_ways(logits)?,
            Some(mut rng) => {
                let ways = self.drawn_ways(logits, &mut rng);
                self.rng = Some(rng);
                ways?
            }
        };
        self.follow(ways)?;
        self.skip_forced()
    }

    fn refuse_endless(&mut self) -> Result<(), BatchError> {
        let scratch = &mut self.batch.spare.workers(1)[0].scratch;
        let all = |row: &super::Row| {
            let rules = &self.batch.rules[row.rules as usize];
            // All but a few tokens are no list either: a gate thinks.
            matches!(
                rules.allowed(row.walked.state(), scratch),
                Allowed::All | Allowed::Only { tokens: Tokens::Except(_), .. }
            )
        };
        match self.batch.rows.iter().position(all) {
            Some(row) => Err(BatchError::Endless { row }),
            None => Ok(()),
        }
    }

    fn best_ways<L: Logit>(&mut self, logits: Rows<'_, L>) -> Result<Vec<Way>, BatchError> {
        let scores: Vec<f64> = self.live.iter().map(|beam| beam.score).collect();
        let (mode, rows) = (self.options.mode, self.live.len());
        let expanded = self.batch.expand(logits, self.options.width, Some(&scores), mode, &[rows], Ends::Apart)?;
        let way = |parent: usize, token: Option<TokenId>, score: f64| {
            let length = self.prefixes[parent].len() + usize::from(token.is_some());
            Way { parent, token, beam: Beam { score, share: 0.0, rank: rank(score, length, &self.options) } }
        };
        let stops = expanded.stops.iter().map(|&(parent, score)| way(parent, None, score));
        let children = expanded.children.iter().map(|child| way(child.parent, Some(child.token), child.score));
        Ok(stops.chain(children).collect())
    }

    /// All continuations of all rows, each with a random key: the `width` highest keys are draws without replacement.
    ///
    /// The key of a row is the greatest key of its continuations, so each continuation gets a key that is not higher:
    /// see Kool, van Hoof and Welling, "Stochastic Beams and Where to Find Them", 2019.
    fn drawn_ways<L: Logit>(&mut self, logits: Rows<'_, L>, rng: &mut Mt) -> Result<Vec<Way>, BatchError> {
        self.batch.check_logits(logits.count(), logits.width())?;
        self.batch.survey()?;
        let Batch { rules, rows, n_vocab, spare, .. } = &mut self.batch;
        let Worker { scratch, ids, logits: values, wide } = &mut spare.workers(1)[0];
        let mut ways = Vec::new();
        for (parent, (row, before)) in rows.iter().zip(&self.live).enumerate() {
            let allowed = rules[row.rules as usize].allowed(row.walked.state(), scratch);
            let logits = &logits.row(parent)[..*n_vocab];
            let scored = Continuations::from_row(allowed, logits, self.options.mode, Ends::Apart, ids, values, wide);
            let Some(scored) = scored else { continue };
            let mut adds: Vec<f64> = (0..scored.values.len()).map(|nth| scored.adds(nth)).collect();
            adds.extend(scored.stop);
            let stops = scored.stop.is_some();
            let Some(shares) =
                Continuations::from_row(allowed, logits, ScoreMode::Renormalised, Ends::Apart, ids, values, wide)
            else {
                continue;
            };
            let mut share: Vec<f64> = (0..shares.values.len()).map(|nth| shares.adds(nth)).collect();
            share.extend(shares.stop);
            let first = ways.len();
            let tokens = shares.tokens.iter().copied().map(Some).chain(stops.then_some(None));
            for (token, (adds, share)) in tokens.zip(adds.into_iter().zip(share)) {
                let share = before.share + share;
                let score = before.score + adds;
                if share > f64::NEG_INFINITY && score > f64::NEG_INFINITY {
                    ways.push(Way { parent, token, beam: Beam { score, share, rank: share + gumbel(rng) } });
                }
            }
            let greatest = ways[first..].iter().map(|way| way.beam.rank).fold(f64::NEG_INFINITY, f64::max);
            for way in &mut ways[first..] {
                way.beam.rank = condition_gumbel(way.beam.rank, greatest, before.rank);
            }
        }
        Ok(ways)
    }

    /// Keeps the best of the continuations and the finished hypotheses.
    fn follow(&mut self, mut ways: Vec<Way>) -> Result<(), BatchError> {
        // What is finished comes first among equals, then parents and tokens in order: sorts are stable.
        ways.sort_by(|one, other| {
            by_rank(one.beam, other.beam).then((one.parent, one.token).cmp(&(other.parent, other.token)))
        });
        self.finished.sort_by(|(one, ..), (other, ..)| by_rank(*one, *other));
        let mut room = self.options.width;
        let (mut kept, mut ways) = (0, ways.into_iter().peekable());
        let mut going = Vec::new();
        while room > 0 {
            match (self.finished.get(kept), ways.peek()) {
                (Some((beam, ..)), Some(way)) if by_rank(way.beam, *beam) == Ordering::Less => {
                    going.extend(ways.next());
                }
                (Some(_), _) => kept += 1,
                (None, Some(_)) => going.extend(ways.next()),
                (None, None) => break,
            }
            room -= 1;
        }
        self.finished.truncate(kept);
        self.take(&going)
    }

    fn take(&mut self, going: &[Way]) -> Result<(), BatchError> {
        for way in going.iter().filter(|way| way.token.is_none()) {
            self.finish(way.parent, way.beam)?;
        }
        let on: Vec<(&Way, TokenId)> = going.iter().filter_map(|way| Some((way, way.token?))).collect();
        let parents: Vec<usize> = on.iter().map(|(way, _)| way.parent).collect();
        let tokens: Vec<TokenId> = on.iter().map(|&(_, token)| token).collect();
        self.batch.reorder(&parents)?;
        self.batch.accept(&tokens)?;
        self.prefixes = on
            .iter()
            .map(|&(way, token)| {
                let before = &self.prefixes[way.parent];
                let mut prefix = Vec::with_capacity(before.len() + 1);
                prefix.extend_from_slice(before);
                prefix.push(token);
                prefix
            })
            .collect();
        self.live = on.iter().map(|(way, _)| way.beam).collect();
        self.parents = parents;
        self.retire()
    }

    /// Removes the rows that are complete, because their values cannot continue and no end token has to follow.
    fn retire(&mut self) -> Result<(), BatchError> {
        let complete: Vec<bool> = self.batch.finished_rows().collect();
        if !complete.contains(&true) {
            return Ok(());
        }
        for row in (0..complete.len()).filter(|&row| complete[row]) {
            self.finish(row, self.live[row])?;
        }
        let going: Vec<usize> = (0..complete.len()).filter(|&row| !complete[row]).collect();
        self.batch.reorder(&going)?;
        self.parents = going.iter().map(|&row| self.parents[row]).collect();
        self.live = going.iter().map(|&row| self.live[row]).collect();
        self.prefixes = going.iter().map(|&row| std::mem::take(&mut self.prefixes[row])).collect();
        Ok(())
    }

    fn finish(&mut self, row: usize, beam: Beam) -> Result<(), BatchError> {
        let of = self.batch.row(row)?;
        let (rules, state) = (self.batch.rules_of(of), of.walked.state());
        let constraint = rules.constraint(state);
        let Some(leaf) = of.walked.value(constraint) else {
            let path = rules.constraints()[state.constraint_number()].0.clone();
            return Err(BatchError::Refused { row, source: SpanError::Damaged { path, depth: state.depth() } });
        };
        self.finished.push((beam, self.prefixes[row].clone(), leaf));
        Ok(())
    }

    /// Skips forced tokens. While every live row has exactly one continuation, a row of logits would change nothing,
    /// unless scores need it.
    fn skip_forced(&mut self) -> Result<(), BatchError> {
        while self.options.mode == ScoreMode::Renormalised && !self.live.is_empty() {
            let mut scratch = Scratch::default();
            let forced = |row: &super::Row| {
                let (rules, state) = (self.batch.rules_of(row), row.walked.state());
                match rules.allowed(state, &mut scratch) {
                    Allowed::Only { tokens, ends: [] } => tokens.single_token(),
                    _ => None,
                }
            };
            let tokens: Option<Vec<TokenId>> = self.batch.rows.iter().map(forced).collect();
            let Some(tokens) = tokens else { return Ok(()) };
            self.batch.accept(&tokens)?;
            let penalty = &self.options;
            for ((beam, prefix), token) in self.live.iter_mut().zip(&mut self.prefixes).zip(tokens) {
                prefix.push(token);
                if penalty.seed.is_none() {
                    beam.rank = rank(beam.score, prefix.len(), penalty);
                }
            }
            self.retire()?;
        }
        Ok(())
    }
}

fn rank(score: f64, length: usize, options: &BeamOptions) -> f64 {
    if options.length_penalty == 0.0 { score } else { score / (length.max(1) as f64).powf(options.length_penalty) }
}

fn by_rank(one: Beam, other: Beam) -> Ordering {
    other.rank.partial_cmp(&one.rank).unwrap_or(Ordering::Equal)
}

/// A number drawn from the standard Gumbel distribution.
fn gumbel(rng: &mut Mt) -> f64 {
    // Between 0 and 1, neither of them.
    let uniform = (f64::from(rng.next_u32()) + 0.5) / 4_294_967_296.0;
    -(-uniform.ln()).ln()
}

/// A Gumbel number conditioned on `bound` being the greatest of several numbers, whose greatest was `greatest`.
fn condition_gumbel(number: f64, greatest: f64, bound: f64) -> f64 {
    let v = bound - number + (-(number - greatest).exp()).ln_1p();
    bound - v.max(0.0) - (-v.abs()).exp().ln_1p()
}
