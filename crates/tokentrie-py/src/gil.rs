//! The one place that lets other Python threads run, and the one that waits for a lock.

use crate::call::Call;
use crate::errors::{Class, Error, Result};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Thread, ThreadId, current, park_timeout, scope};
use std::time::Duration;

/// Runs `work` without the GIL. `work` must not touch Python; it may come back with [`Python::attach`].
pub(crate) fn released<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(work)
}

/// Runs `work` without the GIL on a thread of its own, and lets Ctrl-C end it: then `work` is told to stop when it
/// asks.
///
/// # Errors
/// A signal's exception; what `work` gave then is dropped.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send,
) -> Result<T> {
    let (stopped, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let waiting = current();
    scope(|scope| {
        let worker = scope.spawn(|| {
            // Also where it panics.
            let _awake = Awake { done: &done, waiting };
            work(&|| stopped.load(Ordering::Relaxed))
        });
        let mut signal = Ok(());
        while signal.is_ok() && !done.load(Ordering::Acquire) {
            released(py, || park_timeout(Turns::PAUSE));
            signal = py.check_signals();
        }
        stopped.store(signal.is_err(), Ordering::Relaxed);
        let made = released(py, || worker.join()).unwrap_or_else(|panic| resume_unwind(panic));
        signal.map(|()| made).map_err(Error::from)
    })
}

/// Wakes who waits, when dropped.
struct Awake<'d> {
    done: &'d AtomicBool,
    waiting: Thread,
}

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.waiting.unpark();
    }
}

/// Locks without ever holding the GIL while waiting, so that the holder can always finish.
///
/// A call that panicked inside may have left half a change behind: the object then refuses every further call.
pub(crate) fn locked<'m, T>(py: Python<'_>, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>> {
    mutex
        .lock_py_attached(py)
        .map_err(|_| Class::Base.error("an earlier call on this object failed inside; make a new one"))
}

/// Whose turn it is to use something for long. Unlike a mutex it can be waited for with Ctrl-C, and it tells a thread
/// that would wait for itself.
#[derive(Default)]
pub(crate) struct Turns {
    user: Mutex<Option<ThreadId>>,
    over: Condvar,
}

/// Ends the turn when dropped.
pub(crate) struct Turn<'t>(&'t Turns);

impl Turns {
    /// How often a waiting thread looks for signals.
    const PAUSE: Duration = Duration::from_millis(50);

    /// Waits for the others.
    ///
    /// # Errors
    /// A signal's exception, `busy` where this thread has the turn already, or that the call was ended meanwhile.
    pub(crate) fn take(&self, py: Python<'_>, call: &Call, busy: impl FnOnce() -> Error) -> Result<Turn<'_>> {
        let me = current().id();
        if *self.user() == Some(me) {
            return Err(busy());
        }
        while !released(py, || self.try_take(me, call.left(Self::PAUSE))) {
            py.check_signals()?;
            if call.is_ended() {
                return Err(call.error("while it waited for another call"));
            }
        }
        Ok(Turn(self))
    }

    fn try_take(&self, me: ThreadId, pause: Duration) -> bool {
        let waited = self.over.wait_timeout_while(self.user(), pause, |user| user.is_some());
        let (mut user, _) = waited.unwrap_or_else(PoisonError::into_inner);
        user.is_none() && {
            *user = Some(me);
            true
        }
    }

    /// Only an identity is behind this lock, which no panic can leave half changed.
    fn user(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.user() = None;
        self.0.over.notify_one();
    }
}
