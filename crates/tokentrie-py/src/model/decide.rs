//! Decisions of a model. Questions as Python says them, and answers as it reads them, are in `tokentrie.decisions`.

use crate::call::OpenCall;
use crate::convert::gil::{asked, made_in};
use crate::errors::{Class, Error};
use crate::model::loaded::Model;
use crate::model::watch::Watch;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::time::Instant;
use tokentrie::call::Call;
use tokentrie::decide::{Answers, CalibrateError, Calibration, ReadyDecision, Request};
use trie_core::work::Limits;

#[pymethods]
impl Model {
    /// A calibration of a request's questions, from examples: all as JSON.
    fn _calibrated(&self, py: Python<'_>, request: &str, examples: &str) -> crate::errors::Result<String> {
        let loaded = self.loaded(py)?;
        asked(py, Limits::NONE, || {
            let request = Request::from_json(request.as_bytes()).map_err(Error::from)?;
            let made = Calibration::fit(&request.questions, &request.options, loaded.model.path(), examples.as_bytes());
            let wrong = |error| match error {
                CalibrateError::Examples(error) => Error::from(error).at("examples: "),
                CalibrateError::Model(error) => Error::from(PyErr::from(error)),
                CalibrateError::Fit { .. } => Class::Option.error(error.to_string()),
            };
            made.map(|made| made.to_json()).map_err(wrong)
        })?
    }

    /// The index of the right option of a question, which a request and the gold answer name, both as JSON.
    #[staticmethod]
    fn _right_option(py: Python<'_>, request: &str, question: &str, gold: &str) -> crate::errors::Result<usize> {
        let read = || {
            let request = Request::from_json(request.as_bytes()).map_err(Error::from)?;
            let found = request.questions.iter().find(|asked| asked.name == question);
            let found = found.ok_or_else(|| Class::Option.error(format!("unknown question {question:?}")))?;
            let gold = serde_json::from_str(gold).map_err(|error| Class::Option.error(error.to_string()))?;
            found.right_option(&gold).map_err(|problem| Class::Option.error(problem.to_string()))
        };
        asked(py, Limits::NONE, read)?
    }

    /// The answers to a request, both as JSON; `first` is the number of its first state among all.
    #[pyo3(signature = (request, first=0, call=None))]
    fn _decide(
        &self,
        request: &Bound<'_, PyString>,
        first: usize,
        call: Option<&Bound<'_, OpenCall>>,
    ) -> crate::errors::Result<String> {
        let (py, began) = (request.py(), Instant::now());
        let text = request.to_str().map_err(Error::from)?;
        let (loaded, format) = (self.loaded(py)?, self.format(py)?);
        let read = || asked(py, Limits::NONE, || Request::from_json(text.as_bytes()))?.map_err(Error::from);
        let (request, call) = if let Some(call) = call {
            (made_in(py, &call.get().0, read)?, &call.get().0)
        } else {
            // A request that came as text says how long it may take.
            let request = read()?;
            let call = Call::begun_at(began, request.call);
            (request, &call.map_err(|error| Class::Option.error(error.to_string()))?)
        };
        let ready = made_in(py, call, || {
            let over = format.get().over_vocab(py, loaded.model.vocab())?;
            let ready = || ReadyDecision::new(request, &over, &loaded.sets, &loaded.model);
            asked(py, Limits::NONE, ready)?.map_err(|error| Error::from(error.shift_states(first)))
        })?;
        self.using(py, Watch::new(call), |runtime, watch| {
            let done = runtime.run(ready, watch).map_err(|error| error.shift_states(first));
            done.map(|all| Answers::to_json(&all))
        })
    }
}
