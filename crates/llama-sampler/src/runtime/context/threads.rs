//! How many threads llama.cpp should use. Its own default is 4 whatever the machine, which on 2 cores is 150 times
//! slower than 2: its threads wait for each other in busy loops.

use std::collections::BTreeSet;
use std::thread::available_parallelism;

/// The physical cores that this process may use: affinity mask and cgroup quota count, hyper-threads do not.
pub fn default_threads() -> u32 {
    // The standard library reads the affinity mask and the cgroup quota, but counts hyper-threads.
    let available = available_parallelism().map_or(1, usize::from);
    let physical = cores_of_affinity().unwrap_or_else(num_cpus::get_physical);
    available.min(physical).max(1) as u32
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
    use super::{default_threads, parse_list};

    #[test]
    fn lists_of_processors() {
        assert_eq!(parse_list("\t0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("5"), Some(vec![5]));
        assert_eq!(parse_list("x"), None);
    }

    #[test]
    fn at_least_one_and_no_more_than_available() {
        let available = std::thread::available_parallelism().unwrap().get() as u32;
        assert!((1..=available).contains(&default_threads()));
    }
}
