//! Whose turn it is: a session does one thing at a time. What comes meanwhile is refused, not queued.

use crate::error::{Error, Result};
use crate::status::TOKENTRIE_ERROR_HANDLE;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The turns of one session.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    now: Mutex<Now>,
    /// Read by what runs; written under the lock, so that it never ends the call after.
    cancelled: AtomicBool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Now {
    #[default]
    Free,
    Busy(&'static str),
    Closed,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'t>(&'t Turns);

pub(crate) const GENERATE: &str = "generate";
/// A generation too.
pub(crate) const CHAT: &str = "chat";

impl Turns {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a turn.
    pub(crate) fn begin(&self, what: &'static str) -> Result<Turn<'_>> {
        let mut now = self.now();
        match *now {
            Now::Free => {
                *now = Now::Busy(what);
                self.cancelled.store(false, Ordering::Relaxed);
                Ok(Turn(self))
            }
            Now::Busy(other) => Err(busy(what, other)),
            Now::Closed => Err(Error::new(TOKENTRIE_ERROR_HANDLE, "the session was closed before")),
        }
    }

    /// Ends the turn of a call that another thread has gone on with.
    pub(crate) fn end(&self) {
        let mut now = self.now();
        if matches!(*now, Now::Busy(_)) {
            *now = Now::Free;
        }
    }

    /// Asks what runs to end; nothing if nothing runs.
    pub(crate) fn cancel(&self) {
        let now = self.now();
        if matches!(*now, Now::Busy(_)) {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn is_generating(&self) -> bool {
        matches!(*self.now(), Now::Busy(GENERATE | CHAT))
    }

    /// No turn any more.
    pub(crate) fn close(&self) -> Result<()> {
        let mut now = self.now();
        if let Now::Busy(other) = *now {
            return Err(busy("close", other));
        }
        *now = Now::Closed;
        Ok(())
    }
}

#[cold]
fn busy(what: &str, other: &str) -> Error {
    Error::busy(format!("{what}: the session is busy ({other} runs): wait for its end, or cancel it and wait"))
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_reaches_what_runs_and_nothing_after_it() {
        let turns = Turns::default();
        turns.cancel();
        let turn = turns.begin(GENERATE).unwrap();
        assert!(!turns.is_cancelled() && turns.is_generating());
        assert!(
            turns.begin("prefill").unwrap_err().message.starts_with("prefill: the session is busy (generate runs)")
        );
        assert!(turns.close().is_err());
        turns.cancel();
        assert!(turns.is_cancelled());
        drop(turn);
        let turn = turns.begin("prefill").unwrap();
        assert!(!turns.is_cancelled() && !turns.is_generating());
        drop(turn);
        turns.close().unwrap();
        assert_eq!(turns.begin("prefill").unwrap_err().status, TOKENTRIE_ERROR_HANDLE);
    }
}
