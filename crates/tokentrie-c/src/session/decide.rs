//! Typed questions about a state, and the probability of every option.

use super::Session;
use super::turn::{Running, in_time, made_in};
use crate::error::Result;
use std::time::Instant;
use tokentrie::call::Call;
use tokentrie::decide::{Answers, ReadyDecision, Request};

const BEFORE: &str = "there were answers";

impl Session {
    /// Answers a request; [`Session::result`] has the answers.
    pub(crate) fn decide(&self, json: &[u8]) -> Result<()> {
        let began = Instant::now();
        let request = Request::from_json(json)?;
        let turn = self.turn("decide")?;
        let call = Call::begun_at(began, request.call)?.with(turn.cancel());
        let (format, _) = self.format()?;
        let (sets, model) = (&self.model.sets, &self.model.model);
        let ready = made_in(&call, BEFORE, || Ok(ReadyDecision::new(request, &format, sets, model)?))?;
        let mut running = Running::new(&call);
        let answers = self.with_runtime(&self.own, &call, |runtime| runtime.run(ready, &mut running));
        let answers = answers.map_err(|error| in_time(error, &call, BEFORE))?;
        let mut state = self.state();
        // The context goes on after another text.
        state.prompt.clear();
        state.found = Some(Answers::to_json(&answers));
        Ok(())
    }
}
