//! Rows on several threads, where that pays.

#[cfg(not(target_family = "wasm"))]
use crate::set::threads::{self, SharedThreads};
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Bytes that keep a thread busy for much longer than waking it takes, which is some 10 to 50 µs.
const BYTES_A_THREAD: usize = 1 << 20;
/// Bytes read for one logit at a scattered place in a large matrix: a cache line.
pub(super) const LOOK: usize = 64;

/// Returns the number of parts into which to split work over so many bytes. 1 where more would not pay.
pub(super) fn worthwhile(bytes: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    match bytes / BYTES_A_THREAD {
        0 | 1 => 1,
        // Asked once: it reads files.
        useful => useful.min(*CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))),
    }
}

/// Runs `work` for each part, in any order, and returns the results in the order of the parts.
pub(super) fn map_parts<P: Send, T: Send>(parts: Vec<P>, work: impl Fn(P) -> T + Sync + Send) -> Vec<T> {
    #[cfg(not(target_family = "wasm"))]
    if parts.len() > 1 {
        static ROWS: SharedThreads = SharedThreads::new("rows");
        return threads::map_parts(ROWS.pool(), parts, work);
    }
    parts.into_iter().map(work).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_parts() {
        for parts in [0, 1, 2, 7] {
            assert_eq!(
                map_parts((0..parts).collect(), |part| part * part),
                (0..parts).map(|p| p * p).collect::<Vec<_>>()
            );
        }
        assert_eq!(worthwhile(1000), 1);
    }
}
