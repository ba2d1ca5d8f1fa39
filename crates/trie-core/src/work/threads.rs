//! Work on other threads: beside this one, apart from it, left behind.

use super::{Over, Work, look};
use std::mem::forget;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle, yield_now};
use std::time::Duration;

/// How often whoever waits for other threads looks around.
const PAUSE: Duration = Duration::from_millis(10);

/// Does what `helpers` are to do, on other threads, while this one looks whether its work is over: then they are told.
/// `helpers` gets what each of them is to [run](Work::run) in, and whom to tell that it has ended.
pub(crate) fn beside(helpers: impl FnOnce(&Work, &Sender<()>)) {
    let (work, left) = Work::of_helpers();
    let (end, ended) = channel();
    helpers(&work, &end);
    drop(end);
    // It ends when the last helper has.
    while !matches!(ended.recv_timeout(PAUSE), Err(RecvTimeoutError::Disconnected)) {
        if look(0, 0).is_err() {
            left.store(true, Ordering::Relaxed);
        }
    }
}

/// Lets a thread go on for which nobody waits. It is joined once it has ended, by the next call of this function: a
/// thread that is detached while it ends may be freed by the C library while that still reads it.
pub fn leave(thread: JoinHandle<()>) {
    const TRIES: usize = 10_000;
    static LEFT: Mutex<Vec<(u32, JoinHandle<()>)>> = Mutex::new(Vec::new());
    let process = std::process::id();
    let lock = || match LEFT.try_lock() {
        Ok(left) => Some(left),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => {
            yield_now();
            None
        }
    };
    // It is held for microseconds, or for ever where a process was forked under it: then the thread is let go of.
    let Some(mut left) = (0..TRIES).find_map(|_| lock()) else { return forget(thread) };
    left.push((process, thread));
    let ended: Vec<_> = left.extract_if(.., |(of, thread)| *of != process || thread.is_finished()).collect();
    drop(left);
    for (of, thread) in ended {
        // A process that was forked has no threads of its parent.
        if of == process { _ = thread.join() } else { forget(thread) }
    }
}

/// Does work that cannot be asked, such as that of another library, on a thread of its own. Where the work of this
/// thread is over first, it is told so, and left behind: what it makes is dropped. Its thread has a large stack.
///
/// # Errors
/// The budget of this thread is spent. Where the system gives no thread, the work is done on this one.
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Over> {
    /// Memory is used only as far as it is needed.
    const STACK: usize = 256 << 20;
    look(0, 0)?;
    let (inner, left) = Work::of_helpers();
    let (give, taken) = channel();
    // A thread that cannot be made does not give back what it was to run.
    let work = Arc::new(Mutex::new(Some(work)));
    let there = Arc::clone(&work);
    let take = |from: &Mutex<Option<_>>| from.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = Builder::new().stack_size(STACK).spawn(move || {
        let Some(work) = take(&there) else { return };
        // Nobody may wait for it any more.
        let _ = give.send(inner.run(work));
    });
    let Ok(thread) = thread else {
        // The system gives none: it is done here, to its end.
        return take(&work).map(|work| work()).ok_or(Over::Stopped);
    };
    loop {
        match taken.recv_timeout(PAUSE) {
            Ok(made) => {
                // It has nothing more to do.
                let _ = thread.join();
                return Ok(made);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(over) = look(0, 0) {
                    left.store(true, Ordering::Relaxed);
                    leave(thread);
                    return Err(over);
                }
            }
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(Over::Stopped),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Limits, spend};
    use std::time::Instant;

    #[test]
    fn what_goes_on_for_ever_is_left_behind() {
        let waits = || std::thread::park_timeout(Duration::from_secs(60));
        let asked = Instant::now();
        let work = Work::new(Limits::NONE.seconds(0.05));
        assert_eq!(work.run(|| apart(waits)), Err(Over::Time(Duration::from_millis(50))));
        assert!(asked.elapsed() < Duration::from_secs(30));
        assert_eq!(apart(|| 7), Ok(7));
        // It hears of it where it asks, if it is not left behind first: it ends in any case.
        let asked = Instant::now();
        let _ = Work::new(Limits::NONE.seconds(0.05)).run(|| apart(|| while spend(1).is_ok() {}));
        assert!(asked.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn threads_that_end_while_they_are_left_do_no_harm() {
        for _ in 0..300 {
            let thread = Builder::new().stack_size(256 << 20).spawn(|| {});
            leave(thread.unwrap());
            assert_eq!(apart(|| 7), Ok(7));
        }
    }
}
