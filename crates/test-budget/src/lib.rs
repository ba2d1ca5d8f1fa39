//! Budgets of random tests: the number of cases, and the time limits that tests compare; and numbers for their draws.
//! `TOKENTRIE_TEST_BUDGET` scales all cases: 0.1 unless it is set, 1 in `./dev nightly`, more for a search over a
//! weekend. Seeds are new in every run; what fails is kept by proptest.
#![forbid(unsafe_code)]

use cpu_time::ThreadTime;
use std::time::Duration;

const VARIABLE: &str = "TOKENTRIE_TEST_BUDGET";

/// The share of the whole.
///
/// # Panics
/// Where the variable is not a positive number.
fn budget() -> f64 {
    match std::env::var(VARIABLE) {
        Err(_) => 0.1,
        Ok(text) => match text.parse() {
            Ok(share) if share > 0.0 && share < 1e6 => share,
            _ => panic!("{VARIABLE} must be a positive number, not {text:?}"),
        },
    }
}

/// Returns the number of cases to try out of `all`, at least one.
pub fn cases(all: u32) -> u32 {
    ((f64::from(all) * budget()).round() as u32).max(1)
}

/// Returns the stride over enumerated cases: 1 at full size, 9 at a tenth. Odd, so that it meets every bit of a byte.
pub fn every() -> usize {
    ((1.0 / budget()) as usize).max(1).next_multiple_of(2) - 1
}

/// The time that this thread computed for work, and what it made: a busy machine makes it no longer.
pub fn computed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = ThreadTime::now();
    let made = work();
    (begun.elapsed(), made)
}

/// Numbers that look random and follow from a seed: splitmix64.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// Returns true once in `of` times.
    pub fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn some_are_always_tried() {
        assert_eq!(super::cases(1), 1.max(super::cases(10) / 10));
        assert!(super::cases(1) >= 1 && super::every() % 2 == 1);
    }
}
