//! Callbacks of long work that runs without the GIL: Ctrl-C stops it, and a callback sees each step.

use crate::call::ended;
use crate::chat::message::{event_result, merged};
use crate::convert::gil::Signals;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::{attached, called, module};
use crate::model::generated::step_result;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tokentrie::call::{Call, Ended, Hooks};
use tokentrie::chat::Event;

/// Asked between two forward passes. Keeps the first exception; the work then ends and the caller raises it.
pub(crate) struct Watch {
    on_step: Option<Py<PyAny>>,
    stream: Option<Py<PyAny>>,
    /// Further reasons to end the call.
    pub(crate) call: Call,
    signals: Signals,
}

impl Watch {
    pub(crate) fn new(call: &Call) -> Self {
        Self { on_step: None, stream: None, call: call.clone(), signals: Signals::default() }
    }

    /// With a function that hears of each step.
    pub(crate) fn with_steps(self, on_step: Option<Py<PyAny>>) -> Self {
        Self { on_step, ..self }
    }

    /// With a function that hears of each event of a chat.
    pub(crate) fn with_stream(self, stream: Option<Py<PyAny>>) -> Self {
        Self { stream, ..self }
    }

    /// Returns whether to stop: Python has an exception to raise, such as that of Ctrl-C, or the call is cancelled.
    pub(crate) fn wants_stop(&mut self) -> bool {
        self.signals.wants_stop() || self.call.ended().is_some()
    }

    /// The result, unless there is an exception to raise.
    pub(crate) fn finish<T, E>(self, result: Result<T, E>) -> crate::errors::Result<T>
    where
        crate::errors::Error: From<E>,
    {
        if let Some(raised) = self.signals.raised {
            return Err(raised.into());
        }
        result.map_err(|error| match Error::from(error) {
            // In the middle of a mask, too.
            Error::Ours(Class::Cancelled | Class::Rule, _) if self.call.ended().is_some() => {
                ended(&self.call, "before there was a result")
            }
            Error::Ours(Class::Cancelled, _) => ended(&self.call, "before there was a result"),
            error => error,
        })
    }
}

impl llama_sampler::Watch for Watch {
    fn stop(&mut self) -> bool {
        self.wants_stop()
    }

    fn priority(&self) -> i32 {
        self.call.priority()
    }

    fn wants_steps(&self) -> bool {
        self.on_step.is_some() && self.signals.raised.is_none()
    }

    fn step(&mut self, step: &llama_sampler::Step) {
        let Some(on_step) = &self.on_step else { return };
        let shown = attached(|py| -> PyResult<()> {
            let arguments = (step_result(py, step)?,).into_pyobject(py)?;
            finished(called(on_step.bind(py), &arguments, None)?)
        });
        self.signals.raised = shown.and_then(Result::err);
    }
}

impl Hooks for Watch {
    fn interruption(&self) -> Option<Ended> {
        self.call.ended()
    }

    fn listens(&self) -> bool {
        self.signals.raised.is_none()
    }

    fn events(&mut self, events: Vec<Event>) {
        let Some(stream) = &self.stream else { return };
        let told = attached(|py| -> PyResult<()> {
            for event in merged(events) {
                let argument = (event_result(py, &event)?,).into_pyobject(py)?;
                finished(called(stream.bind(py), &argument, None)?)?;
            }
            Ok(())
        });
        if let Some(Err(raised)) = told {
            self.signals.raised.get_or_insert(raised);
        }
    }
}

/// Awaits the result of a callback that is `async def`: it has only begun when the callback returns.
///
/// # Errors
/// The exception that it raises.
pub(crate) fn finished(result: Bound<'_, PyAny>) -> PyResult<()> {
    if result.is_none() {
        return Ok(());
    }
    let finish = module(result.py(), "tokentrie.streaming")?.getattr("finish_callback")?;
    called(&finish, &(result,).into_pyobject(finish.py())?, None).map(|_| ())
}

/// Checks that a callback is callable: else the first token would be lost to a `TypeError` that names nothing.
pub(crate) fn check_callable(name: &str, given: Option<&Bound<'_, PyAny>>) -> Result<()> {
    match given {
        Some(given) if !given.is_callable() => {
            let message = format!("{name} must be a function, not {} of type {}", shown(given), type_name(given));
            Err(PyTypeError::new_err(message).into())
        }
        _ => Ok(()),
    }
}
