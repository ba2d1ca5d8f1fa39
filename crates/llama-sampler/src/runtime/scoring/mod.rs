//! The exact probability of every value of a set after a prompt: a context as the host that decodes trees of tokens.

mod waves;

pub use waves::{Bounds, PlannedWave, place_branches, plan};

use super::context::Context;
use super::error::RuntimeError;
use super::task::Task;
use super::watch::Watch;
use std::sync::Arc;
use trie_core::{
    AnyConstraint, Choice, ChooseError, ChooseOptions, Constraint, DecodeCost, Job, PromptProblem, Scoring,
    ScoringError, ScoringRequest, Special, TokenId, WantedRows,
};
use trie_text::{Vocab, VocabError};

/// Scorers, which compute the exact probabilities of values after prompts: a context, or an engine.
pub trait Scorer {
    /// Returns the vocabulary of the model.
    fn vocab(&self) -> &Arc<Vocab>;

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

    fn score(
        &mut self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let scoring = Scoring::per_prompt::<RuntimeError>(self.host(), asked, options)?;
        let mut task = ScoringTask { scoring, watch };
        self.run(&mut task)?;
        Ok(task.scoring.finish(self.n_threads()))
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

/// A scoring that somebody may stop.
struct ScoringTask<'w> {
    scoring: Scoring,
    watch: &'w mut dyn Watch,
}

impl Task for ScoringTask<'_> {
    fn stop(&mut self) -> bool {
        self.watch.stop()
    }
}

impl Job for ScoringTask<'_> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        Ok(self.scoring.advance()?)
    }

    fn want(&self) -> WantedRows<'_> {
        self.scoring.want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        Ok(self.scoring.take(node, row)?)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.scoring.finish_batch(decoded);
    }
}

impl From<ScoringError> for RuntimeError {
    fn from(error: ScoringError) -> Self {
        match error {
            ScoringError::DeadEnd(_) => Self::DamagedSet,
            ScoringError::NoLogits(row) => row.into(),
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
