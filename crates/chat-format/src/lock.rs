//! Locks of caches. Their entries are complete values, so a panic cannot leave one half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the lock. Entries that a thread stored before it panicked stay valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
