//! The end of the process: the C library destroys llama.cpp's tables even while threads use them. So work in llama.cpp
//! is counted. When the process ends, running work is asked to stop, and the end waits for it.
//!
//! The C library runs exit handlers in reverse order of registration. llama.cpp registers the handlers of its tables
//! when it creates them. So a host calls [`wait_at_exit`] after work that may have created tables, or as late as it
//! can.
//!
//! A forked process has a copy of the count, but none of the other threads. In it, only the work of the thread that
//! forked is counted.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Amount of work that may use llama.cpp now.
static WORKING: AtomicUsize = AtomicUsize::new(0);
/// True once the process is ending, when no more work may begin.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Longest wait at the end of the process for work that does not stop.
const PATIENCE: Duration = Duration::from_secs(30);

thread_local! {
    /// Count of this thread's own work. Work may call back into its host, and the host may begin other work or end the
    /// process.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn atexit(at_exit: extern "C" fn()) -> c_int;

    #[cfg(unix)]
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        in_parent: Option<extern "C" fn()>,
        in_child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// Guard of work that may use llama.cpp. Until it is dropped, the end of the process waits for it.
#[derive(Debug)]
pub struct Working(());

impl Working {
    /// Begins work; `None` if the process is ending, when nothing may begin any more.
    #[inline]
    pub fn begin() -> Option<Self> {
        count(1).then_some(Self(()))
    }
}

impl Drop for Working {
    #[inline]
    fn drop(&mut self) {
        discount(1);
    }
}

/// Runs a part of the work that may block for ever, such as taking the lock of an interpreter. Meanwhile the end of the
/// process does not wait for this thread. `None` if the process began to end: then the work must not go on.
pub fn run_paused<T>(outside: impl FnOnce() -> T) -> Option<T> {
    let here = HERE.get();
    discount(here);
    let result = outside();
    count(here).then_some(result)
}

/// Counts work, unless the process is ending.
#[inline]
fn count(times: usize) -> bool {
    WORKING.fetch_add(times, Ordering::SeqCst);
    HERE.set(HERE.get() + times);
    if times == 0 || !ENDING.load(Ordering::SeqCst) {
        return true;
    }
    discount(times);
    false
}

#[inline]
fn discount(times: usize) {
    HERE.set(HERE.get().saturating_sub(times));
    WORKING.fetch_sub(times, Ordering::SeqCst);
}

/// Returns whether the process is ending, so that work should give up.
#[inline]
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Makes a forked process wait for its own threads only. [`wait_at_exit`] does this too.
pub fn heed_forks() {
    #[cfg(unix)]
    {
        static DONE: Once = Once::new();
        DONE.call_once(|| {
            // SAFETY: a function of the C library; ours takes nothing, does not unwind, reads and writes numbers alone,
            // and the C library forgets it when it unloads the library that it is in.
            let _ = unsafe { pthread_atfork(None, None, Some(forget_other_threads)) };
        });
    }
}

/// Handler in a forked process, which has none of the other threads.
#[cfg(unix)]
extern "C" fn forget_other_threads() {
    WORKING.store(HERE.try_with(Cell::get).unwrap_or(0), Ordering::SeqCst);
}

/// Native calls that may allocate thread-local tables of llama.cpp.
#[derive(Debug, Clone, Copy)]
pub enum NativeCall {
    /// Making a model and a context.
    Opening,
    /// A forward pass of the model.
    Pass,
    /// All calls that the host ever makes: it knows that it is about to end.
    Everything,
}

/// Makes the end of the process wait for work before it destroys the tables that these calls made. Only the first call
/// for each [`NativeCall`] does something.
pub fn wait_at_exit(made: NativeCall) {
    static DONE: [Once; 3] = [const { Once::new() }; 3];
    heed_forks();
    DONE[made as usize].call_once(|| {
        // SAFETY: a function of the C library; ours takes nothing, does not unwind, may run several times, and lives as
        // long as the library it is in, which the C library calls it for before it is unloaded.
        let _ = unsafe { atexit(wait) };
    });
}

extern "C" fn wait() {
    // Registered several times, waits once: what does not end does not end later either.
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    ENDING.store(true, Ordering::SeqCst);
    let began = BEGAN.get_or_init(Instant::now);
    let here = HERE.try_with(Cell::get).unwrap_or(0);
    while WORKING.load(Ordering::SeqCst) > here && began.elapsed() < PATIENCE {
        sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_pauses_is_not_waited_for() {
        let outer = Working::begin().unwrap();
        let inner = Working::begin().unwrap();
        assert_eq!(run_paused(|| HERE.get()), Some(0));
        assert_eq!(HERE.get(), 2);
        drop((outer, inner));
        assert_eq!(HERE.get(), 0);
    }
}
