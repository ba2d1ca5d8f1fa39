//! Whether Python is being asked: what waits then for the one who asks would wait for ever.

use pyo3::PyErr;
use pyo3::exceptions::PyRuntimeError;
use std::cell::Cell;

thread_local! {
    static ASKING: Cell<usize> = const { Cell::new(0) };
}

/// Asks Python.
pub(crate) fn asking<T>(question: impl FnOnce() -> T) -> T {
    ASKING.set(ASKING.get() + 1);
    let answer = question();
    ASKING.set(ASKING.get() - 1);
    answer
}

/// Whether this thread is inside a rule of a user's.
pub(crate) fn is_asking() -> bool {
    ASKING.get() > 0
}

/// What somebody inside a rule is told who would wait for the one who asked.
pub(crate) fn waits_for_itself() -> PyErr {
    PyRuntimeError::new_err("a rule must not use the sampler, batch or model that asks it")
}
