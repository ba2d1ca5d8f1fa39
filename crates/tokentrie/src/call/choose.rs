//! A choice: made ready after a prompt, then scored.

use super::options::Choose;
use super::run::{Hooks, ReadyCall};
use crate::engine::Runtime;
use llama_sampler::{RuntimeError, Scorer};
use trie_core::{Choice, TokenId};
use trie_text::{Prompt, ValueSet, ValueSets, Values, ValuesError};

/// A choice that only needs what decodes.
#[derive(Debug, Clone)]
pub struct ReadyChoice {
    prompt: Vec<TokenId>,
    set: ValueSet,
    options: Choose,
}

/// A choice, and the values in their order.
#[derive(Debug, Clone)]
pub struct ChoiceResult {
    /// Probabilities by the number of each leaf of the set.
    pub choice: Choice,
    /// Values that are scored after the prompt.
    pub set: ValueSet,
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
