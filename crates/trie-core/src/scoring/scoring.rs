//! Choices as jobs that any host can run, one at a time or many together.

use super::choice::{Choice, ChooseOptions, ChooseStats};
use super::decoder::{DecodeCost, Host};
use super::error::{ChooseError, PromptProblem, ScoringError};
use super::job::{Job, WantedRows};
use super::search::Search;
use super::values::Values;
use super::whole::WholeScoring;
use crate::machine::constraint::AnyConstraint;
use crate::rows::logits::NoLogits;
use crate::set::ids::TokenId;
use crate::work::Instant;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

/// A prompt, and the values that may follow it.
#[derive(Debug, Clone, Copy)]
pub struct ScoringRequest<'a> {
    /// Tokens before the values.
    pub prompt: &'a [TokenId],
    /// Ranges of the prompt's tokens that do not see each other, such as the lines of a list whose order must not
    /// matter: each follows the tokens before the first range, at the same positions, and the tokens after the last
    /// range see all of them ([`WantedRows::branches`]). They neighbour each other, none is empty, and tokens follow
    /// the last. Only llama.cpp decodes them.
    pub branches: &'a [Range<usize>],
    /// Constraint that lists the values.
    pub constraint: &'a AnyConstraint,
}

/// The scoring of values after one or several prompts, as a [`Job`]: what [`choose`](super::choose) and
/// [`choose_many`](super::choose_many) do.
#[derive(Debug)]
pub struct Scoring {
    /// Every value after those prompts whose sets are small, until they are scored, and the numbers of these prompts:
    /// the prompts without branches together, after them each with branches. In reverse order.
    whole: Vec<(Box<WholeScoring>, Vec<usize>)>,
    /// Searches for the best values after the other prompts, in reverse order.
    searches: Vec<(usize, Search)>,
    started: Instant,
    stats: ChooseStats,
    is_read: bool,
    /// By the number of the prompt.
    found: Vec<(usize, Choice)>,
}

impl Scoring {
    /// A choice after each prompt, of one constraint.
    ///
    /// # Errors
    /// As [`choose_many`](super::choose_many), before any row was asked for.
    pub fn new<E>(
        host: Host,
        prompts: &[&[TokenId]],
        constraint: &AnyConstraint,
        options: &ChooseOptions<'_>,
    ) -> Result<Self, ChooseError<E>> {
        let values = Arc::new(Values::new(constraint, options, host.n_vocab)?);
        Self::of_values(host, prompts.iter().map(|&prompt| (prompt, Arc::clone(&values))).collect(), &[], options)
    }

    /// A choice after each prompt, each from its own constraint. The common prefix of all prompts is decoded once.
    ///
    /// # Errors
    /// As [`Scoring::new`].
    pub fn per_prompt<E>(
        host: Host,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
    ) -> Result<Self, ChooseError<E>> {
        let mut known: HashMap<*const AnyConstraint, Arc<Values>> = HashMap::new();
        let mut all: Vec<(&[TokenId], Arc<Values>)> = Vec::with_capacity(asked.len());
        for &ScoringRequest { prompt, constraint, .. } in asked {
            let values = match known.entry(std::ptr::from_ref(constraint)) {
                Entry::Occupied(known) => Arc::clone(known.get()),
                Entry::Vacant(place) => {
                    Arc::clone(place.insert(Arc::new(Values::new(constraint, options, host.n_vocab)?)))
                }
            };
            all.push((prompt, values));
        }
        let branches: Vec<&[Range<usize>]> = asked.iter().map(|asked| asked.branches).collect();
        Self::of_values(host, all, &branches, options)
    }

    pub(super) fn of_values<E>(
        host: Host,
        asked: Vec<(&[TokenId], Arc<Values>)>,
        branches: &[&[Range<usize>]],
        options: &ChooseOptions<'_>,
    ) -> Result<Self, ChooseError<E>> {
        let branches_of = |number: usize| branches.get(number).copied().unwrap_or_default();
        check_prompts(host, &asked, branches_of)?;
        let longest = asked.iter().map(|(prompt, _)| prompt.len()).max().unwrap_or(0);
        let numbered = asked.into_iter().enumerate();
        let (large, small): (Vec<_>, Vec<_>) =
            numbered.partition(|(_, (_, values))| searches(values, options, host.room.saturating_sub(longest)));
        if let Some((number, _)) = large.iter().find(|(number, _)| !branches_of(*number).is_empty()) {
            return Err(ChooseError::Prompt { number: *number, problem: PromptProblem::SearchedBranches });
        }
        let search = |(number, (prompt, values)): (usize, (&[TokenId], Arc<Values>))| {
            (number, Search::new(prompt, &values, options, host))
        };
        let searches = large.into_iter().rev().map(search).collect();
        let (forked, plain): (Vec<_>, Vec<_>) =
            small.into_iter().partition(|(number, _)| !branches_of(*number).is_empty());
        let forked = forked.into_iter().rev().map(|(number, (prompt, values))| {
            (Box::new(WholeScoring::branched(prompt, branches_of(number), &values)), vec![number])
        });
        let mut whole: Vec<_> = forked.collect();
        // What the host holds stays where there are none: it may be the beginning of the next ones.
        if !plain.is_empty() {
            let (numbers, plain): (Vec<_>, Vec<_>) = plain.into_iter().unzip();
            whole.push((Box::new(WholeScoring::new(&plain)), numbers));
        }
        let (started, stats) = (Instant::now(), ChooseStats::default());
        Ok(Self { whole, searches, started, stats, is_read: false, found: Vec::new() })
    }

    /// Number of rows that are read in all, if that is known before: only if no prompt is searched.
    pub fn rows(&self) -> Option<usize> {
        let known = self.searches.is_empty() && !self.whole.is_empty();
        known.then(|| self.whole.iter().map(|(whole, _)| whole.want().tree.rows()).sum())
    }

    /// The choices, once scoring is over, in the order of the prompts; `n_threads` is the number of threads of the
    /// host.
    pub fn finish(self, n_threads: u32) -> Vec<Choice> {
        let mut found = self.found;
        found.sort_by_key(|&(number, _)| number);
        let with_threads = |(_, mut choice): (usize, Choice)| {
            choice.stats.n_threads = n_threads;
            choice
        };
        found.into_iter().map(with_threads).collect()
    }

    /// Returns the cost since the last choice.
    fn take_stats(&mut self) -> ChooseStats {
        let seconds = std::mem::replace(&mut self.started, Instant::now()).elapsed().as_secs_f64();
        ChooseStats { seconds, ..std::mem::take(&mut self.stats) }
    }
}

impl Job for Scoring {
    type Error = ScoringError;

    fn advance(&mut self) -> Result<bool, ScoringError> {
        if std::mem::take(&mut self.is_read)
            && let Some((whole, numbers)) = self.whole.pop()
        {
            let stats = self.take_stats();
            self.found.extend(numbers.into_iter().zip(whole.into_choices(stats)));
        }
        if !self.whole.is_empty() {
            return Ok(true);
        }
        while let Some((_, search)) = self.searches.last_mut() {
            if search.advance() {
                return Ok(true);
            }
            if let Some((number, search)) = self.searches.pop() {
                let stats = self.take_stats();
                self.found.push((number, search.into_choice(stats)));
            }
        }
        Ok(false)
    }

    fn want(&self) -> WantedRows<'_> {
        match (self.whole.last(), self.searches.last()) {
            (Some((whole, _)), _) => whole.want(),
            (None, Some((_, search))) => search.want(),
            (None, None) => WantedRows::NOTHING,
        }
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), ScoringError> {
        let taken = match (self.whole.last_mut(), self.searches.last_mut()) {
            (Some((whole, _)), _) => whole.take(node, row),
            (None, Some((_, search))) => search.take(node, row),
            (None, None) => Ok(()),
        };
        taken.map_err(|error| match error {
            ScoringError::NoLogits(row) => {
                let WantedRows { prompt, branches, tree, .. } = self.want();
                let path = node.map_or_else(Vec::new, |node| tree.path(node));
                ScoringError::NoLogits(NoLogits { prefix: [prompt, &branches.concat(), &path].concat(), ..row })
            }
            ScoringError::DeadEnd(_) | ScoringError::Problem(_) => error,
        })
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.is_read = true;
        self.stats.add_cost(decoded);
    }
}

/// Returns whether to search for the best values instead of scoring all of them.
fn searches(values: &Values, options: &ChooseOptions<'_>, room: usize) -> bool {
    let trie = values.trie();
    let most = options.max_rows.unwrap_or(ChooseOptions::MAX_ROWS).min(ChooseOptions::MAX_ROWS);
    // Of many sequences of one value the longest need not fit: it is improbable.
    let too_long = !trie.is_tree() && trie.max_depth() > room;
    options.top.is_some() || options.beam.is_some() || too_long || values.positions().nth(most - 1).is_some()
}

/// Everything about the prompts that can be refused before anything is decoded.
fn check_prompts<'b, E>(
    host: Host,
    asked: &[(&[TokenId], Arc<Values>)],
    branches_of: impl Fn(usize) -> &'b [Range<usize>],
) -> Result<(), ChooseError<E>> {
    let Host { room, .. } = host;
    let mut last: Option<(*const Values, usize)> = None;
    for (number, (prompt, values)) in asked.iter().enumerate() {
        let this = Arc::as_ptr(values);
        // Of one set for all prompts it is found once.
        let needed = last.filter(|&(of, _)| of == this).map_or_else(|| values.tokens_needed(), |(_, needed)| needed);
        last = Some((this, needed));
        let problem = if !prompt.is_empty() && !are_branches(branches_of(number), prompt.len()) {
            PromptProblem::Branches { tokens: prompt.len() }
        } else if let Err(problem) = check_prompt(host, prompt) {
            problem
        } else if needed > room - prompt.len() {
            let longest = values.trie().leaves().max_by_key(|leaf| leaf.tokens.len());
            let (value, tokens) = longest.map(|leaf| (leaf.name, leaf.tokens.len())).unwrap_or_default();
            PromptProblem::ValueTooLong { value, tokens, prompt: prompt.len(), room }
        } else {
            continue;
        };
        return Err(ChooseError::Prompt { number, problem });
    }
    Ok(())
}

/// Checks what can be refused of a prompt alone.
pub(super) fn check_prompt(host: Host, prompt: &[TokenId]) -> Result<(), PromptProblem> {
    let Host { n_vocab, room, .. } = host;
    if prompt.is_empty() {
        return Err(PromptProblem::Empty);
    }
    if let Some(position) = prompt.iter().position(|token| token.index() >= n_vocab) {
        return Err(PromptProblem::OutsideVocabulary { position, token: prompt[position], n_vocab });
    }
    if prompt.len() > room {
        return Err(PromptProblem::TooLong { tokens: prompt.len(), room });
    }
    Ok(())
}

/// Returns whether these ranges of a prompt of so many tokens can be branches: neighbours, none empty, tokens before
/// and after them.
fn are_branches(ranges: &[Range<usize>], tokens: usize) -> bool {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return true };
    let are_neighbours = ranges.windows(2).all(|pair| pair[0].end == pair[1].start);
    first.start > 0 && last.end < tokens && are_neighbours && ranges.iter().all(|range| range.start < range.end)
}
