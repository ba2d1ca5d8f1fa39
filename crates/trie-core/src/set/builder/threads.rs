//! Work on several threads.

use crate::set::threads::map_parts;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::thread::available_parallelism;

/// Threads that pay off for so many rows. One takes some 50 µs to start, and more than a few wait for the memory.
pub(super) fn worthwhile(rows: usize) -> usize {
    const ROWS_A_THREAD: usize = 1 << 14;
    const MOST: usize = 4;
    let useful = (rows / ROWS_A_THREAD).min(MOST);
    if useful < 2 { 1 } else { available_parallelism().map_or(1, |cores| cores.get().min(useful)) }
}

/// The threads of one build.
///
/// They live as long as the build: those of a pool of the whole process would be missing in a process that forks. So
/// memory should come from the caller, who keeps it for the next build; what they take goes back to the system.
pub(super) struct Threads(Option<ThreadPool>);

impl Threads {
    /// So many threads where more than one helps, or none but this one where there are none to be had.
    pub(super) fn new(threads: usize) -> Self {
        let pool = (threads > 1).then(|| ThreadPoolBuilder::new().num_threads(threads).build());
        Self(pool.and_then(Result::ok))
    }

    pub(super) fn count(&self) -> usize {
        self.0.as_ref().map_or(1, ThreadPool::current_num_threads)
    }

    /// Runs `work` for each part, in any order, and gives what it returned in the order of the parts.
    pub(super) fn map_parts<P: Send, T: Send>(&self, parts: Vec<P>, work: impl Fn(P) -> T + Sync + Send) -> Vec<T> {
        map_parts(self.0.as_ref(), parts, work)
    }

    /// Runs both, at once where there are several threads.
    pub(super) fn run_both<A: Send, B: Send>(
        &self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        match &self.0 {
            Some(pool) => pool.join(a, b),
            None => (a(), b()),
        }
    }
}
