//! A generation or a chat on a thread of the library: what it says is kept until `next` asks.

use super::Session;
use super::turn::Sink;
use crate::error::{Error, Result, panicked};
use crate::status::*;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokentrie::call::Turn;
use trie_core::TokenId;
use trie_core::work::leave;

/// Event that `next` returns.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Token(TokenId, String),
    /// The generation is over; with what went wrong.
    Done(Option<Error>),
}

/// Tokens of a generation that was started, until they are asked for.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    /// A generation was started, and its end was not taken yet.
    open: bool,
}

impl Events {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Event) {
        self.queue().events.push_back(event);
        self.more.notify_all();
    }
}

impl Session {
    /// Goes on with a turn on a thread of its own; [`Session::next`] takes what it says.
    pub(super) fn on_thread(
        self: &Arc<Self>,
        turn: Turn,
        run: impl FnOnce(&Self, &Turn, Sink<'_>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        *self.events.queue() = Queue { events: VecDeque::new(), open: true };
        let session = Arc::clone(self);
        let work = move || {
            let told = |token, text: &str| session.events.push(Event::Token(token, text.to_owned()));
            let result = catch_unwind(AssertUnwindSafe(|| run(&session, &turn, &mut { told })));
            let done = Event::Done(result.unwrap_or_else(|panic| Err(panicked(&*panic))).err());
            // Under one lock: who hears of the end finds the session free, and what begins then does not get this end.
            let mut queue = session.events.queue();
            drop(turn);
            queue.events.push_back(done);
            drop(queue);
            session.events.more.notify_all();
        };
        let spawned = std::thread::Builder::new().name("tokentrie".to_owned()).spawn(work);
        match spawned {
            Ok(thread) => leave(thread),
            Err(error) => {
                *self.events.queue() = Queue::default();
                return Err(Error::new(TOKENTRIE_ERROR_MODEL, format!("no thread could be started: {error}")));
            }
        }
        Ok(())
    }

    /// Gives the next event to `take`, which may leave it; waits for one as long as `timeout`, or for ever. `None`
    /// where none came.
    pub(crate) fn next<R>(
        &self,
        timeout: Option<Duration>,
        mut take: impl FnMut(&Event) -> Result<R>,
    ) -> Result<Option<R>> {
        let began = Instant::now();
        let mut queue = self.events.queue();
        loop {
            if let Some(event) = queue.events.front() {
                let taken = take(event)?;
                if matches!(event, Event::Done(_)) {
                    queue.open = false;
                }
                queue.events.pop_front();
                return Ok(Some(taken));
            }
            if !queue.open {
                return Err(Error::new(
                    TOKENTRIE_ERROR_NOT_ALLOWED,
                    "next: no generation was started, or its end was taken",
                ));
            }
            queue = match timeout {
                None => self.events.more.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let Some(left) = timeout.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else {
                        return Ok(None);
                    };
                    self.events.more.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Returns whether a generation was started whose end nobody has taken.
    pub(crate) fn is_open(&self) -> bool {
        self.events.queue().open
    }
}
