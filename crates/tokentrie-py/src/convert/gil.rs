//! The one place that lets other Python threads run, and the one that waits for a lock.

use crate::call::ended;
use crate::convert::asking::{asking, is_asking, waits_for_itself};
use crate::errors::{Class, Error, Result};
use crate::exit::{ReleasedMark, Working, attached};
use llama_callbacks::exit::is_ending;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, Thread, current, park_timeout, scope};
use std::time::{Duration, Instant};
use tokentrie::call::{Call, Refusal, Turn, Turns};
use trie_core::work::{self, Limits, Work};

/// Interval at which a waiting thread checks for signals.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs `work` without the GIL. `work` must not touch Python; it may come back with
/// [`attached`](crate::exit::attached).
pub(crate) fn released<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let (_working, _mark) = (Working::begin(), ReleasedMark::set(true));
        work()
    })
}

thread_local! {
    /// The exception of a signal, for whoever asked to raise.
    static PENDING: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// When signals were looked for last.
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns whether Python has an exception to raise on this thread, such as that of Ctrl-C: for work that polls it.
pub(crate) fn host_wants_stop() -> bool {
    if PENDING.with_borrow(Option::is_some) {
        return true;
    }
    if LOOKED.get().is_some_and(|looked| looked.elapsed() < Signals::PAUSE) {
        return false;
    }
    LOOKED.set(Some(Instant::now()));
    let is_released = ReleasedMark::is_set();
    let found = asking(|| {
        attached(|py| {
            let found = py.check_signals();
            // Others wait for the GIL, where this thread has it all the time. Where it has not, the rest of its slice
            // of a busy processor would be lost for nothing, in each short call.
            if !is_released {
                py.detach(std::thread::yield_now);
            }
            found
        })
    });
    PENDING.set(found.and_then(std::result::Result::err));
    PENDING.with_borrow(Option::is_some)
}

/// Raises what ended work of this thread.
///
/// # Errors
/// That of a signal.
pub(crate) fn raise_pending() -> Result<()> {
    PENDING.take().map_or(Ok(()), |raised| Err(raised.into()))
}

/// Runs `work` without the GIL, within limits; Ctrl-C ends it. It holds no lock that a thread with the GIL waits for.
///
/// # Errors
/// A signal's exception; what `work` gave then is dropped.
pub(crate) fn asked<T: Send>(py: Python<'_>, limits: Limits, work: impl FnOnce() -> T + Send) -> Result<T> {
    let made = released(py, || Work::asking(limits).run(work));
    raise_pending().map(|()| made)
}

/// [`asked`], which what ends a call ends, too.
///
/// # Errors
/// As there.
pub(crate) fn asked_in<T: Send>(py: Python<'_>, call: &Call, work: impl FnOnce() -> T + Send) -> Result<T> {
    let made = released(py, || call.run_work(work));
    raise_pending().map(|()| made)
}

/// Makes something for a call: what ends the call ends that, too.
///
/// # Errors
/// Those of `work`, and that the call was ended.
pub(crate) fn made_in<T>(py: Python<'_>, call: &Call, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let made = call.run_work(work);
    let interrupts =
        |error: &Error| matches!(error, Error::Python(raised) if !raised.is_instance_of::<PyException>(py));
    match made {
        Err(error) if call.ended().is_some() && !interrupts(&error) => Err(ended(call, "before there was a result")),
        made => made,
    }
}

/// Takes a step of a loop over what Python gave: it ends where the call does that it is for.
///
/// # Errors
/// A signal's exception, or that the call was ended, which [`made_in`] says.
pub(crate) fn step() -> Result<()> {
    work::spend(1).or_else(|over| raise_pending().and_then(|()| Err(Class::Base.error(over.to_string()))))
}

/// Runs `work`, which cannot be asked, without the GIL on a thread of its own. Ctrl-C ends the call; `work` is left
/// behind then.
///
/// # Errors
/// A signal's exception, or that there is no thread.
pub(crate) fn apart<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let counted = || {
        // What is left behind when the process ends is waited for: it may use llama.cpp.
        let _working = Working::begin();
        work()
    };
    asked(py, Limits::NONE, || work::apart(counted))?.map_err(|over| Class::Base.error(over.to_string()))
}

/// Runs `work`, which may take long, with the GIL; Ctrl-C ends it.
///
/// # Errors
/// As [`asked`].
pub(crate) fn asking_for<T>(work: impl FnOnce() -> T) -> Result<T> {
    let made = Work::asking(Limits::NONE).run(work);
    raise_pending().map(|()| made)
}

/// Runs `work` without the GIL on a thread of its own, and lets Ctrl-C end it: then `work` is told to stop when it
/// asks. Where the system gives no thread, `work` runs on this one and looks for Ctrl-C when it asks.
///
/// # Errors
/// A signal's exception; what `work` gave then is dropped.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send,
) -> Result<T> {
    let (stopped, done) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let told = Arc::clone(&stopped);
    let waiting = current();
    // A thread that cannot be made does not give back what it was to run.
    let work = Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    scope(|scope| {
        let worker = Builder::new().spawn_scoped(scope, || {
            let _working = Working::begin();
            // Also where it panics.
            let _awake = Awake { done: &done, waiting };
            // It waits for nobody, so it may go on until it asks.
            let limited = Work::stopped_by(Limits::NONE, move || told.load(Ordering::Relaxed));
            take().map(|work| limited.run(|| work(&|| stopped.load(Ordering::Relaxed) || is_ending())))
        });
        let Ok(worker) = worker else {
            let work = take();
            let watch = Mutex::new(Signals::default());
            let stop = || watch.lock().unwrap_or_else(PoisonError::into_inner).wants_stop();
            let made = released(py, || work.map(|work| work(&stop)));
            let raised = watch.into_inner().unwrap_or_else(PoisonError::into_inner).raised;
            return raised.map_or_else(|| made.ok_or_else(never_ran), |raised| Err(raised.into()));
        };
        let mut signal = Ok(());
        while signal.is_ok() && !done.load(Ordering::Acquire) {
            py.detach(|| park_timeout(PAUSE));
            signal = py.check_signals();
        }
        stopped.store(signal.is_err(), Ordering::Relaxed);
        let made = py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic));
        signal.map_err(Error::from)?;
        made.ok_or_else(never_ran)
    })
}

fn never_ran() -> Error {
    Class::Base.error("the work was never begun")
}

/// Polling of Ctrl-C by work without the GIL: no more often than the GIL may be waited for.
#[derive(Default)]
pub(crate) struct Signals {
    asked: Option<Instant>,
    /// The first exception, for the caller to raise.
    pub(crate) raised: Option<PyErr>,
}

impl Signals {
    /// Taking the GIL back can wait for other threads, so signals are looked at no more often than this.
    const PAUSE: Duration = Duration::from_millis(10);

    /// Returns whether Python has an exception to raise, such as that of Ctrl-C, or nothing is left to work for.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the path alone has too narrow a lifetime")]
    pub(crate) fn wants_stop(&mut self) -> bool {
        if self.raised.is_none() && self.asked.is_none_or(|asked| asked.elapsed() >= Self::PAUSE) {
            self.asked = Some(Instant::now());
            self.raised = attached(|py| py.check_signals()).and_then(std::result::Result::err);
        }
        self.raised.is_some() || is_ending()
    }
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
    let failed = || Class::Base.error("an earlier call on this object failed inside; make a new one");
    if is_asking() {
        // Who asks the rule may hold it, and waits.
        return mutex.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => waits_for_itself().into(),
            TryLockError::Poisoned(_) => failed(),
        });
    }
    mutex.lock_py_attached(py).map_err(|_| failed())
}

/// Value that is locked for long and without the GIL. In a process that was forked meanwhile the thread that has it is
/// missing: there it says so.
pub(crate) struct Shared<T> {
    held: Mutex<T>,
    /// The process whose thread locked it last.
    holder: AtomicU32,
}

impl<T> Shared<T> {
    pub(crate) fn new(held: T) -> Self {
        Self { held: Mutex::new(held), holder: AtomicU32::new(0) }
    }

    /// As [`locked`].
    ///
    /// # Errors
    /// As [`locked`], and where this process was forked while another thread held it.
    pub(crate) fn lock(&self, py: Python<'_>) -> Result<MutexGuard<'_, T>> {
        let here = std::process::id();
        if matches!(self.held.try_lock(), Err(TryLockError::WouldBlock)) && self.holder.load(Ordering::SeqCst) != here {
            return Err(forked(Class::Base, "cache"));
        }
        let guard = locked(py, &self.held)?;
        self.holder.store(here, Ordering::SeqCst);
        Ok(guard)
    }
}

/// Returns the error in a process forked while another thread held the lock.
fn forked(class: Class, what: &str) -> Error {
    class.error(format!(
        "this process was forked while another thread was using the {what}: that thread is not here to finish; \
         make a new one in this process, or fork when nobody uses it"
    ))
}

/// Waits for a turn without the GIL, and can be ended with Ctrl-C meanwhile.
///
/// # Errors
/// A signal's exception, `busy` where this thread has the turn already, that the call was ended meanwhile, or that the
/// turn was taken before this process was forked.
pub(crate) fn turn(
    py: Python<'_>,
    turns: &Turns,
    what: &'static str,
    call: &Call,
    busy: impl FnOnce() -> Error,
) -> Result<Turn> {
    loop {
        match released(py, || turns.wait(what, call.time_left(PAUSE))) {
            Ok(Some(turn)) => return Ok(turn),
            Ok(None) => {}
            Err(Refusal::Busy { .. }) => return Err(busy()),
            Err(Refusal::Forked) => return Err(forked(Class::Model, "model")),
            Err(Refusal::Closed) => return Err(Class::Model.error("it is closed")),
        }
        py.check_signals()?;
        if call.ended().is_some() {
            return Err(ended(call, "while it waited for another call"));
        }
    }
}
