//! The end of the process: the C library destroys llama.cpp's tables, whoever uses them. So work is counted, what runs
//! is asked to end, and the end waits for it.
//!
//! What was registered last runs first, and tables that llama.cpp makes on the way are registered then: so we register
//! again after each kind of work that may make some.

use crate::error::{Error, Result};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Calls that use llama.cpp now.
static WORKING: AtomicUsize = AtomicUsize::new(0);
/// Whether the process ends: no work begins any more.
static ENDING: AtomicBool = AtomicBool::new(false);
/// The longest that the end waits for work that does not end.
const PATIENCE: Duration = Duration::from_secs(30);

thread_local! {
    /// How many of them are this thread's: a callback may end the process.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn atexit(at_exit: extern "C" fn()) -> c_int;
}

/// Work with llama.cpp, until it is dropped.
pub(super) struct Working(());

impl Working {
    pub(super) fn begin() -> Result<Self> {
        WORKING.fetch_add(1, Ordering::SeqCst);
        HERE.set(HERE.get() + 1);
        let working = Self(());
        if ENDING.load(Ordering::SeqCst) {
            return Err(Error::busy("the process is ending"));
        }
        Ok(working)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        HERE.set(HERE.get() - 1);
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What llama.cpp may have made tables for.
#[derive(Debug, Clone, Copy)]
pub(super) enum After {
    /// A model and a context.
    Opening,
    /// A forward pass.
    Pass,
}

/// Notes that this was done: the end of the process waits before it destroys what was made for it.
pub(super) fn wait_before_losing(after: After) {
    static DONE: [Once; 2] = [const { Once::new() }; 2];
    DONE[after as usize].call_once(|| {
        // SAFETY: a function of the C library; ours takes nothing, does not unwind, may run several times, and lives as
        // long as the library, which calls it before it is unloaded.
        let _ = unsafe { atexit(wait) };
    });
}

/// Whether what runs should end.
pub(super) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

extern "C" fn wait() {
    ENDING.store(true, Ordering::SeqCst);
    let began = Instant::now();
    let here = HERE.try_with(Cell::get).unwrap_or(0);
    while WORKING.load(Ordering::SeqCst) > here && began.elapsed() < PATIENCE {
        sleep(Duration::from_millis(1));
    }
}
