//! How Python takes part in long work that runs without the GIL: Ctrl-C stops it, and a callback sees each step.

use crate::call::Call;
use crate::errors::{Class, Error};
use crate::generated::Step;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Asked between two forward passes. Keeps the first exception; the work then ends and the caller raises it.
pub(crate) struct Watch {
    on_step: Option<Py<PyAny>>,
    /// What else may end the call.
    call: Call,
    raised: Option<PyErr>,
    asked: Option<Instant>,
}

impl Watch {
    /// Taking the GIL back can wait for other threads, so signals are looked at no more often than this.
    const PAUSE: Duration = Duration::from_millis(10);

    pub(crate) fn new(on_step: Option<Py<PyAny>>, call: Call) -> Self {
        Self { on_step, call, raised: None, asked: None }
    }

    /// Whether to give up: Python has an exception to raise, such as that of Ctrl-C, or the call is cancelled.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the path alone has too narrow a lifetime")]
    pub(crate) fn wants_stop(&mut self) -> bool {
        if self.raised.is_none() && self.asked.is_none_or(|asked| asked.elapsed() >= Self::PAUSE) {
            self.asked = Some(Instant::now());
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
        self.raised.is_some() || self.call.is_ended()
    }

    /// The result, unless there is an exception to raise.
    pub(crate) fn finish<T, E>(self, result: Result<T, E>) -> crate::errors::Result<T>
    where
        crate::errors::Error: From<E>,
    {
        if let Some(raised) = self.raised {
            return Err(raised.into());
        }
        result.map_err(|error| match Error::from(error) {
            Error::Ours(Class::Cancelled, _) => self.call.error("before there was a result"),
            error => error,
        })
    }
}

impl llama_sampler::Watch for Watch {
    fn stop(&mut self) -> bool {
        self.wants_stop()
    }

    fn wants_steps(&self) -> bool {
        self.on_step.is_some() && self.raised.is_none()
    }

    fn step(&mut self, step: &llama_sampler::Step<'_>) {
        let Some(on_step) = &self.on_step else { return };
        self.raised = Python::attach(|py| on_step.call1(py, (Step::from(step),))).err();
    }
}
