//! Cancellation of a call before it is done: a handle of its own, its time limit, or the model's `cancel`.

use crate::errors::{Class, Error, Result};
use pyo3::prelude::*;
use tokentrie::call::{Call, CallOptions, Cancel, Ended};

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
///     tokentrie.errors.CancelledError: stopped on request ...
#[pyclass(frozen, module = "tokentrie")]
#[derive(Default)]
pub(crate) struct CancelToken(Cancel);

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
        self.0.cancel();
    }

    /// bool: whether `cancel` was called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn __repr__(&self) -> &'static str {
        if self.cancelled() { "<tokentrie.CancelToken: cancelled>" } else { "<tokentrie.CancelToken>" }
    }
}

/// A call that Python begins, and that goes on in calls of ours.
#[pyclass(frozen, module = "tokentrie._native")]
pub(crate) struct OpenCall(pub(crate) Call);

#[pymethods]
impl OpenCall {
    /// Its time counts from here.
    #[new]
    #[pyo3(signature = (cancel, timeout, priority))]
    fn new(cancel: Option<&Bound<'_, CancelToken>>, timeout: Option<f64>, priority: i32) -> Result<Self> {
        begun(cancel, CallOptions { timeout, priority }).map(Self)
    }

    /// Raises what ended it, if anything did.
    fn check(&self) -> Result<()> {
        self.0.ended().map_or(Ok(()), |_| Err(ended(&self.0, "before there was a result")))
    }
}

/// A call that begins now.
///
/// # Errors
/// `OptionError` for a time that is negative or no number.
pub(crate) fn begun(cancel: Option<&Bound<'_, CancelToken>>, options: CallOptions) -> Result<Call> {
    let call = Call::new(options).map_err(|error| Class::Option.error(error.to_string()))?;
    Ok(match cancel {
        Some(cancel) => call.with(&cancel.get().0),
        None => call,
    })
}

/// The error of a call that was ended, `after` some of its work.
pub(crate) fn ended(call: &Call, after: &str) -> Error {
    match call.ended() {
        Some(Ended::TimedOut(timeout)) => Class::TimedOut.error(format!("the timeout of {timeout} s was over {after}")),
        Some(Ended::Cancelled) | None => Class::Cancelled.error(format!("stopped on request {after}")),
    }
}
