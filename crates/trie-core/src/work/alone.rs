//! Single-threaded replacement of `threads.rs`: everything is done on this thread, within its limits.

use super::{LimitExceeded, look};

/// Does work that cannot be cancelled. There is only this thread, so the work is done to its end.
///
/// # Errors
/// The budget of this thread is spent before, or after.
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LimitExceeded> {
    look(0, 0)?;
    let made = work();
    look(0, 0).map(|()| made)
}
