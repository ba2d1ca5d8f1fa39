//! Texts in the tokens of the model, and the probability of each.

use super::Session;
use super::following::{Following, HostOfSession};
use super::turn::{Running, in_time, made_in};
use crate::error::{Error, Result};
use crate::status::TOKENTRIE_ERROR_SPEC;
use std::time::Instant;
use tokentrie::call::{Call, ChooseRequest};
use tokentrie::constraint::{MOST_VALUES, Over, Spec};
use trie_core::{Constraint, TokenId};
use trie_text::Values;

const CHOOSE: &str = "choose";
const BEFORE: &str = "there was a choice";

impl Session {
    pub(crate) fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>> {
        Ok(self.model.model.vocab().tokenize(text, add_special, parse_special)?)
    }

    /// As a request says it; [`Session::result`] has what came of it.
    pub(crate) fn choose(&self, json: &[u8]) -> Result<()> {
        let began = Instant::now();
        let ChooseRequest { prompt, choices, options, call } = ChooseRequest::from_json(json)?;
        let turn = self.turn(CHOOSE)?;
        let call = Call::begun_at(began, call)?.with(turn.cancel());
        let mut warnings = Vec::new();
        let spec = choices.or_else(|| self.followed_spec());
        let ready = made_in(&call, BEFORE, || {
            let values = match &spec {
                Some(spec) => {
                    let host = HostOfSession::new(self);
                    let values = spec.list_values(&Over::vocab(self.model.model.vocab()), &host)?;
                    self.state().left_out = host.left_out();
                    warnings = host.warnings();
                    values
                }
                None => self.followed("choices", |rules, _| {
                    let listed = rules.constraints()[0].1.to_trie(MOST_VALUES);
                    let listed = listed.map_err(|error| Error::new(TOKENTRIE_ERROR_SPEC, error.to_string()))?;
                    Ok(Values::Set(listed.into()))
                })?,
            };
            let prompt = prompt.map_or_else(|| self.own_prompt(), Ok)?;
            Ok(options.ready(prompt, &values, &self.model.sets)?)
        })?;
        let decoder = self.state().decoder.clone();
        let mut running = Running::new(&call);
        let chosen = self.with_runtime(&decoder, &call, |runtime| runtime.run(ready, &mut running));
        let chosen = chosen.map_err(|error| in_time(error, &call, BEFORE))?;
        let json = chosen.json(spec.as_ref(), &HostOfSession::new(self), &warnings)?.to_string();
        self.state().found = Some(json);
        Ok(())
    }

    /// The spec that the session follows.
    fn followed_spec(&self) -> Option<Spec> {
        match &self.state().following {
            Following::Rules { spec, .. } => spec.clone(),
            _ => None,
        }
    }
}
