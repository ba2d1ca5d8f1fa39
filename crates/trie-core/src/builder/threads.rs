//! Work on several threads.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::thread::available_parallelism;

/// Threads that pay off for so many rows. One takes some 50 µs to start, and more than a few wait for the memory.
pub(super) fn worthwhile(rows: usize) -> usize {
    const ROWS_A_THREAD: usize = 1 << 14;
    const MOST: usize = 4;
    let useful = (rows / ROWS_A_THREAD).min(MOST);
    if useful < 2 { 1 } else { available_parallelism().map_or(1, |cores| cores.get().min(useful)) }
}

/// Runs `work` where so many threads help it, or where there are none to be had, on this one; it is told how many there
/// are.
///
/// The threads live as long as the work: those of a pool of the whole process would be missing in a process that forks.
pub(super) fn on_threads<T: Send>(threads: usize, work: impl FnOnce(usize) -> T + Send) -> T {
    let pool = (threads > 1).then(|| ThreadPoolBuilder::new().num_threads(threads).build());
    match pool {
        Some(Ok(pool)) => pool.install(|| work(threads)),
        _ => work(1),
    }
}

/// Runs `work` for each part, in any order, and gives what it returned in the order of the parts.
pub(super) fn each<T: Send>(parts: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if parts == 1 { vec![work(0)] } else { (0..parts).into_par_iter().with_max_len(1).map(work).collect() }
}

/// Runs both, at once where there are several parts of work.
pub(super) fn both<A: Send, B: Send>(
    parts: usize,
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    if parts == 1 { (a(), b()) } else { rayon::join(a, b) }
}
