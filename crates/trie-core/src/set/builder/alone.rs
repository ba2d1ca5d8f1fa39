//! Single-threaded replacement of `threads.rs`: everything is done on this thread.

/// Threads that pay off: this one.
pub(super) fn worthwhile(_rows: usize) -> usize {
    1
}

/// The one thread of a build.
pub(super) struct Threads;

impl Threads {
    pub(super) fn new(_threads: usize) -> Self {
        Self
    }

    pub(super) fn count(&self) -> usize {
        1
    }

    /// Runs `work` for each part.
    pub(super) fn map_parts<P, T>(&self, parts: Vec<P>, work: impl Fn(P) -> T) -> Vec<T> {
        parts.into_iter().map(work).collect()
    }

    /// Runs both closures in turn.
    pub(super) fn run_both<A, B>(&self, a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        (a(), b())
    }
}
