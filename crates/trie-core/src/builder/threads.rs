//! Work on several threads.

use std::iter::once;
use std::panic::resume_unwind;
use std::thread::{Builder, available_parallelism, scope};

/// Threads that pay off for so many rows. One takes some 50 µs to start, and more than a few wait for the memory.
pub(super) fn worthwhile(rows: usize) -> usize {
    const ROWS_A_THREAD: usize = 1 << 14;
    const MOST: usize = 4;
    let useful = (rows / ROWS_A_THREAD).min(MOST);
    if useful < 2 { 1 } else { available_parallelism().map_or(1, |cores| cores.get().min(useful)) }
}

/// Runs `work` for each part on a thread of its own, the first part on this one.
pub(super) fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if threads == 1 {
        return vec![work(0)];
    }
    scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..threads).map(|part| Builder::new().spawn_scoped(scope, move || work(part))).collect();
        let first = work(0);
        let rest = (1..).zip(others).map(|(part, other)| match other {
            Ok(running) => running.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // No thread to be had: the work is done all the same.
            Err(_) => work(part),
        });
        once(first).chain(rest).collect()
    })
}

/// Runs both, at once where there is more than one thread.
pub(super) fn both<A, B: Send>(threads: usize, a: impl FnOnce() -> A, b: impl Fn() -> B + Sync) -> (A, B) {
    if threads == 1 {
        return (a(), b());
    }
    scope(|scope| {
        let other = Builder::new().spawn_scoped(scope, &b);
        let a = a();
        let b = match other {
            Ok(running) => running.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => b(),
        };
        (a, b)
    })
}
