//! Calls of every kind, run in one way: a call that is ready, what decodes for it, and the hooks of its host.
//!
//! | call | is made ready by | gives |
//! | --- | --- | --- |
//! | generate | [`Generate::ready`] | a [`GenerateResult`] for each that was asked for |
//! | choose | [`Choose::ready`] | a [`ChoiceResult`] |
//! | chat | [`ChatRequest::ready`] | a [`ChatReply`] for each that was asked for |
//! | decide | [`ReadyDecision::new`] | [`Answers`] for each state |
//!
//! [`Generate::ready`]: super::Generate::ready
//! [`GenerateResult`]: super::GenerateResult
//! [`Choose::ready`]: super::Choose::ready
//! [`ChoiceResult`]: super::ChoiceResult
//! [`ChatRequest::ready`]: crate::chat::ChatRequest::ready
//! [`ChatReply`]: crate::chat::ChatReply
//! [`ReadyDecision::new`]: crate::decide::ReadyDecision::new
//! [`Answers`]: crate::decide::Answers

use super::ending::Ended;
use crate::engine::Runtime;
use chat_format::Event;
use llama_sampler::{Finish, Watch};

/// Callbacks of a host while a call runs: they end the call ([`Watch::stop`]), and hear of tokens ([`Watch::step`]) and
/// of events of a chat. `()` does nothing.
pub trait Hooks: Watch {
    /// Returns what ended the call, where something did.
    fn interruption(&self) -> Option<Ended> {
        None
    }

    /// Returns whether it still hears of events.
    fn listens(&self) -> bool {
        true
    }

    /// Hears of events as soon as they are certain; there is at least one.
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

/// A call that only needs what decodes.
pub trait ReadyCall {
    /// Result of a call that ran to its end.
    type Outcome;
    /// Why there is none.
    type Error;

    /// Runs it; [`Runtime::run`] is how to say that.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    fn run_on(self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<Self::Outcome, Self::Error>;
}

impl Runtime<'_> {
    /// Runs a call of any kind. Generations and replies that are stopped are no error: they give what had come, and
    /// [`Finish`] says so.
    ///
    /// # Errors
    /// What the model or the engine refuses; that a choice or a decision was stopped.
    pub fn run<C: ReadyCall>(&mut self, call: C, hooks: &mut dyn Hooks) -> Result<C::Outcome, C::Error> {
        call.run_on(self, hooks)
    }
}

/// Returns why an output ended: one that was stopped because its time was over says that.
pub(crate) fn finish_of(finish: Finish, hooks: &(impl Hooks + ?Sized)) -> Finish {
    match (finish, hooks.interruption()) {
        (Finish::Cancelled, Some(Ended::TimedOut(_))) => Finish::TimedOut,
        (finish, _) => finish,
    }
}
