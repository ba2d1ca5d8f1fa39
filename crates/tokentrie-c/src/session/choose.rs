//! Texts in the tokens of the model, and the probability of each.

use super::Session;
use super::following::{Following, HostOfSession, REFUSED};
use super::turn::{UntilEnded, in_time, made_in};
use crate::abi::tokentrie_choice;
use crate::error::{Error, Result};
use crate::status::{TOKENTRIE_ERROR_SET, TOKENTRIE_ERROR_SPEC};
use ::llama_sampler::Scorer;
use std::time::Instant;
use tokentrie::run::{Call, Choose, ChooseRequest, Turn, choice_json};
use tokentrie::spec::{MOST_VALUES, Over};
use trie_core::{Choice, Constraint, TokenId, Trie};
use trie_text::{Prompt, TextValues, Texts, ValueSet, Values};

const CHOOSE: &str = "choose";
const BEFORE: &str = "there was a choice";

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
        let turn = self.turn(CHOOSE)?;
        let values = TextValues::new(texts.iter().copied()).with_distinct(true);
        let (prompt, set) = self.model.sets.place(Prompt::Text(prompt.to_owned()), &Values::Texts(values))?;
        self.told(&prompt, &set, &turn)
    }

    /// Probabilities of leaves after tokens.
    pub(crate) fn choose_leaves(&self, prompt: &[TokenId], trie: Trie) -> Result<(Vec<f64>, tokentrie_choice)> {
        let turn = self.turn(CHOOSE)?;
        self.told(prompt, &ValueSet::from(trie), &turn)
    }

    /// As a request says it; [`Session::result`] has what came of it.
    pub(crate) fn choose_json(&self, json: &[u8]) -> Result<()> {
        let began = Instant::now();
        let ChooseRequest { prompt, choices, options, call } = ChooseRequest::from_json(json)?;
        let turn = self.turn(CHOOSE)?;
        let call = Call::begun_at(began, call)?.with(turn.cancel());
        let mut warnings = Vec::new();
        let (prompt, set) = made_in(&call, BEFORE, || {
            let values = match choices {
                Some(choices) => {
                    let host = HostOfSession::new(self);
                    let values = choices.listed(&Over::vocab(self.model.model.vocab()), &host)?;
                    self.state().left_out = host.left_out();
                    warnings = host.warnings();
                    values
                }
                None => self.followed()?,
            };
            let prompt = prompt.map_or_else(|| self.own_prompt(), Ok)?;
            Ok(self.model.sets.place(prompt, &values)?)
        })?;
        let choice = self.choose(&prompt, &set, &options, &call)?;
        self.state().found = Some(choice_json(&choice, &set, &warnings));
        Ok(())
    }

    /// The values of what the session follows.
    fn followed(&self) -> Result<Values> {
        let spec = match &self.state().following {
            Following::Rules { spec: Some(spec), .. } => spec.clone(),
            Following::Rules { rules, .. } => {
                let listed = rules.constraints()[0].1.to_trie(MOST_VALUES);
                let listed = listed.map_err(|error| Error::new(TOKENTRIE_ERROR_SPEC, error.to_string()))?;
                return Ok(Values::Set(listed.into()));
            }
            Following::Refused(error) => return Err(error.clone().of(REFUSED)),
            Following::Nothing => {
                let message = "$: the field \"choices\" is missing, and the session follows nothing";
                return Err(Error::new(TOKENTRIE_ERROR_SPEC, message));
            }
        };
        Ok(spec.listed(&Over::vocab(self.model.model.vocab()), &HostOfSession::new(self))?)
    }

    fn told(&self, prompt: &[TokenId], set: &ValueSet, turn: &Turn) -> Result<(Vec<f64>, tokentrie_choice)> {
        let choice = self.choose(prompt, set, &Choose::default(), &Call::default().with(turn.cancel()))?;
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

    fn choose(&self, prompt: &[TokenId], set: &ValueSet, options: &Choose, call: &Call) -> Result<Choice> {
        let decoder = self.state().decoder.clone();
        let trie = set.trie().clone();
        let mut watch = UntilEnded(call);
        self.with_runtime(&decoder, call, |runtime| runtime.choose(prompt, trie, &options.options(), &mut watch))
            .map_err(|error| in_time(error, call, BEFORE))
    }
}
