//! Choices as work that any host can do, one of them or an engine many.

use super::choice::{Choice, ChooseOptions, ChooseStats};
use super::decoder::{Decoded, Host};
use super::error::{ChooseError, PromptProblem, ScoringError};
use super::job::{Job, Want};
use super::search::Search;
use super::values::Values;
use super::whole::Whole;
use crate::machine::constraint::AnyConstraint;
use crate::rows::logits::NoLogits;
use crate::set::ids::TokenId;
use std::sync::Arc;
use std::time::Instant;

/// The scoring of a constraint's values after one or several prompts, as a [`Job`]: what [`choose`](super::choose) and
/// [`choose_many`](super::choose_many) do.
#[derive(Debug)]
pub struct Scoring {
    kind: Kind,
    started: Instant,
    stats: ChooseStats,
    is_read: bool,
    found: Vec<Choice>,
}

#[derive(Debug)]
enum Kind {
    /// Every value after every prompt.
    Whole(Option<Box<Whole>>),
    /// The best values after one prompt, and after those behind it, which are the next ones from the end.
    Searches(Vec<Search>),
}

impl Scoring {
    /// A choice after each prompt.
    ///
    /// # Errors
    /// As [`choose_many`](super::choose_many), before any row was asked for.
    pub fn new<E>(
        host: Host,
        prompts: &[&[TokenId]],
        constraint: &AnyConstraint,
        options: &ChooseOptions<'_>,
    ) -> Result<Self, ChooseError<E>> {
        Self::of_values(host, prompts, &Arc::new(Values::new(constraint, options, host.n_vocab)?), options)
    }

    pub(super) fn of_values<E>(
        host: Host,
        prompts: &[&[TokenId]],
        values: &Arc<Values>,
        options: &ChooseOptions<'_>,
    ) -> Result<Self, ChooseError<E>> {
        check_prompts(host, prompts, values)?;
        let longest = prompts.iter().map(|prompt| prompt.len()).max().unwrap_or(0);
        let kind = if searches(values, options, host.room.saturating_sub(longest)) {
            Kind::Searches(prompts.iter().rev().map(|prompt| Search::new(prompt, values, options, host)).collect())
        } else {
            // What the host holds stays where there are none: it may be the beginning of the next ones.
            Kind::Whole((!prompts.is_empty()).then(|| Box::new(Whole::new(prompts, values))))
        };
        let (started, stats) = (Instant::now(), ChooseStats::default());
        Ok(Self { kind, started, stats, is_read: false, found: Vec::new() })
    }

    /// The rows that it reads in all, where that is known before: where no value is searched for.
    pub fn rows(&self) -> Option<usize> {
        match &self.kind {
            Kind::Whole(whole) => whole.as_ref().map(|whole| whole.want().tree.rows()),
            Kind::Searches(_) => None,
        }
    }

    /// The choices, once it is over, in the order of the prompts; `n_threads` is what the host decodes with.
    pub fn finish(self, n_threads: u32) -> Vec<Choice> {
        let mut found = self.found;
        for choice in &mut found {
            choice.stats.n_threads = n_threads;
        }
        found
    }

    /// What was spent since the last choice.
    fn spent(&mut self) -> ChooseStats {
        let seconds = std::mem::replace(&mut self.started, Instant::now()).elapsed().as_secs_f64();
        ChooseStats { seconds, ..std::mem::take(&mut self.stats) }
    }
}

impl Job for Scoring {
    type Error = ScoringError;

    fn advance(&mut self) -> Result<bool, ScoringError> {
        match &mut self.kind {
            Kind::Whole(None) => Ok(false),
            Kind::Whole(Some(_)) if !self.is_read => Ok(true),
            Kind::Whole(whole) => {
                if let Some(whole) = whole.take() {
                    let stats = self.spent();
                    self.found = whole.into_choices(stats);
                }
                Ok(false)
            }
            Kind::Searches(_) => loop {
                let Kind::Searches(searches) = &mut self.kind else { return Ok(false) };
                let Some(search) = searches.last_mut() else { return Ok(false) };
                if search.advance() {
                    return Ok(true);
                }
                if let Some(search) = searches.pop() {
                    let stats = self.spent();
                    self.found.push(search.into_choice(stats));
                }
            },
        }
    }

    fn want(&self) -> Want<'_> {
        match &self.kind {
            Kind::Whole(Some(whole)) => whole.want(),
            Kind::Searches(searches) if !searches.is_empty() => searches[searches.len() - 1].want(),
            _ => Want::NOTHING,
        }
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), ScoringError> {
        let taken = match &mut self.kind {
            Kind::Whole(Some(whole)) => whole.take(node, row),
            Kind::Searches(searches) => searches.last_mut().map_or(Ok(()), |search| search.take(node, row)),
            Kind::Whole(None) => Ok(()),
        };
        taken.map_err(|error| match error {
            ScoringError::NoLogits(row) => {
                let Want { prompt, tree } = self.want();
                let path = node.map_or_else(Vec::new, |node| tree.path(node));
                ScoringError::NoLogits(NoLogits { prefix: [prompt, &path].concat(), ..row })
            }
            ScoringError::DeadEnd(_) => error,
        })
    }

    fn took(&mut self, decoded: Decoded) {
        self.is_read = true;
        self.stats.forward_passes += decoded.forward_passes;
        self.stats.tokens_decoded += decoded.tokens;
    }
}

/// Whether the best values are searched for, instead of scoring all.
fn searches(values: &Values, options: &ChooseOptions<'_>, room: usize) -> bool {
    let trie = values.trie();
    let most = options.max_rows.unwrap_or(ChooseOptions::MAX_ROWS).min(ChooseOptions::MAX_ROWS);
    // Of many sequences of one value the longest need not fit: it is improbable.
    let too_long = !trie.is_tree() && trie.max_depth() > room;
    options.top.is_some() || too_long || values.positions().nth(most - 1).is_some()
}

/// Everything about the prompts that can be refused before anything is decoded.
fn check_prompts<E>(host: Host, prompts: &[&[TokenId]], values: &Values) -> Result<(), ChooseError<E>> {
    let (Host { n_vocab, room, .. }, needed) = (host, values.needed());
    for (number, prompt) in prompts.iter().enumerate() {
        let outside = prompt.iter().position(|token| token.index() >= n_vocab);
        let problem = if prompt.is_empty() {
            PromptProblem::Empty
        } else if let Some(position) = outside {
            PromptProblem::OutsideVocabulary { position, token: prompt[position], n_vocab }
        } else if prompt.len() > room {
            PromptProblem::TooLong { tokens: prompt.len(), room }
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
