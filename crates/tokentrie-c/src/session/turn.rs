//! One call at a time: what is said to the others, and what ends the one.

use super::Session;
use crate::error::{Error, Result};
use crate::status::{TOKENTRIE_ERROR_CANCELLED, TOKENTRIE_ERROR_HANDLE};
use ::llama_callbacks::exit::is_ending;
use ::llama_sampler::Watch;
use tokentrie::call::{Call, Ended, Refusal, Turn};

pub(super) const GENERATE: &str = "generate";
/// Operation name of chats, for errors; a generation too.
pub(super) const CHAT: &str = "chat";

impl Session {
    /// Begins a turn. What comes meanwhile is refused, not queued.
    pub(super) fn turn(&self, what: &'static str) -> Result<Turn> {
        self.turns.begin(what).map_err(|refusal| refused(what, refusal))
    }
}

/// Hears of what ends a call.
pub(super) struct UntilEnded<'a>(pub(super) &'a Call);

impl Watch for UntilEnded<'_> {
    fn stop(&mut self) -> bool {
        gives_up(self.0)
    }

    fn priority(&self) -> i32 {
        self.0.priority()
    }
}

/// Makes what a call begins with; nothing where the call was over first.
pub(super) fn made_unless_over<T>(call: &Call, make: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    match call.within(make) {
        Err(_) if call.ended().is_some() => Ok(None),
        done => done.map(Some),
    }
}

/// The same; that the call was over first is an error: `before` something.
pub(super) fn made_in<T>(call: &Call, before: &str, make: impl FnOnce() -> Result<T>) -> Result<T> {
    made_unless_over(call, make)?.ok_or_else(|| {
        let stopped = Error::new(TOKENTRIE_ERROR_CANCELLED, format!("stopped on request before {before}"));
        in_time(stopped, call, before)
    })
}

/// An error, which says of a call that its time has ended.
pub(super) fn in_time(error: Error, call: &Call, before: &str) -> Error {
    match call.ended() {
        Some(Ended::TimedOut(timeout)) if error.status == TOKENTRIE_ERROR_CANCELLED => {
            Error { message: format!("the timeout of {timeout} s was over before {before}"), ..error }
        }
        _ => error,
    }
}

/// Returns whether nobody waits for a call any more; asked between two forward passes.
pub(super) fn gives_up(call: &Call) -> bool {
    call.ended().is_some() || is_ending()
}

#[cold]
pub(super) fn refused(what: &str, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Busy { other, .. } => {
            Error::busy(format!("{what}: the session is busy ({other} runs): wait for its end, or cancel it and wait"))
        }
        Refusal::Forked => Error::busy(format!(
            "{what}: this process was forked while another thread used the session: that thread is not here to finish; \
             open a session in this process, or fork when nobody uses one"
        )),
        Refusal::Closed => Error::new(TOKENTRIE_ERROR_HANDLE, "the session was closed before"),
    }
}
