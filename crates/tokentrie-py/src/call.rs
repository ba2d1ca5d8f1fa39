//! What may end a call before it is done: a handle of its own, its time, or the model's `cancel`.

use crate::errors::{Class, Error, Result};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A handle that ends the calls it is given to, from any thread: those that run and those that wait for their turn.
///
/// It stays cancelled, so every call wants a new one.
///
/// Example:
///     >>> cancel = tokentrie.CancelToken()
///     >>> cancel.cancel()  # from another thread, mostly
///     >>> tokentrie.Model().generate("Once", cancel=cancel)
///     Traceback (most recent call last):
///         ...
///     tokentrie.CancelledError: stopped on request ...
#[pyclass(frozen, module = "tokentrie")]
#[derive(Default)]
pub(crate) struct CancelToken(Arc<AtomicBool>);

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends the calls between two forward passes: they raise CancelledError. May be repeated.
    ///
    /// Example:
    ///     >>> cancel = tokentrie.CancelToken()
    ///     >>> cancel.cancel()
    ///     >>> cancel.cancelled
    ///     True
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// bool: whether `cancel` was called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> &'static str {
        if self.cancelled() { "<tokentrie.CancelToken: cancelled>" } else { "<tokentrie.CancelToken>" }
    }
}

/// The ends of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    handle: Option<Arc<AtomicBool>>,
    /// Set by the model's `cancel`.
    pub(crate) of_model: Arc<AtomicBool>,
    deadline: Option<(Instant, f64)>,
}

impl Call {
    /// A call that begins now.
    ///
    /// # Errors
    /// `OptionError` for a time that is negative or no number.
    pub(crate) fn new(cancel: Option<&Bound<'_, CancelToken>>, timeout: Option<f64>) -> Result<Self> {
        let deadline = timeout.map(|timeout| {
            let time = Duration::try_from_secs_f64(timeout).ok();
            let wrong =
                || Class::Option.error(format!("timeout is {timeout}: it must be a number of seconds, from 0 up"));
            // A time beyond what the clock can count never ends.
            let time = if timeout.is_infinite() && timeout > 0.0 { Some(Duration::MAX) } else { time };
            time.map(|time| Instant::now().checked_add(time).map(|end| (end, timeout))).ok_or_else(wrong)
        });
        let handle = cancel.map(|cancel| Arc::clone(&cancel.get().0));
        Ok(Self { handle, of_model: Arc::default(), deadline: deadline.transpose()?.flatten() })
    }

    /// The same call with an end of its own for the model's `cancel`: a call that comes back runs several times.
    pub(crate) fn running(&self) -> Self {
        Self { of_model: Arc::default(), ..self.clone() }
    }

    /// Whether something ended it.
    pub(crate) fn is_ended(&self) -> bool {
        self.of_model.load(Ordering::Relaxed)
            || self.handle.as_ref().is_some_and(|handle| handle.load(Ordering::Relaxed))
            || self.is_late()
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|(deadline, _)| Instant::now() >= deadline)
    }

    /// How long one may wait for something else at most.
    pub(crate) fn left(&self, at_most: Duration) -> Duration {
        self.deadline.map_or(at_most, |(deadline, _)| at_most.min(deadline.saturating_duration_since(Instant::now())))
    }

    /// The error of a call that was ended, `after` some of its work.
    pub(crate) fn error(&self, after: &str) -> Error {
        match self.deadline.filter(|_| self.is_late()) {
            Some((_, timeout)) => Class::TimedOut.error(format!("the timeout of {timeout} s was over {after}")),
            None => Class::Cancelled.error(format!("stopped on request {after}")),
        }
    }
}
