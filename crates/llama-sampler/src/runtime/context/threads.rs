//! Thread count for llama.cpp. Its own default is 4 whatever the machine, which on 2 cores is 150 times slower than 2:
//! its threads wait for each other in busy loops.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, RwLock};
use std::thread::{Builder, available_parallelism};

/// The physical cores that this process may use: affinity mask and cgroup quota count, hyper-threads do not.
pub fn default_threads() -> u32 {
    // The standard library reads the affinity mask and the cgroup quota, but counts hyper-threads.
    let available = available_parallelism().map_or(1, usize::from);
    let physical = cores_of_affinity().unwrap_or_else(num_cpus::get_physical);
    available.min(physical).max(1) as u32
}

/// Returns whether so many threads would have to share a core with other running work; `false` if the system does not
/// tell.
pub(super) fn is_crowded(threads: u32) -> bool {
    /// Processors of the machine: what runs is counted on all of them.
    static ONLINE: OnceLock<Option<usize>> = OnceLock::new();
    let read = |path| std::fs::read_to_string(path).ok();
    let online = *ONLINE.get_or_init(|| Some(parse_list(&read("/sys/devices/system/cpu/online")?)?.len()));
    let running = || running(&read("/proc/loadavg")?);
    online.zip(running()).is_some_and(|(online, running)| running - 1 + threads as usize > online)
}

/// Reads the number of running and waiting threads, this one included, from a text such as `0.20 0.18 0.12 2/80 11206`.
fn running(load: &str) -> Option<usize> {
    let (running, _) = load.split_whitespace().nth(3)?.split_once('/')?;
    running.parse().ok().filter(|&running| running > 0)
}

/// As many of these threads as the system gives, this one included. llama.cpp starts the others for each pass and
/// aborts where it gets none, so they are started here once, all at a time.
pub(super) fn startable(threads: u32) -> u32 {
    startable_with(threads, |wait| Builder::new().spawn(wait).is_ok())
}

fn startable_with(threads: u32, mut start: impl FnMut(Box<dyn FnOnce() + Send>) -> bool) -> u32 {
    // They wait until the last one is there.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    let mut started = 1;
    while started < threads {
        let gate = Arc::clone(&gate);
        if !start(Box::new(move || drop(gate.read()))) {
            break;
        }
        started += 1;
    }
    drop(closed);
    started
}

/// Cores behind the affinity mask of this process, from Linux's process and topology files; `None` elsewhere.
fn cores_of_affinity() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let cores: Option<BTreeSet<String>> = parse_list(list)?
        .into_iter()
        .map(|cpu| {
            std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).ok()
        })
        .collect();
    cores.map(|cores| cores.len())
}

/// The numbers in a list such as `0-3,8`.
fn parse_list(list: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in list.trim().split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        numbers.extend(from.parse::<usize>().ok()?..=to.parse().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{default_threads, is_crowded, parse_list, running, startable, startable_with};

    #[test]
    fn lists_of_processors() {
        assert_eq!(parse_list("\t0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("5"), Some(vec![5]));
        assert_eq!(parse_list("x"), None);
    }

    #[test]
    fn what_runs() {
        assert_eq!(running("0.20 0.18 0.12 2/80 11206\n"), Some(2));
        for odd in ["", "0.20 0.18", "0.20 0.18 0.12 0/80 1", "a b c d/e"] {
            assert_eq!(running(odd), None);
        }
        // No machine has so many cores.
        let says =
            ["/proc/loadavg", "/sys/devices/system/cpu/online"].iter().all(|path| std::fs::exists(path).unwrap());
        assert_eq!(is_crowded(1 << 30), says);
    }

    #[test]
    fn at_least_one_and_no_more_than_available() {
        let available = std::thread::available_parallelism().unwrap().get() as u32;
        assert!((1..=available).contains(&default_threads()));
    }

    #[test]
    fn fewer_threads_where_the_system_gives_no_more() {
        assert_eq!(startable(1), 1);
        assert_eq!(startable(3), 3);
        let mut left = 2;
        let limited = startable_with(8, |wait| {
            left -= 1;
            left >= 0 && std::thread::Builder::new().spawn(wait).is_ok()
        });
        assert_eq!(limited, 3);
    }
}
