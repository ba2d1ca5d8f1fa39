//! Reasons to end a call early: cancel handles that others hold, and a time limit.

use crate::json::type_error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trie_core::work::{Limits, Work};

/// A handle that cancels the calls that hold it, from any thread. Once cancelled, it stays cancelled.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the calls between two forward passes. May be repeated.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A time limit that is not valid: negative, or not a number.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("timeout is {0}: it must be a number of seconds, from 0 up")]
pub struct TimeoutError(pub f64);

trie_core::error_kind!(TimeoutError, Argument);

/// Why a call was ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ended {
    /// By one of its handles.
    Cancelled,
    /// It took longer than this many seconds.
    TimedOut(f64),
}

/// Options that calls of every kind have.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallOptions {
    /// Time limit of the call, in seconds.
    #[serde(deserialize_with = "seconds")]
    pub timeout: Option<f64>,
    /// Priority among the calls of an engine: higher ones go first.
    pub priority: i32,
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(from)?;
    let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
    seconds.map(Some).ok_or_else(|| type_error("a number of seconds, from 0 up", &value))
}

/// A running call: its cancel handles, its time limit and its priority.
#[derive(Debug, Clone, Default)]
pub struct Call {
    handles: Vec<Cancel>,
    /// Time at which the call ends, and the time limit in seconds.
    deadline: Option<(Instant, f64)>,
    priority: i32,
}

impl Call {
    /// Returns a call that begins now.
    ///
    /// # Errors
    /// A time limit that is negative or not a number.
    pub fn new(options: CallOptions) -> Result<Self, TimeoutError> {
        Self::begun_at(Instant::now(), options)
    }

    /// Returns a call that began earlier: the time for reading its request counts, too.
    ///
    /// # Errors
    /// As [`Call::new`].
    pub fn begun_at(began: Instant, options: CallOptions) -> Result<Self, TimeoutError> {
        let CallOptions { timeout, priority } = options;
        let Some(timeout) = timeout else { return Ok(Self { priority, ..Self::default() }) };
        // A time beyond what the clock can count never ends.
        let forever = timeout == f64::INFINITY || timeout > u64::MAX as f64;
        let time = if forever { Ok(Duration::MAX) } else { Duration::try_from_secs_f64(timeout) };
        let end = began.checked_add(time.map_err(|_| TimeoutError(timeout))?);
        Ok(Self { handles: Vec::new(), deadline: end.map(|end| (end, timeout)), priority })
    }

    /// Adds a handle that can cancel the call.
    #[must_use]
    pub fn with(mut self, handle: &Cancel) -> Self {
        self.handles.push(handle.clone());
        self
    }

    /// Returns the priority among the calls of an engine.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Returns the reason why the call must end, if there is one. The time limit is checked first.
    pub fn ended(&self) -> Option<Ended> {
        match self.deadline {
            Some((deadline, timeout)) if Instant::now() >= deadline => Some(Ended::TimedOut(timeout)),
            _ => self.handles.iter().any(Cancel::is_cancelled).then_some(Ended::Cancelled),
        }
    }

    /// Runs work on this thread, and stops the work when the call ends.
    pub fn run_work<T>(&self, work: impl FnOnce() -> T) -> T {
        let call = self.clone();
        Work::stopped_by(Limits::NONE, move || call.ended().is_some()).run(work)
    }

    /// Returns the time that is left before the time limit, at most `at_most`.
    pub fn time_left(&self, at_most: Duration) -> Duration {
        self.deadline.map_or(at_most, |(deadline, _)| at_most.min(deadline.saturating_duration_since(Instant::now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call_with_timeout(timeout: f64) -> Result<Call, TimeoutError> {
        Call::new(CallOptions { timeout: Some(timeout), priority: 0 })
    }

    #[test]
    fn a_call_ends_by_its_handles_or_its_time() {
        let (one, other) = (Cancel::default(), Cancel::default());
        let call = Call::new(CallOptions::default()).unwrap().with(&one).with(&other);
        assert_eq!(call.ended(), None);
        other.cancel();
        assert_eq!(call.ended(), Some(Ended::Cancelled));
        assert!(!one.is_cancelled());
        let late = call_with_timeout(0.0).unwrap().with(&other);
        assert_eq!(late.ended(), Some(Ended::TimedOut(0.0)));
        assert_eq!(late.time_left(Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn times_that_no_clock_counts_never_end() {
        for forever in [f64::INFINITY, 1e300, 1e19, f64::MAX] {
            let call = call_with_timeout(forever).unwrap();
            assert_eq!(
                (call.ended(), call.time_left(Duration::from_secs(1))),
                (None, Duration::from_secs(1)),
                "{forever}"
            );
        }
        for wrong in [-1.0, -1e-9, f64::NAN, f64::NEG_INFINITY] {
            let said = call_with_timeout(wrong).unwrap_err().to_string();
            assert!(said.starts_with(&format!("timeout is {wrong}: ")), "{said}");
        }
    }
}
