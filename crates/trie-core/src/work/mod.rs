//! Budgets and cancellation of work, checked by every loop whose length depends on untrusted input.
//!
//! The limits belong to the thread that does the work, as a call stack does: loops deep inside call [`spend`], and the
//! functions in between need no parameter for it. Work inside other work keeps to the limits of both.

mod clock;
mod error_kind;
#[cfg_attr(target_family = "wasm", path = "alone.rs")]
mod threads;

pub use clock::{Instant, lend_clock};
pub use error_kind::ErrorKind;
pub use threads::apart;
#[cfg(not(target_family = "wasm"))]
pub use threads::leave;
#[cfg(not(target_family = "wasm"))]
pub(crate) use threads::run_helpers;

use clock::thread_time;
use std::cell::{Cell, RefCell};
use std::fmt;
#[cfg(not(target_family = "wasm"))]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Limits of one piece of work.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Approximate number of bytes of the results and of the memory that computing them takes.
    pub bytes: usize,
    /// Loop iterations, each of some ten to some hundred nanoseconds. The same work takes the same number on any
    /// machine.
    pub steps: u64,
    /// Seconds of processor time of all threads that take part in the work: a busy machine does not shorten them.
    pub seconds: f64,
}

impl Default for Limits {
    /// Limits for untrusted input to a server: 256 MiB, 100 million steps, 10 seconds.
    fn default() -> Self {
        Self { bytes: 256 << 20, steps: 100_000_000, seconds: 10.0 }
    }
}

impl Limits {
    /// No limits at all.
    pub const NONE: Self = Self { bytes: usize::MAX, steps: u64::MAX, seconds: f64::INFINITY };

    /// Sets the limit on bytes.
    #[must_use]
    pub const fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Sets the limit on steps.
    #[must_use]
    pub const fn steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// Sets the time limit. NaN and negative values mean zero seconds.
    #[must_use]
    pub const fn seconds(self, seconds: f64) -> Self {
        Self { seconds, ..self }
    }
}

/// Reasons why work was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// It would hold more than this.
    #[error("it takes more than {0} bytes: say less with it, or raise the limit (bytes)")]
    Bytes(usize),
    /// It would take more than this.
    #[error("it takes more than {0} steps: say less with it, or raise the limit (steps)")]
    Steps(u64),
    /// It took more processor time than this.
    #[error("it takes more than {0:?} of processor time: say less with it, or raise the limit (seconds)")]
    Time(Duration),
    /// Somebody asked for it.
    #[error("stopped on request")]
    Stopped,
}

impl LimitExceeded {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Stopped => ErrorKind::Cancelled,
            Self::Bytes(_) | Self::Steps(_) | Self::Time(_) => ErrorKind::Limit,
        }
    }
}

/// Remaining budget under some [`Limits`]. Clones share it, also across threads.
#[derive(Clone)]
pub struct Work(Arc<WorkState>);

struct WorkState {
    limits: Limits,
    /// The processor time that it may take, and what it has taken, in nanoseconds.
    time: Option<Duration>,
    taken: AtomicU64,
    /// True if this work, or the work around it, has a time limit.
    is_timed: bool,
    /// True if the waiting thread measures the time, so that it is not charged to the enclosing work again.
    is_watched: bool,
    steps: AtomicU64,
    bytes: AtomicUsize,
    stop: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// True if the host may be asked for cancellation too.
    asks: bool,
    /// The work in which it was started.
    outer: Option<Work>,
    over: OnceLock<LimitExceeded>,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("limits", &self.0.limits).field("over", &self.0.over).finish_non_exhaustive()
    }
}

/// Number of steps between two checks of the clock.
const BETWEEN: u32 = 512;

/// Time between two checks of a thread's processor time, which cost more. The processor time never exceeds the time
/// that passed.
const LOOKED: Duration = Duration::from_micros(100);

thread_local! {
    static CURRENT: RefCell<Option<Work>> = const { RefCell::new(None) };
    /// Number of steps until the next check.
    static LEFT: Cell<u32> = const { Cell::new(BETWEEN) };
    /// Processor time of this thread that is already charged to some work, or to none, and when it was read.
    static TAKEN: Cell<(Duration, Option<Instant>)> = const { Cell::new((Duration::ZERO, None)) };
    /// Locks that are held while work goes on.
    static QUIET: Cell<u32> = const { Cell::new(0) };
}

/// Cancellation check of the host, called on every thread.
static HOST: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets the cancellation check of the host, for work that [asks](Work::asking), such as for Ctrl-C. `asked` returns
/// whether the host wants to cancel, and keeps returning true until the host has noticed. It may wait for a lock of
/// the host. Only the first call counts.
pub fn ask_host(asked: fn() -> bool) {
    let _ = HOST.set(asked);
}

impl Work {
    /// A budget with all of these limits from now on, and within the budget of this thread.
    pub fn new(limits: Limits) -> Self {
        Self::with(limits, None, Self::current().is_some_and(|outer| outer.0.asks))
    }

    /// [`Work::new`] that the host may cancel, too: see [`ask_host`].
    pub fn asking(limits: Limits) -> Self {
        Self::with(limits, None, true)
    }

    /// [`Work::new`] that ends also when `stop` returns true.
    pub fn stopped_by(limits: Limits, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self::with(limits, Some(Box::new(stop)), true)
    }

    fn with(limits: Limits, stop: Option<Box<dyn Fn() -> bool + Send + Sync>>, asks: bool) -> Self {
        // More than a duration can say means unlimited.
        let time = Duration::try_from_secs_f64(limits.seconds.max(0.0)).ok();
        let outer = Self::current();
        let is_timed = time.is_some() || outer.as_ref().is_some_and(|outer| outer.0.is_timed);
        let (steps, bytes, taken) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicU64::new(0));
        let (is_watched, over) = (false, OnceLock::new());
        Self(Arc::new(WorkState { limits, time, taken, is_timed, is_watched, steps, bytes, stop, asks, outer, over }))
    }

    /// Returns the budget active on this thread.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Does some work with these limits, unless this thread already has limits.
    pub fn run_bounded<T>(limits: Limits, work: impl FnOnce() -> T) -> T {
        let outers = std::iter::successors(Self::current(), |work| work.0.outer.clone());
        if outers.into_iter().any(|outer| outer.0.limits.steps < u64::MAX) {
            return work();
        }
        Self::new(limits).run(work)
    }

    /// Does some work on this thread with this budget.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        settle_between(Self::current().as_ref(), Some(self));
        let before = CURRENT.replace(Some(self.clone()));
        LEFT.set(BETWEEN);
        let _back = Back(before);
        work()
    }

    /// Returns a budget for helper threads of this thread's work: they stop with it, and ask no host.
    #[cfg(not(target_family = "wasm"))]
    fn of_helpers() -> (Self, Arc<AtomicBool>) {
        let left = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&left);
        let made = Self::with(Limits::NONE, Some(Box::new(move || told.load(Ordering::Relaxed))), false);
        (made, left)
    }

    /// The same for one thread, whose processor time the waiting thread charges.
    #[cfg(not(target_family = "wasm"))]
    fn of_watched() -> (Self, Arc<AtomicBool>) {
        let (made, left) = Self::of_helpers();
        let shared = Arc::into_inner(made.0).map(|shared| WorkState { is_watched: true, ..shared });
        // Nobody else has it yet.
        (shared.map_or_else(|| Self::new(Limits::NONE), |shared| Self(Arc::new(shared))), left)
    }

    /// Charges the processor time of a thread to this work and the work around it.
    fn take(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut work = Some(self);
        while let Some(Self(shared)) = work {
            shared.taken.fetch_add(time, Ordering::Relaxed);
            work = shared.outer.as_ref().filter(|_| !shared.is_watched);
        }
    }

    /// Returns the limits of this budget.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    fn check_budget(&self, steps: u64, bytes: usize) -> Option<LimitExceeded> {
        let WorkState { limits, time, taken, stop, outer, over, .. } = &*self.0;
        if let Some(&over) = over.get() {
            return Some(over);
        }
        let steps = self.0.steps.fetch_add(steps, Ordering::Relaxed).saturating_add(steps);
        let bytes = self.0.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let found = if stop.as_ref().is_some_and(|stop| stop()) {
            Some(LimitExceeded::Stopped)
        } else if bytes > limits.bytes {
            Some(LimitExceeded::Bytes(limits.bytes))
        } else if steps > limits.steps {
            Some(LimitExceeded::Steps(limits.steps))
        } else {
            let taken = Duration::from_nanos(taken.load(Ordering::Relaxed));
            time.filter(|&time| taken >= time).map(LimitExceeded::Time)
        };
        found.inspect(|&found| _ = over.set(found)).or_else(|| outer.as_ref()?.check_budget(0, 0))
    }
}

/// Restores the previous budget when dropped.
struct Back(Option<Work>);

impl Drop for Back {
    fn drop(&mut self) {
        settle_between(Work::current().as_ref(), self.0.as_ref());
        CURRENT.set(self.0.take());
        LEFT.set(BETWEEN);
    }
}

/// Charges the processor time of this thread since the last charge to `work`, or to none.
fn settle(work: Option<&Work>) {
    let time = thread_time();
    let (before, _) = TAKEN.replace((time, Some(Instant::now())));
    if let Some(work) = work.filter(|work| work.0.is_timed) {
        work.take(time.saturating_sub(before));
    }
}

/// Charges the time of this thread when it changes from one work to another.
fn settle_between(before: Option<&Work>, after: Option<&Work>) {
    if [before, after].into_iter().flatten().any(|work| work.0.is_timed) {
        settle(before);
    }
}

/// Spends steps from the budget: some nanoseconds, cheap enough for every iteration of a loop.
///
/// ```
/// use trie_core::work::{Work, LimitExceeded, Limits, spend};
///
/// let turns = |most| Work::new(Limits::default().steps(10_000)).run(|| (0..most).try_for_each(|_| spend(1)));
/// assert_eq!(turns(1_000), Ok(()));
/// assert_eq!(turns(u64::MAX), Err(LimitExceeded::Steps(10_000)));
/// ```
///
/// # Errors
/// The budget of this thread is spent.
#[inline]
pub fn spend(steps: usize) -> Result<(), LimitExceeded> {
    let left = LEFT.get();
    if steps < left as usize {
        LEFT.set(left - steps as u32);
        return Ok(());
    }
    look(steps, 0)
}

/// Charges memory to the budget, for as long as the budget lasts.
///
/// # Errors
/// The budget of this thread is spent.
pub fn hold(bytes: usize) -> Result<(), LimitExceeded> {
    look(1, bytes)
}

/// Returns the limit that this thread has exceeded, if any, for loops that cannot report it themselves.
#[inline]
pub fn over() -> Option<LimitExceeded> {
    if LEFT.get() > 0 { None } else { look(0, 0).err() }
}

/// Checks at once whether the budget of this thread is spent, for loops with long iterations.
///
/// # Errors
/// The budget is spent.
#[cold]
pub fn look(steps: usize, bytes: usize) -> Result<(), LimitExceeded> {
    let taken = u64::from(BETWEEN - LEFT.get()) + steps as u64;
    let current = Work::current();
    if current.as_ref().is_some_and(|work| work.0.is_timed)
        && TAKEN.get().1.is_none_or(|looked| looked.elapsed() >= LOOKED)
    {
        settle(current.as_ref());
    }
    let spent = current.as_ref().and_then(|work| work.check_budget(taken, bytes)).or_else(|| {
        let asks = QUIET.get() == 0 && current.is_some_and(|work| work.0.asks);
        (asks && HOST.get().is_some_and(|asked| asked())).then_some(LimitExceeded::Stopped)
    });
    // Once spent, every later question comes here.
    LEFT.set(if spent.is_some() { 0 } else { BETWEEN });
    spent.map_or(Ok(()), Err)
}

/// Does work without asking the host, for callers that hold a lock that a thread of the host may wait for.
pub fn quiet<T>(work: impl FnOnce() -> T) -> T {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            QUIET.set(QUIET.get() - 1);
        }
    }
    QUIET.set(QUIET.get() + 1);
    let _loud = Loud;
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_ends_work_and_stays_spent() {
        let run = |limits: Limits| {
            Work::new(limits).run(|| {
                let found = loop {
                    if let Err(found) = spend(1).and_then(|()| hold(1)) {
                        break found;
                    }
                };
                assert_eq!((over(), spend(1)), (Some(found), Err(found)));
                found
            })
        };
        assert_eq!(run(Limits::NONE.steps(5000)), LimitExceeded::Steps(5000));
        assert_eq!(run(Limits::NONE.bytes(5000)), LimitExceeded::Bytes(5000));
        assert_eq!(run(Limits::NONE.seconds(0.001)), LimitExceeded::Time(Duration::from_millis(1)));
        assert_eq!((over(), spend(1)), (None, Ok(())));
    }

    #[test]
    fn only_what_is_computed_takes_time() {
        let compute = |time: Duration| {
            let begun = thread_time();
            while thread_time().saturating_sub(begun) < time && look(1, 0).is_ok() {}
        };
        let (some, more) = (Duration::from_millis(20), Duration::from_millis(100));
        let work = Work::new(Limits::NONE.seconds(0.05));
        // Whoever waits for a processor, or another thread, takes none.
        work.run(|| {
            compute(some);
            std::thread::sleep(more);
            assert_eq!(look(1, 0), Ok(()));
        });
        // Nor what is computed outside, or in other work.
        compute(more);
        Work::new(Limits::NONE).run(|| compute(more));
        std::thread::sleep(more);
        work.run(|| assert_eq!(look(1, 0), Ok(())));
        // Work inside it does, and so do threads that work for it, together.
        work.run(|| Work::new(Limits::NONE).run(|| compute(some)));
        assert_eq!(work.run(|| look(1, 0)), Ok(()));
        std::thread::scope(|scope| scope.spawn(|| work.run(|| compute(some))).join().unwrap());
        assert_eq!(work.run(|| look(1, 0)), Err(LimitExceeded::Time(Duration::from_millis(50))));
    }

    #[test]
    fn work_is_bounded_once() {
        let most = |limits: Limits| Work::run_bounded(limits, || Work::current().unwrap().limits().steps);
        assert_eq!(most(Limits::default().steps(5)), 5);
        let own = Work::new(Limits::default().steps(7));
        assert_eq!(own.run(|| most(Limits::default().steps(5))), 7);
        assert_eq!(Work::new(Limits::NONE).run(|| most(Limits::default().steps(5))), 5);
    }

    #[test]
    fn an_inner_budget_keeps_to_the_outer_one_too() {
        let stopped = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stopped);
        let outer = Work::stopped_by(Limits::NONE, move || asked.load(Ordering::Relaxed));
        outer.run(|| {
            let inner = Work::new(Limits::default());
            assert_eq!(inner.run(|| look(1, 0)), Ok(()));
            stopped.store(true, Ordering::Relaxed);
            assert_eq!(inner.run(|| look(1, 0)), Err(LimitExceeded::Stopped));
        });
        // Also on a thread of its own.
        assert_eq!(
            std::thread::scope(|scope| scope.spawn(|| outer.run(|| look(1, 0))).join().unwrap()),
            Err(LimitExceeded::Stopped)
        );
    }
}
