//! Work on other threads, together with this thread or instead of it.

use super::clock::{ThreadClock, thread_time};
use super::{LimitExceeded, Work, look};
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::{Builder, JoinHandle, ThreadId, current, yield_now};
use std::time::Duration;

/// Polling interval of a thread that waits for others.
const PAUSE: Duration = Duration::from_millis(10);
/// Time that a thread stays idle before it ends, and number of idle threads.
const REST: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 1000 });
const MOST_IDLE: usize = 4;
/// Size of a thread's stack. Memory is used only as needed, but a process may have few addresses.
const STACK: usize = 64 << 20;

/// Runs `helpers` on other threads, while this thread checks whether its own work is over and then tells them to stop.
/// `helpers` gets the budget that each helper [runs](Work::run) in, and the channel that reports its end.
pub(crate) fn run_helpers(helpers: impl FnOnce(&Work, &Sender<()>)) {
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

/// Lets a thread go on without a thread that waits for it. The next call of this function joins it once it has ended:
/// the C library may free a detached thread that is just ending while that thread still reads its memory.
pub fn leave(thread: JoinHandle<()>) {
    static LEFT: Mutex<Vec<(u32, JoinHandle<()>)>> = Mutex::new(Vec::new());
    let process = std::process::id();
    let Some(mut left) = lock_briefly(&LEFT) else { return forget(thread) };
    left.push((process, thread));
    let ended: Vec<_> = left.extract_if(.., |(of, thread)| *of != process || thread.is_finished()).collect();
    drop(left);
    for (of, thread) in ended {
        // A process that was forked has no threads of its parent.
        if of == process { _ = thread.join() } else { forget(thread) }
    }
}

/// Locks a mutex that is held for microseconds, or for ever if a process was forked meanwhile: then returns `None`.
fn lock_briefly<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    const TRIES: usize = 10_000;
    let lock = || match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => {
            yield_now();
            None
        }
    };
    (0..TRIES).find_map(|_| lock())
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that waits for more work, because starting a thread with its memory takes longer than small pieces of
/// work.
struct Idle {
    process: u32,
    thread: ThreadId,
    give: Sender<Job>,
}

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// Runs a job on another thread; returns it if the system provides no thread.
fn run_elsewhere(mut job: Job) -> Result<(), Job> {
    let process = std::process::id();
    while let Some(idle) = lock_briefly(&IDLE).and_then(|mut idle| idle.pop()) {
        if idle.process != process {
            // It was not forked with this process.
            forget(idle);
            continue;
        }
        match idle.give.send(job) {
            Ok(()) => return Ok(()),
            Err(SendError(back)) => job = back,
        }
    }
    let (give, jobs) = channel();
    let own = give.clone();
    match Builder::new().stack_size(STACK).spawn(move || work_on(&own, &jobs)) {
        Ok(thread) => {
            leave(thread);
            give.send(job).map_err(|SendError(back)| back)
        }
        Err(_) => Err(job),
    }
}

/// Loop of a worker thread: runs its first job, and then those that follow soon.
fn work_on(give: &Sender<Job>, jobs: &Receiver<Job>) {
    let mut next = jobs.recv().ok();
    while let Some(job) = next {
        job();
        next = wait_for_job(give, jobs);
    }
}

/// The next job that arrives while this thread is idle, if it may be idle.
fn wait_for_job(give: &Sender<Job>, jobs: &Receiver<Job>) -> Option<Job> {
    let thread = current().id();
    let idle = Idle { process: std::process::id(), thread, give: give.clone() };
    match lock_briefly(&IDLE) {
        Some(mut others) if others.len() < MOST_IDLE => others.push(idle),
        _ => return None,
    }
    if let Ok(job) = jobs.recv_timeout(REST) {
        return Some(job);
    }
    let mut others = lock_briefly(&IDLE)?;
    let before = others.len();
    others.retain(|idle| idle.thread != thread);
    let is_taken = others.len() == before;
    drop(others);
    // Whoever has taken it from there is about to send.
    is_taken.then(|| jobs.recv().ok())?
}

/// Does work that cannot be cancelled, such as that of another library, on a separate thread. If the work of this
/// thread ends first, the separate thread is told to stop and is abandoned: its result is dropped. The separate thread
/// has a large stack and stays idle for a moment to take more work.
///
/// # Errors
/// The budget of this thread is spent. If the system provides no thread, the work is done on this one.
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LimitExceeded> {
    look(0, 0)?;
    let (inner, left) = Work::of_watched();
    let ((give, taken), (tell, told)) = (channel(), channel());
    let job = move || {
        let begun = thread_time();
        // Nobody may wait for it any more.
        let _ = tell.send(ThreadClock::begin());
        let made = catch_unwind(AssertUnwindSafe(|| inner.run(work)));
        let _ = give.send((made, thread_time().saturating_sub(begun)));
    };
    // Where there is no thread it is done here, to its end.
    let mut is_here = false;
    if let Err(job) = run_elsewhere(Box::new(job)) {
        is_here = true;
        job();
    }
    let (mut clock, mut so_far) = (None, Duration::ZERO);
    // It may never ask, so its time is looked at from here.
    let mut take = |time: Duration| {
        if let Some(work) = Work::current().filter(|_| !is_here) {
            work.take(time.saturating_sub(so_far));
        }
        so_far = so_far.max(time);
    };
    loop {
        match taken.recv_timeout(PAUSE) {
            Ok((made, time)) => {
                take(time);
                return made.map_or_else(|panic| resume_unwind(panic), Ok);
            }
            Err(RecvTimeoutError::Timeout) => {
                clock = clock.or_else(|| told.try_recv().ok());
                take(clock.as_ref().map_or(Duration::ZERO, ThreadClock::elapsed));
                if let Err(over) = look(0, 0) {
                    left.store(true, Ordering::Relaxed);
                    return Err(over);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(LimitExceeded::Stopped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Limits, spend};
    use std::collections::HashSet;
    use std::sync::atomic::AtomicBool;
    use std::thread::{sleep, spawn};
    use std::time::Instant;

    #[test]
    fn what_goes_on_for_ever_is_left_behind() {
        static IS_OVER: AtomicBool = AtomicBool::new(false);
        let computes = || {
            while !IS_OVER.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let asked = Instant::now();
        let work = Work::new(Limits::NONE.seconds(0.05));
        assert_eq!(work.run(|| apart(computes)), Err(LimitExceeded::Time(Duration::from_millis(50))));
        IS_OVER.store(true, Ordering::Relaxed);
        assert!(asked.elapsed() < Duration::from_secs(30));
        assert_eq!(apart(|| 7), Ok(7));
        // It hears of it where it asks, if it is not left behind first: it ends in any case.
        let asked = Instant::now();
        let _ = Work::new(Limits::NONE.seconds(0.05)).run(|| apart(|| while spend(1).is_ok() {}));
        assert!(asked.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn time_of_another_thread_is_taken_once() {
        let compute = |time: Duration| {
            let begun = thread_time();
            while thread_time().saturating_sub(begun) < time && spend(1).is_ok() {}
        };
        let some = Duration::from_millis(30);
        let work = Work::new(Limits::NONE.seconds(0.1));
        // Also where it asks, and where it waits.
        assert_eq!(work.run(|| apart(move || compute(some))), Ok(()));
        assert_eq!(work.run(|| apart(move || compute(some))), Ok(()));
        assert_eq!(work.run(|| apart(|| sleep(Duration::from_millis(200)))), Ok(()));
        assert_eq!(work.run(|| look(0, 0)), Ok(()));
        assert_eq!(work.run(|| apart(move || compute(4 * some))), Err(LimitExceeded::Time(Duration::from_millis(100))));
    }

    #[test]
    fn a_thread_that_rests_takes_the_next_work() {
        let threads: HashSet<_> = (0..200).map(|_| apart(|| current().id()).unwrap()).collect();
        assert!(threads.len() < 200, "{} threads for 200 pieces", threads.len());
    }

    #[test]
    fn no_work_is_lost_between_a_thread_that_goes_and_one_that_comes() {
        let callers: Vec<_> = (0..8_u64)
            .map(|caller| {
                spawn(move || {
                    for turn in 0..100 {
                        assert_eq!(apart(move || caller * turn), Ok(caller * turn));
                        sleep(Duration::from_micros(900 + 30 * caller));
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        // A panic comes out where it was asked for, and its thread goes on.
        assert!(catch_unwind(|| apart(|| panic!("as it should"))).is_err());
        assert_eq!(apart(|| 7), Ok(7));
    }

    #[test]
    fn threads_that_end_while_they_are_left_do_no_harm() {
        for _ in 0..300 {
            let thread = Builder::new().stack_size(STACK).spawn(|| {});
            leave(thread.unwrap());
            assert_eq!(apart(|| 7), Ok(7));
        }
    }
}
