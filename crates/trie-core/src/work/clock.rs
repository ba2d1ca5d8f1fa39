//! What time it is, for limits and figures. A WebAssembly module has no clock but the one that its host lends it, and
//! where it lends none time stands still there: work is bounded by steps and bytes alone.

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
    /// This moment.
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
