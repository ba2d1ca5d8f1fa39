//! Rows on several threads, where that pays.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, OnceLock, RwLock};
use std::thread::available_parallelism;

/// Memory that keeps a thread busy for much longer than it takes to wake it, some 10 to 50 µs.
const BYTES_A_THREAD: usize = 1 << 20;
/// A logit that is looked at somewhere in a large matrix brings a cache line.
pub(super) const LOOK: usize = 64;

/// How many parts to make of work that goes through so much memory. 1 where more would not pay.
pub(super) fn worthwhile(bytes: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    match bytes / BYTES_A_THREAD {
        0 | 1 => 1,
        // Asked once: it reads files.
        useful => useful.min(*CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))),
    }
}

/// Runs `work` for each part, in any order, and gives what it returned in the order of the parts.
pub(super) fn each<P: Send, T: Send>(parts: Vec<P>, work: impl Fn(P) -> T + Sync + Send) -> Vec<T> {
    let pool = if parts.len() > 1 { pool() } else { None };
    match pool {
        Some(pool) => pool.install(|| parts.into_par_iter().with_max_len(1).map(work).collect()),
        None => parts.into_iter().map(work).collect(),
    }
}

/// A process and its threads.
type Shared = Option<(u32, Arc<ThreadPool>)>;

/// The threads that all batches of a process share. A process that was forked has none of its parent's, so they are
/// made again there; what the parent left is not touched, because its locks may be held for ever. `None` where there
/// are none to be had at once.
fn pool() -> Option<Arc<ThreadPool>> {
    static SHARED: RwLock<Shared> = RwLock::new(None);
    let process = std::process::id();
    let ours = |shared: &Shared| shared.as_ref().filter(|(of, _)| *of == process).map(|(_, pool)| pool.clone());
    if let Some(pool) = SHARED.try_read().ok().and_then(|shared| ours(&shared)) {
        return Some(pool);
    }
    // Never waited for: whoever held it when the process was forked does not exist here.
    let mut shared = SHARED.try_write().ok()?;
    if let Some(pool) = ours(&shared) {
        return Some(pool);
    }
    let cores = available_parallelism().map_or(1, usize::from);
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(cores).build().ok()?);
    std::mem::forget(shared.replace((process, pool.clone())));
    Some(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_parts() {
        for parts in [0, 1, 2, 7] {
            assert_eq!(each((0..parts).collect(), |part| part * part), (0..parts).map(|p| p * p).collect::<Vec<_>>());
        }
        assert_eq!(worthwhile(1000), 1);
    }
}
