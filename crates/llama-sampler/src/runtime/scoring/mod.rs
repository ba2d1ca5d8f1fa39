//! The exact probability of every value of a set after a prompt: a context as the host that decodes trees of tokens.

mod kept;
mod waves;

pub(super) use kept::{KeptBranches, Placement};
pub use waves::{Bounds, PlannedWave, place_branches, plan, plan_draft};

use super::context::Context;
use super::error::RuntimeError;
use super::task::Task;
use super::watch::Watch;
use std::sync::Arc;
use trie_core::{
    AnyConstraint, Choice, ChooseError, ChooseOptions, Constraint, DecodeCost, Host, Job, PromptProblem, Scoring,
    ScoringError, ScoringRequest, Special, TokenId, WantedRows,
};
use trie_text::{Vocab, VocabError};

/// Scorers, which compute the exact probabilities of values after prompts: a context, or an engine.
pub trait Scorer {
    /// Returns the vocabulary of the model.
    fn vocab(&self) -> &Arc<Vocab>;

    /// Returns the limits of a job.
    fn host(&self) -> Host;

    /// Runs a job to its end, or until `watch` stops it. Returns the job, the number of threads of the last forward
    /// pass, and whether it was stopped.
    ///
    /// # Errors
    /// Its own, or a failed forward pass.
    fn complete<J: Job<Error = ScoringError> + Send + 'static>(
        &mut self,
        job: J,
        watch: &mut dyn Watch,
    ) -> Result<CompletedJob<J>, RuntimeError>;

    /// The values of a constraint after each of these prompts, which lack the tokens that a set spells again.
    ///
    /// # Errors
    /// As [`Scorer::choose_many`].
    fn score(
        &mut self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError>;

    /// Returns whether [`Scorer::score_apart`] gives the same bits whatever was decoded before or is decoded beside it.
    fn is_apart(&self) -> bool {
        false
    }

    /// The same as [`Scorer::score`]. If [`Scorer::is_apart`], one prompt comes after the other, so that none affects
    /// another's choice.
    ///
    /// # Errors
    /// As [`Scorer::choose_many`].
    fn score_apart(
        &mut self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        self.score(asked, options, watch)
    }

    /// The probabilities of the values of a constraint after `prompt`: see [`trie_core::choose`]. If the set begins
    /// inside the prompt ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)), it spells the end of the prompt again.
    ///
    /// # Errors
    /// As [`trie_core::choose`]; a set for another vocabulary, a prompt in which the set does not begin, a failed
    /// forward pass, or a stop by `watch`. The scorer can be used afterwards.
    fn choose(
        &mut self,
        prompt: &[TokenId],
        constraint: impl Into<AnyConstraint>,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Choice, RuntimeError> {
        let (vocab, constraint) = (Arc::clone(self.vocab()), constraint.into());
        let healed = heal_prompt(&vocab, prompt, &constraint)?;
        let chosen = self
            .score(&[ScoringRequest { prompt: healed, branches: &[], constraint: &constraint }], options, watch)
            .map_err(RuntimeError::of_the_only_prompt)?;
        chosen.into_iter().next().ok_or(RuntimeError::EmptyPrompt)
    }

    /// The same as [`Scorer::choose`] for several prompts, in order. The beginning that all prompts share is decoded
    /// once, the rest in common forward passes.
    ///
    /// # Errors
    /// As [`Scorer::choose`]; then no prompt gets a choice.
    fn choose_many(
        &mut self,
        prompts: &[&[TokenId]],
        constraint: impl Into<AnyConstraint>,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let (vocab, constraint) = (Arc::clone(self.vocab()), constraint.into());
        let healed = prompts.iter().enumerate().map(|(number, prompt)| {
            let prompt = heal_prompt(&vocab, prompt, &constraint).map_err(|error| error.of_prompt(number))?;
            Ok(ScoringRequest { prompt, branches: &[], constraint: &constraint })
        });
        let asked: Vec<ScoringRequest<'_>> = healed.collect::<Result<_, RuntimeError>>()?;
        self.score(&asked, options, watch)
    }
}

/// A job that was run.
#[derive(Debug)]
pub struct CompletedJob<J> {
    /// The job, with what it found.
    pub job: J,
    /// The threads of the last forward pass.
    pub n_threads: u32,
    /// Error of a job that was stopped before its end.
    pub stopped: Option<RuntimeError>,
}

impl<J> CompletedJob<J> {
    /// Sorts a stop from other errors.
    ///
    /// # Errors
    /// Why the job ended, unless it was stopped.
    pub fn new(job: J, ended: Result<(), RuntimeError>, n_threads: u32) -> Result<Self, RuntimeError> {
        let stopped = match ended {
            Ok(()) => None,
            Err(stopped @ RuntimeError::Stopped { .. }) => Some(stopped),
            Err(error) => return Err(error),
        };
        Ok(Self { job, n_threads, stopped })
    }

    /// Returns the job with the number of threads.
    ///
    /// # Errors
    /// A stop.
    pub fn into_whole(self) -> Result<(J, u32), RuntimeError> {
        self.stopped.map_or(Ok((self.job, self.n_threads)), Err)
    }
}

/// Returns the prompt without the tokens that the set of a constraint spells again.
pub(super) fn heal_prompt<'p>(
    vocab: &Vocab,
    prompt: &'p [TokenId],
    constraint: &AnyConstraint,
) -> Result<&'p [TokenId], RuntimeError> {
    constraint.sets().into_iter().try_for_each(|set| vocab.check_set(set))?;
    match constraint.first_set() {
        Some(set) => Ok(vocab.before_set(prompt, set)?),
        None => Ok(prompt),
    }
}

impl Scorer for Context {
    fn vocab(&self) -> &Arc<Vocab> {
        self.vocab()
    }

    fn host(&self) -> Host {
        self.host()
    }

    fn complete<J: Job<Error = ScoringError> + Send + 'static>(
        &mut self,
        job: J,
        watch: &mut dyn Watch,
    ) -> Result<CompletedJob<J>, RuntimeError> {
        let mut task = ScoringTask { job, watch };
        let ended = self.run(&mut task);
        CompletedJob::new(task.job, ended, self.n_threads())
    }

    fn score(
        &mut self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let scoring = Scoring::per_prompt::<RuntimeError>(self.host(), asked, options)?;
        let (scoring, n_threads) = self.complete(scoring, watch)?.into_whole()?;
        Ok(scoring.finish(n_threads))
    }

    fn is_apart(&self) -> bool {
        self.is_precise()
    }

    fn score_apart(
        &mut self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        if !self.is_precise() {
            return self.score(asked, options, watch);
        }
        let mut choices = Vec::with_capacity(asked.len());
        for (number, asked) in asked.iter().enumerate() {
            // What was held would be there in pieces of other sizes, which are rounded otherwise.
            self.clear();
            let scored = self.score(std::slice::from_ref(asked), options, watch);
            choices.append(&mut scored.map_err(|error| match error {
                RuntimeError::Prompt { error, .. } => error.of_prompt(number),
                error => error,
            })?);
        }
        Ok(choices)
    }
}

/// A job of `trie-core` that a watcher may stop.
pub struct ScoringTask<J, W> {
    /// The job, which asks for rows.
    pub job: J,
    /// Watcher that may stop the job.
    pub watch: W,
}

impl<J: Job<Error = ScoringError>, W: Watch> Task for ScoringTask<J, W> {
    fn stop(&mut self) -> bool {
        self.watch.stop()
    }
}

impl<J: Job<Error = ScoringError>, W> Job for ScoringTask<J, W> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        Ok(self.job.advance()?)
    }

    fn want(&self) -> WantedRows<'_> {
        self.job.want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        Ok(self.job.take(node, row)?)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.job.finish_batch(decoded);
    }
}

impl From<ScoringError> for RuntimeError {
    fn from(error: ScoringError) -> Self {
        match error {
            ScoringError::DeadEnd(_) => Self::DamagedSet,
            ScoringError::NoLogits(row) => row.into(),
            ScoringError::Problem(problem) => Self::Problem(problem),
        }
    }
}

impl From<ChooseError<Self>> for RuntimeError {
    fn from(error: ChooseError<Self>) -> Self {
        match error {
            ChooseError::Host(error) => error,
            ChooseError::NotListed(error) => error.into(),
            ChooseError::Damaged(problem) => problem.into(),
            ChooseError::DeadEnd { .. } => Self::DamagedSet,
            ChooseError::NoLogits(row) => row.into(),
            ChooseError::Problem(problem) => Self::Problem(problem),
            ChooseError::SetOutsideVocabulary { max_token, n_vocab } => {
                Self::VocabularyMismatch { rules: max_token.index() + 1, n_vocab }
            }
            ChooseError::EndTokenOutsideVocabulary { position, token, n_vocab } => {
                Self::from(VocabError::OutsideVocabulary { position, token, n_vocab }).with_argument("end_tokens")
            }
            ChooseError::Rules(error) => error.into(),
            ChooseError::Zero { what } => Self::OutOfRange { what, value: 0, least: 1, most: u32::MAX.into() },
            ChooseError::Prompt { number, problem } => Self::Prompt { number, error: Box::new(problem.into()) },
            ChooseError::ManySequences | ChooseError::Rows(_) => Self::Unscored { reason: error.to_string() },
        }
    }
}

impl From<PromptProblem> for RuntimeError {
    fn from(problem: PromptProblem) -> Self {
        match problem {
            PromptProblem::Empty => Self::EmptyPrompt,
            PromptProblem::OutsideVocabulary { position, token, n_vocab } => {
                VocabError::OutsideVocabulary { position, token, n_vocab }.into()
            }
            PromptProblem::TooLong { tokens, room } => Self::ContextFull { held: 0, asked: tokens, n_ctx: room },
            PromptProblem::Branches { .. } | PromptProblem::SearchedBranches => {
                Self::Unscored { reason: problem.to_string() }
            }
            PromptProblem::ValueTooLong { value, tokens, prompt, room } => {
                Self::ValueTooLong { value: value.unwrap_or_default(), tokens, prompt, n_ctx: room }
            }
        }
    }
}
