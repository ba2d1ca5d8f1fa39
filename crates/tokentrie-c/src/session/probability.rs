//! The probability that any text of a constraint is written.

use super::Session;
use super::following::HostOfSession;
use super::turn::{Running, in_time, made_in};
use crate::error::Result;
use std::time::Instant;
use tokentrie::call::{Call, ProbabilityRequest};
use tokentrie::constraint::{Built, Over};

const BEFORE: &str = "there was a probability";

impl Session {
    /// Finds the probability of a request; [`Session::result`] has it.
    pub(crate) fn probability(&self, json: &[u8]) -> Result<()> {
        let began = Instant::now();
        let ProbabilityRequest { prompt, constraint, mut options, call } = ProbabilityRequest::from_json(json)?;
        let turn = self.turn("probability")?;
        let call = Call::begun_at(began, call)?.with(turn.cancel());
        options.seed = options.seed.or(self.seed);
        let host = HostOfSession::new(self);
        let ready = made_in(&call, BEFORE, || {
            let built = match &constraint {
                Some(spec) => {
                    let built = spec.build(&Over::vocab(self.model.model.vocab()), &host)?;
                    self.state().left_out = host.left_out();
                    built
                }
                None => self.followed("constraint", |rules, built| {
                    Ok(built.cloned().unwrap_or_else(|| Built::Spans(rules.constraints().to_vec().into())))
                })?,
            };
            let prompt = prompt.map_or_else(|| self.own_prompt(), Ok)?;
            Ok(options.ready(prompt, built, &self.model.sets)?)
        })?;
        let decoder = self.state().decoder.clone();
        let mut running = Running::new(&call);
        let found = self.with_runtime(&decoder, &call, |runtime| runtime.run(ready, &mut running));
        let found = found.map_err(|error| in_time(error, &call, BEFORE))?;
        self.state().found = Some(found.to_json(&host.warnings()));
        Ok(())
    }
}
