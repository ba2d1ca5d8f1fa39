//! Locks of what is kept: whole entries, which no panic can leave half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the lock; what a panicking thread kept is still good.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
