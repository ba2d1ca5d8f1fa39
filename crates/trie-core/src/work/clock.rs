//! Wall-clock time, for figures, and processor time of threads, for limits. A WebAssembly module has only the clock
//! that its host lends it. Without one, time stands still there: only steps and bytes limit the work. That clock also
//! serves as the processor time of its single thread.

#[cfg(not(target_family = "wasm"))]
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
#[cfg(not(target_family = "wasm"))]
pub use std::time::Instant;

/// The clock of a host that has one.
static CLOCK: OnceLock<fn() -> Duration> = OnceLock::new();

/// Lends this library a clock, which only goes forward. Used in WebAssembly alone; only the first call counts.
pub fn lend_clock(clock: fn() -> Duration) {
    let _ = CLOCK.set(clock);
}

/// A moment of the host's clock.
#[cfg(target_family = "wasm")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

#[cfg(target_family = "wasm")]
impl Instant {
    /// Returns the current time.
    pub fn now() -> Self {
        Self(CLOCK.get().map_or(Duration::ZERO, |clock| clock()))
    }

    /// So much later; `None` if no clock goes as far.
    pub fn checked_add(self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// The processor time of this thread so far. Time that other programs and threads use does not count.
#[cfg(not(target_family = "wasm"))]
pub(super) fn thread_time() -> Duration {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    // A system that does not know it has a clock on the wall.
    cpu_time::ThreadTime::try_now()
        .map_or_else(|_| BEGAN.get_or_init(Instant::now).elapsed(), |time| time.as_duration())
}

/// The time of the host's clock: there is one thread.
#[cfg(target_family = "wasm")]
pub(super) fn thread_time() -> Duration {
    Instant::now().0
}

/// The processor time of a thread, read by another thread that waits for it.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug, Clone)]
pub(super) struct ThreadClock {
    /// File with the processor time of the thread, on systems that have one.
    told: Option<PathBuf>,
    began: Instant,
    computed: Duration,
}

#[cfg(not(target_family = "wasm"))]
impl ThreadClock {
    /// Starts a clock for this thread.
    pub(super) fn begin() -> Self {
        thread_local! {
            static TOLD: Option<PathBuf> = std::fs::read_link("/proc/thread-self")
                .ok()
                .map(|thread| PathBuf::from("/proc").join(thread).join("schedstat"))
                .filter(|path| nanoseconds(path).is_some());
        }
        Self { told: TOLD.with(Clone::clone), began: Instant::now(), computed: thread_time() }
    }

    /// The processor time of the thread since then; if the system does not report it, the time that has passed.
    pub(super) fn elapsed(&self) -> Duration {
        let passed = self.began.elapsed();
        let computed = self.told.as_deref().and_then(nanoseconds);
        computed.map_or(passed, |computed| computed.saturating_sub(self.computed).min(passed))
    }
}

/// The first number of `schedstat`: nanoseconds on a processor.
#[cfg(not(target_family = "wasm"))]
fn nanoseconds(path: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
