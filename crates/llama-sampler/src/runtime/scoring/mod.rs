//! The exact probability of every value of a set after a prompt: a context as the host that decodes trees of tokens.

mod decoder;
mod waves;

use super::context::Context;
use super::error::RuntimeError;
use super::watch::Watch;
use decoder::ContextDecoder;
use trie_core::{AnyConstraint, Choice, ChooseError, ChooseOptions, Constraint, PromptProblem, Special, TokenId};
use trie_text::VocabError;

impl Context {
    /// The probabilities of the values of a constraint after `prompt`: see [`trie_core::choose`]. A set that begins
    /// inside
    /// the prompt ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)) comes after what it leaves of it.
    ///
    /// # Errors
    /// As there; a set for another vocabulary, a prompt that the set does not begin in, a failed forward pass, or
    /// `watch`
    /// asked to stop. The context can be used afterwards.
    pub fn choose(
        &mut self,
        prompt: &[TokenId],
        constraint: impl Into<AnyConstraint>,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Choice, RuntimeError> {
        let constraint = constraint.into();
        let healed = self.healed(prompt, &constraint)?;
        let chosen = trie_core::choose(&mut ContextDecoder::new(self, watch), healed, constraint, options);
        chosen.map_err(|error| RuntimeError::from(error).of_the_only_prompt())
    }

    /// [`Context::choose`] for several prompts, in order. What all of them begin with is decoded once, the rest in
    /// common
    /// forward passes.
    ///
    /// # Errors
    /// As [`Context::choose`]; nothing is given for any prompt then.
    pub fn choose_many(
        &mut self,
        prompts: &[&[TokenId]],
        constraint: impl Into<AnyConstraint>,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let constraint = constraint.into();
        let healed = prompts.iter().enumerate().map(|(number, prompt)| {
            self.healed(prompt, &constraint).map_err(|error| RuntimeError::Prompt { number, error: Box::new(error) })
        });
        let healed: Vec<&[TokenId]> = healed.collect::<Result<_, _>>()?;
        Ok(trie_core::choose_many(&mut ContextDecoder::new(self, watch), &healed, constraint, options)?)
    }

    /// What is left of a prompt before the set that a constraint begins with.
    fn healed<'p>(&self, prompt: &'p [TokenId], constraint: &AnyConstraint) -> Result<&'p [TokenId], RuntimeError> {
        constraint.sets().into_iter().try_for_each(|set| self.vocab().check_set(set))?;
        match constraint.first_set() {
            Some(set) => Ok(self.vocab().before_set(prompt, set)?),
            None => Ok(prompt),
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
            ChooseError::SetOutsideVocabulary { max_token, n_vocab } => {
                Self::VocabularyMismatch { rules: max_token.index() + 1, n_vocab }
            }
            ChooseError::EndTokenOutsideVocabulary { position, token, n_vocab } => {
                Self::from(VocabError::OutsideVocabulary { position, token, n_vocab }).of("end_tokens")
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
            PromptProblem::ValueTooLong { value, tokens, prompt, room } => {
                Self::ValueTooLong { value: value.unwrap_or_default(), tokens, prompt, n_ctx: room }
            }
        }
    }
}
