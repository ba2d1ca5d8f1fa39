//! Texts in the tokens of the model, and the probability of each.

use super::Session;
use crate::abi::tokentrie_choice;
use crate::error::{Error, Result};
use crate::status::TOKENTRIE_ERROR_SET;
use ::llama_sampler::Watch;
use std::sync::Arc;
use trie_core::{ChooseOptions, TokenId, Trie};
use trie_text::{Prompt, TextValues, Texts, ValueSet, Values};

struct UntilCancelled<'a>(&'a Session);

impl Watch for UntilCancelled<'_> {
    fn stop(&mut self) -> bool {
        self.0.gives_up()
    }
}

impl Session {
    pub(crate) fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>> {
        Ok(self.model.model.vocab().tokenize(text, add_special, parse_special)?)
    }

    /// A trie of texts.
    pub(crate) fn texts(&self, texts: &[&str], prefix: &str, suffix: &str) -> Result<Trie> {
        let around = Texts::default().with_prefix(prefix).with_suffix(suffix).with_healing(!prefix.is_empty());
        let made = around.trie(self.model.model.vocab(), texts);
        Ok(made.map_err(|error| Error::new(TOKENTRIE_ERROR_SET, error.to_string()))?.trie)
    }

    /// Probabilities of texts after a text, in the order of the texts.
    pub(crate) fn choose_texts(&self, prompt: &str, texts: &[&str]) -> Result<(Vec<f64>, tokentrie_choice)> {
        let _turn = self.turns.begin("choose")?;
        let values = TextValues::new(texts.iter().copied()).with_distinct(true);
        let (prompt, set) = self.model.sets.place(Prompt::Text(prompt.to_owned()), &Values::Texts(values))?;
        self.choose(&prompt, &set)
    }

    /// Probabilities of leaves after tokens.
    pub(crate) fn choose_leaves(&self, prompt: &[TokenId], trie: Trie) -> Result<(Vec<f64>, tokentrie_choice)> {
        let _turn = self.turns.begin("choose")?;
        self.choose(prompt, &ValueSet::from(trie))
    }

    fn choose(&self, prompt: &[TokenId], set: &ValueSet) -> Result<(Vec<f64>, tokentrie_choice)> {
        let slot = Arc::clone(&self.state().slot);
        let mut watch = UntilCancelled(self);
        let trie = set.trie().clone();
        let choice =
            self.with_context(&slot, |context| context.choose(prompt, trie, &ChooseOptions::new(), &mut watch))?;
        let probabilities = set.by_value(&choice.probabilities());
        let best = choice.ranking.first().map_or(0, |&leaf| set.index_of(leaf));
        let told = tokentrie_choice {
            size: 0,
            best: best as u32,
            values: probabilities.len() as u64,
            mass: choice.mass_low,
            forward_passes: choice.stats.forward_passes,
            seconds: choice.stats.seconds,
        };
        Ok((probabilities, told))
    }
}
