//! Turns of calls: one call at a time uses a context and its data.

use super::ending::Cancel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};
use std::time::Duration;

/// Queue of calls that want to use one resource.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<TurnQueue>);

#[derive(Debug, Default)]
struct TurnQueue {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    now: Occupancy,
    /// Number of waiting calls. While it is 0, nobody is woken, which would be a system call.
    waiting: usize,
}

#[derive(Debug, Default)]
enum Occupancy {
    #[default]
    Free,
    Busy(User),
    Closed,
}

/// Call that has the turn.
#[derive(Debug)]
struct User {
    what: &'static str,
    /// A forked process has only one of the threads.
    process: u32,
    thread: ThreadId,
    cancel: Cancel,
}

/// Reason why a call gets no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another call is running. Waiting helps, unless that call is this thread's own.
    Busy {
        /// Name of the running call.
        other: &'static str,
        /// True if this thread itself has the turn: it would wait for ever.
        is_own: bool,
    },
    /// The process was forked while another thread had the turn: in this process no thread can end it.
    Forked,
    /// The queue was closed.
    Closed,
}

/// Exclusive use, until it is dropped. It may be moved to another thread.
#[derive(Debug)]
pub struct Turn {
    of: Turns,
    cancel: Cancel,
}

impl Turn {
    /// Returns the handle that [`Turns::cancel`] cancels while this is the turn.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl Turns {
    /// Locks the state. A poisoned lock is used nevertheless: no change behind it can be left incomplete.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a turn at once.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn begin(&self, what: &'static str) -> Result<Turn, Refusal> {
        let mut state = self.state();
        match state.now.refusal() {
            None => Ok(self.occupy(&mut state.now, what)),
            Some(refusal) => Err(refusal),
        }
    }

    /// Begins a turn once the calls before it are over; `None` if that takes longer than `at_most`.
    ///
    /// # Errors
    /// [`Refusal`] where waiting cannot help.
    pub fn wait(&self, what: &'static str, at_most: Duration) -> Result<Option<Turn>, Refusal> {
        let helps = |refusal| matches!(refusal, Refusal::Busy { is_own: false, .. });
        let waits = |state: &mut State| state.now.refusal().is_some_and(helps);
        let mut state = self.state();
        state.waiting += 1;
        let (mut state, _) =
            self.0.over.wait_timeout_while(state, at_most, waits).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        match state.now.refusal() {
            None => Ok(Some(self.occupy(&mut state.now, what))),
            Some(refusal) if helps(refusal) => Ok(None),
            Some(refusal) => Err(refusal),
        }
    }

    fn occupy(&self, now: &mut Occupancy, what: &'static str) -> Turn {
        let cancel = Cancel::default();
        let user = User { what, process: std::process::id(), thread: current().id(), cancel: cancel.clone() };
        *now = Occupancy::Busy(user);
        Turn { of: self.clone(), cancel }
    }

    /// Cancels the running call, if there is one. Later calls are not affected.
    pub fn cancel(&self) {
        if let Occupancy::Busy(user) = &self.state().now {
            user.cancel.cancel();
        }
    }

    /// Returns the name of the running call.
    pub fn running(&self) -> Option<&'static str> {
        if let Occupancy::Busy(user) = &self.state().now { Some(user.what) } else { None }
    }

    /// Closes the queue: no call gets a turn any more.
    ///
    /// # Errors
    /// [`Refusal`] while a call runs, or if the queue was closed before.
    pub fn close(&self) -> Result<(), Refusal> {
        let now = &mut self.state().now;
        match now.refusal() {
            None => *now = Occupancy::Closed,
            Some(refusal) => return Err(refusal),
        }
        Ok(())
    }
}

impl Occupancy {
    fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Free => None,
            Self::Closed => Some(Refusal::Closed),
            Self::Busy(user) if user.process != std::process::id() => Some(Refusal::Forked),
            Self::Busy(user) => Some(Refusal::Busy { other: user.what, is_own: user.thread == current().id() }),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.now = Occupancy::Free;
        if state.waiting > 0 {
            drop(state);
            self.of.0.over.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(1);

    #[test]
    fn a_cancel_reaches_what_runs_and_nothing_after_it() {
        let turns = Turns::default();
        turns.cancel();
        let turn = turns.begin("generate").unwrap();
        assert!(!turn.cancel().is_cancelled());
        assert_eq!(turns.running(), Some("generate"));
        assert_eq!(turns.begin("prefill").unwrap_err(), Refusal::Busy { other: "generate", is_own: true });
        assert!(turns.close().is_err());
        turns.cancel();
        assert!(turn.cancel().is_cancelled());
        drop(turn);
        let turn = turns.begin("prefill").unwrap();
        assert!(!turn.cancel().is_cancelled());
        drop(turn);
        turns.close().unwrap();
        assert_eq!(turns.begin("prefill").unwrap_err(), Refusal::Closed);
        assert_eq!(turns.wait("prefill", PAUSE).unwrap_err(), Refusal::Closed);
    }

    #[test]
    fn others_wait_and_a_thread_never_for_itself() {
        let turns = Turns::default();
        let turn = turns.begin("generate").unwrap();
        assert_eq!(turns.wait("choose", PAUSE).unwrap_err(), Refusal::Busy { other: "generate", is_own: true });
        let (say, heard) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let none = turns.wait("choose", PAUSE).unwrap();
                say.send(none.is_none()).unwrap();
                let turn = turns.wait("choose", Duration::from_secs(60)).unwrap();
                turn.map(|_| turns.running())
            });
            assert!(heard.recv().unwrap());
            drop(turn);
            assert_eq!(waiting.join().unwrap(), Some(Some("choose")));
        });
        assert_eq!(turns.running(), None);
    }
}
