//! Calls of every kind, run in one way: a prepared call, a decoder, and the hooks of the host.
//!
//! | call | is prepared by | gives |
//! | --- | --- | --- |
//! | generate | [`Generate::ready`] | a [`GenerateResult`] for each that was asked for |
//! | choose | [`Choose::ready`] | a [`ChoiceResult`] |
//! | find a probability | [`ProbabilitySettings::ready`] | a [`ProbabilityResult`] |
//! | chat | [`ChatRequest::ready`] | a [`ChatReply`] for each that was asked for |
//! | decide | [`ReadyDecision::new`] | [`Answers`] for each state |
//!
//! [`Generate::ready`]: super::Generate::ready
//! [`GenerateResult`]: super::GenerateResult
//! [`Choose::ready`]: super::Choose::ready
//! [`ChoiceResult`]: super::ChoiceResult
//! [`ProbabilitySettings::ready`]: super::ProbabilitySettings::ready
//! [`ProbabilityResult`]: super::ProbabilityResult
//! [`ChatRequest::ready`]: crate::chat::ChatRequest::ready
//! [`ChatReply`]: crate::chat::ChatReply
//! [`ReadyDecision::new`]: crate::decide::ReadyDecision::new
//! [`Answers`]: crate::decide::Answers

use super::ending::Ended;
use crate::engine::Runtime;
use chat_format::Event;
use llama_sampler::{Finish, Watch};

/// Callbacks of a host while a call runs: they can end the call ([`Watch::stop`]), and are told of tokens
/// ([`Watch::step`]) and of events of a chat. `()` does nothing.
pub trait Hooks: Watch {
    /// Returns the reason why the call was ended early, if it was.
    fn interruption(&self) -> Option<Ended> {
        None
    }

    /// Returns whether events are still reported to it.
    fn listens(&self) -> bool {
        true
    }

    /// Receives events as soon as they are certain, at least one at a time.
    fn events(&mut self, events: Vec<Event>) {
        let _ = events;
    }
}

impl Hooks for () {}

impl<H: Hooks + ?Sized> Hooks for &mut H {
    fn interruption(&self) -> Option<Ended> {
        (**self).interruption()
    }

    fn listens(&self) -> bool {
        (**self).listens()
    }

    fn events(&mut self, events: Vec<Event>) {
        (**self).events(events);
    }
}

/// A call that is ready to run: it only needs a decoder.
pub trait ReadyCall {
    /// Result of a call that ran to its end.
    type Outcome;
    /// Error of a call that has no result.
    type Error;

    /// Runs the call. Callers use [`Runtime::run`].
    ///
    /// # Errors
    /// As [`Runtime::run`].
    fn run_on(self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<Self::Outcome, Self::Error>;
}

impl Runtime<'_> {
    /// Runs a call of any kind. A generation or a reply that is stopped is not an error: it returns the output so far,
    /// and [`Finish`] gives the reason.
    ///
    /// # Errors
    /// Errors of the model or the engine; a choice or a decision that was stopped.
    pub fn run<C: ReadyCall>(&mut self, call: C, hooks: &mut dyn Hooks) -> Result<C::Outcome, C::Error> {
        call.run_on(self, hooks)
    }
}

/// Returns why an output ended: a stop because of the time limit is reported as such.
pub(crate) fn finish_of(finish: Finish, hooks: &(impl Hooks + ?Sized)) -> Finish {
    match (finish, hooks.interruption()) {
        (Finish::Cancelled, Some(Ended::TimedOut(_))) => Finish::TimedOut,
        (finish, _) => finish,
    }
}
