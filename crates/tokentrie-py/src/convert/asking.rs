//! Calls into Python that must not wait: a lock held by the caller would never be released.

use pyo3::PyErr;
use pyo3::exceptions::PyRuntimeError;
use std::cell::Cell;

thread_local! {
    static ASKING: Cell<usize> = const { Cell::new(0) };
}

/// Runs a call into Python.
pub(crate) fn asking<T>(question: impl FnOnce() -> T) -> T {
    ASKING.set(ASKING.get() + 1);
    let answer = question();
    ASKING.set(ASKING.get() - 1);
    answer
}

/// Returns whether this thread is inside a user's rule.
pub(crate) fn is_asking() -> bool {
    ASKING.get() > 0
}

/// Returns the error for a call inside a rule that would wait for its own caller.
pub(crate) fn waits_for_itself() -> PyErr {
    PyRuntimeError::new_err("a rule must not use the sampler, batch or model that asks it")
}
