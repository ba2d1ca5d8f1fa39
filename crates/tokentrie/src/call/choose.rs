//! A choice: prepared after a prompt, then scored.

use super::choice::ChoiceResult;
use super::options::Choose;
use super::run::{Hooks, ReadyCall};
use crate::engine::Runtime;
use llama_sampler::{RuntimeError, Scorer};
use trie_core::TokenId;
use trie_text::{Prompt, ValueSet, ValueSets, Values, ValuesError};

/// A choice that is ready to run: it only needs a decoder.
#[derive(Debug, Clone)]
pub struct ReadyChoice {
    prompt: Vec<TokenId>,
    set: ValueSet,
    options: Choose,
}

impl Choose {
    /// Returns the choice among values after a prompt.
    ///
    /// # Errors
    /// As [`ValueSets::place`].
    pub fn ready(self, prompt: Prompt, values: &Values, sets: &ValueSets) -> Result<ReadyChoice, ValuesError> {
        let (prompt, set) = sets.place(prompt, values)?;
        Ok(ReadyChoice { prompt, set, options: self })
    }
}

impl ReadyCall for ReadyChoice {
    type Outcome = ChoiceResult;
    type Error = RuntimeError;

    fn run_on(self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<ChoiceResult, RuntimeError> {
        let Self { prompt, set, options } = self;
        let choice = runtime.choose(&prompt, set.trie().clone(), &options.options(), hooks)?;
        Ok(ChoiceResult { choice, set })
    }
}
