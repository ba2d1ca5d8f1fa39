//! One call at a time: what is said to the others, and what ends the one.

use super::Session;
use crate::error::{Error, Result};
use crate::status::{TOKENTRIE_ERROR_CANCELLED, TOKENTRIE_ERROR_HANDLE};
use ::llama_callbacks::exit::is_ending;
use ::llama_sampler::{Step, Watch};
use tokentrie::call::{Call, Ended, Hooks, Refusal, Turn};
use tokentrie::chat::{Event, event_json};
use trie_core::TokenId;

pub(super) const GENERATE: &str = "generate";
/// Operation name of chats, for errors; a generation too.
pub(super) const CHAT: &str = "chat";

impl Session {
    /// Begins a turn. What comes meanwhile is refused, not queued.
    pub(super) fn turn(&self, what: &'static str) -> Result<Turn> {
        self.turns.begin(what).map_err(|refusal| refused(what, refusal))
    }
}

/// Hears of the tokens of a generation, and of the events of a chat.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(TokenId, &str);

/// A call while it runs: what ends it, and who hears of it.
pub(super) struct Running<'a> {
    call: &'a Call,
    sink: Option<Sink<'a>>,
}

impl<'a> Running<'a> {
    pub(super) fn new(call: &'a Call) -> Self {
        Self { call, sink: None }
    }

    pub(super) fn telling(call: &'a Call, sink: Sink<'a>) -> Self {
        Self { call, sink: Some(sink) }
    }
}

impl Watch for Running<'_> {
    fn stop(&mut self) -> bool {
        gives_up(self.call)
    }

    fn priority(&self) -> i32 {
        self.call.priority()
    }

    fn wants_steps(&self) -> bool {
        self.sink.is_some()
    }

    fn wants_shares(&self) -> bool {
        false
    }

    fn step(&mut self, step: &Step) {
        // What only ends the output is none of its tokens.
        if let Some(sink) = self.sink.as_mut().filter(|_| step.kept) {
            sink(step.token, &step.text);
        }
    }
}

impl Hooks for Running<'_> {
    fn interruption(&self) -> Option<Ended> {
        self.call.ended()
    }

    fn events(&mut self, events: Vec<Event>) {
        if let Some(sink) = &mut self.sink {
            for event in &events {
                sink(TokenId::default(), &event_json(event));
            }
        }
    }
}

/// Makes what a call begins with; nothing where the call was over first.
pub(super) fn made_unless_over<T>(call: &Call, make: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    match call.run_work(make) {
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
