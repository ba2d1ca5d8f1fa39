//! Work on several threads.

use crate::set::threads::map_parts;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::thread::available_parallelism;

/// Number of threads that pay off for this many rows. A thread takes some 50 µs to start, and more than a few wait for
/// memory.
pub(super) fn worthwhile(rows: usize) -> usize {
    const ROWS_A_THREAD: usize = 1 << 14;
    const MOST: usize = 4;
    let useful = (rows / ROWS_A_THREAD).min(MOST);
    if useful < 2 { 1 } else { available_parallelism().map_or(1, |cores| cores.get().min(useful)) }
}

/// The threads of one build.
///
/// They live as long as the build, because a process that forks would lose the threads of a shared pool. The caller
/// should provide the memory and keep it for the next build; memory that these threads allocate goes back to the
/// system.
pub(super) struct Threads(Option<ThreadPool>);

impl Threads {
    /// A pool of this many threads; without a pool if one thread is enough or the system provides none.
    pub(super) fn new(threads: usize) -> Self {
        let pool = (threads > 1).then(|| ThreadPoolBuilder::new().num_threads(threads).build());
        Self(pool.and_then(Result::ok))
    }

    pub(super) fn count(&self) -> usize {
        self.0.as_ref().map_or(1, ThreadPool::current_num_threads)
    }

    /// Runs `work` for each part, in any order, and returns the results in the order of the parts.
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
