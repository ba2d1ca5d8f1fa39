//! One call at a time: what is said to the others, and what ends the one.

use super::Session;
use crate::error::{Error, Result};
use crate::status::TOKENTRIE_ERROR_HANDLE;
use ::llama_sampler::exit::is_ending;
use tokentrie::run::{Call, Refusal, Turn};

pub(super) const GENERATE: &str = "generate";
/// A generation too.
pub(super) const CHAT: &str = "chat";

impl Session {
    /// Begins a turn. What comes meanwhile is refused, not queued.
    pub(super) fn turn(&self, what: &'static str) -> Result<Turn> {
        self.turns.begin(what).map_err(|refusal| refused(what, refusal))
    }
}

/// Whether nobody waits for a call any more; asked between two forward passes.
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
