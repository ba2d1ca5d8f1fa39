//! Choice between one thread and all threads for the next forward pass.
//!
//! llama.cpp's threads wait for each other in busy loops, a hundred times in a pass. If another process has one of the
//! cores, each wait may take as long as the system lets that process run. A pass that takes one thread half a
//! millisecond then takes two threads a hundred. So passes are timed as they happen. A number of threads that is not
//! faster is avoided for a while, long enough to keep the loss small. A number that was not tried yet can cost seconds,
//! so the system is also asked beforehand whether all threads would find a core.

use std::time::{Duration, Instant};

/// Passes that one thread finishes in this time never get more threads: the possible gain is less than the loss of one
/// wait.
const TINY: Duration = Duration::from_millis(2);
/// Assumed speed of one thread before it was timed: bytes of weights that it reads in a second for one token.
const BYTES_A_SECOND: f64 = 6e9;
/// Number of tokens of a pass that cost about as much as the first one, because weights are read once for all of them.
const TOKENS_A_READ: f64 = 8.0;
/// Factor of the pause after a trial that lost time: the next trial comes after this many times the lost time.
const PATIENCE: u32 = 40;
/// Factor of lateness: a pass with all threads that takes this many times its expected time had to wait.
const LATE: f64 = 2.5;
/// Factor of tolerance: a pass with all threads that takes this many times as long as with one thread makes the next
/// passes use one thread for a while.
const HICCUP: f64 = 1.5;
/// A pass that would take one thread longer than this is not given to one thread only to time it.
const LONG: Duration = Duration::from_millis(60);
/// Lifetime of the system's answer about its cores: to ask takes sixteen microseconds.
const BELIEVED: Duration = Duration::from_millis(10);
/// Weight of the last pass in the estimate for passes of its size.
const NEWS: f64 = 0.35;
/// Sizes of passes that are told apart: up to 1, 2, 4, … tokens.
const SIZES: usize = 16;

/// Seconds that a pass of some size takes, as far as measured.
#[derive(Debug, Clone, Copy, Default)]
struct PassTime {
    one: Option<f64>,
    all: Option<f64>,
    /// When one thread is to be timed again.
    time_one: Option<Instant>,
}

/// The number of threads for each forward pass of a context.
#[derive(Debug, Clone)]
pub(super) struct ThreadChoice {
    all: u32,
    /// True if the user gave the number.
    fixed: bool,
    now: u32,
    /// Expected seconds of one thread for one token.
    expected: f64,
    seen: [PassTime; SIZES],
    /// Time until which one thread is used, because all threads were slower.
    one_until: Option<Instant>,
    /// Busy flag of the system, and the time of the answer.
    crowded: Option<(bool, Instant)>,
}

impl ThreadChoice {
    /// Uses a fixed number of threads.
    pub(super) fn with_threads(threads: u32) -> Self {
        Self { fixed: true, now: threads, ..Self::new(threads, 0) }
    }

    /// Allows up to `all` threads, for a model with `weights` bytes of weights.
    pub(super) fn new(all: u32, weights: u64) -> Self {
        let expected = weights as f64 / BYTES_A_SECOND;
        let seen = Default::default();
        let mut choice = Self { all, fixed: false, now: all, expected, seen, one_until: None, crowded: None };
        if choice.expected_of_one(1) < TINY.as_secs_f64() {
            choice.now = 1;
        }
        choice
    }

    /// Threads of the last pass; before the first, those that it would get.
    pub(super) fn threads(&self) -> u32 {
        self.now
    }

    /// The most threads that a pass may get.
    pub(super) fn max_threads(&self) -> u32 {
        self.all
    }

    /// Returns the threads for a pass over this many tokens. `crowded` tells whether that many threads would wait for a
    /// core.
    pub(super) fn choose(&mut self, tokens: usize, now: Instant, crowded: impl FnOnce(u32) -> bool) -> u32 {
        if !self.fixed {
            let one = self.all == 1 || self.takes_one(tokens, now) || self.is_crowded(now, crowded);
            self.now = if one { 1 } else { self.all };
        }
        self.now
    }

    fn is_crowded(&mut self, now: Instant, crowded: impl FnOnce(u32) -> bool) -> bool {
        let believed = self.crowded.filter(|&(_, asked)| now < asked + BELIEVED);
        let (says, _) = *self.crowded.insert(believed.unwrap_or_else(|| (crowded(self.all), now)));
        says
    }

    fn takes_one(&self, tokens: usize, now: Instant) -> bool {
        let seen = self.seen[size(tokens)];
        let one = seen.one.unwrap_or_else(|| self.expected_of_one(tokens));
        let untimed = || seen.all.is_some() && one < LONG.as_secs_f64() && seen.time_one.is_none_or(|at| at <= now);
        one < TINY.as_secs_f64() || self.one_until.is_some_and(|until| now < until) || untimed()
    }

    /// Records the time of the pass for which the last choice was made.
    pub(super) fn record_pass(&mut self, tokens: usize, took: Duration, now: Instant) {
        if self.fixed || self.all == 1 {
            return;
        }
        let expected = self.expected_of_one(tokens);
        let (took, seen) = (took.as_secs_f64(), &mut self.seen[size(tokens)]);
        if self.now == 1 {
            blend(&mut seen.one, took);
            let won = seen.all.map_or(0.0, |all| took - all);
            // Even where machines are idle, this loses less than one part in a hundred.
            seen.time_one = Some(now + 3 * PATIENCE * seconds(won.max(TINY.as_secs_f64())));
            return;
        }
        // What it should have taken: less than one thread, or as far as is known what it took before.
        let limit = match (seen.one, seen.all) {
            (Some(one), _) => HICCUP * one,
            (None, Some(all)) => LATE * all,
            (None, None) => LATE * expected,
        };
        if took < limit {
            blend(&mut seen.all, took);
            if seen.one.is_none_or(|one| seen.all.is_some_and(|all| all < one)) {
                return;
            }
        }
        // Where nothing is lost, there is nothing to be won soon either.
        let lost = (took - seen.one.unwrap_or(limit / LATE)).max(took / 4.0);
        self.one_until = Some(now + PATIENCE * seconds(lost));
    }

    fn expected_of_one(&self, tokens: usize) -> f64 {
        self.expected * (1.0 + tokens.saturating_sub(1) as f64 / TOKENS_A_READ)
    }
}

fn size(tokens: usize) -> usize {
    (tokens.max(1).next_power_of_two().ilog2() as usize).min(SIZES - 1)
}

fn blend(known: &mut Option<f64>, took: f64) {
    *known = Some(known.map_or(took, |known| known + NEWS * (took - known)));
}

/// A duration of at most an hour, whatever a clock says.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights so large that one token takes one thread twelve milliseconds.
    const WEIGHTS: u64 = 72_000_000;

    /// A machine on which passes take what a function says: of the threads, the tokens and the seconds gone by.
    struct Machine<F> {
        choice: ThreadChoice,
        /// Answer of the system.
        crowded: bool,
        begin: Instant,
        gone: f64,
        passes: [u32; 2],
        takes: F,
    }

    impl<F: Fn(u32, usize, f64) -> f64> Machine<F> {
        fn new(weights: u64, takes: F) -> Self {
            let choice = ThreadChoice::new(4, weights);
            Self { choice, crowded: false, begin: Instant::now(), gone: 0.0, passes: [0; 2], takes }
        }

        /// Seconds that it takes, and those that one thread would take.
        fn run(&mut self, passes: usize, tokens: impl Fn(usize) -> usize) -> (f64, f64) {
            let (before, mut alone) = (self.gone, 0.0);
            for tokens in (0..passes).map(tokens) {
                let threads = self.choice.choose(tokens, self.begin + seconds(self.gone), |_| self.crowded);
                let took = (self.takes)(threads, tokens, self.gone);
                alone += (self.takes)(1, tokens, self.gone);
                self.gone += took;
                self.passes[usize::from(threads > 1)] += 1;
                self.choice.record_pass(tokens, seconds(took), self.begin + seconds(self.gone));
            }
            (self.gone - before, alone)
        }
    }

    fn idle(threads: u32, tokens: usize, _: f64) -> f64 {
        0.012 * (1.0 + (tokens - 1) as f64 / 4.0) * if threads == 1 { 1.0 } else { 0.3 }
    }

    fn busy(threads: u32, tokens: usize, now: f64) -> f64 {
        idle(threads, tokens, now) * 1.2 + if threads == 1 { 0.0 } else { 0.15 }
    }

    const TOKENS: [fn(usize) -> usize; 3] = [|_| 1, |pass| 1 + pass % 7, |pass| if pass % 20 == 0 { 400 } else { 1 }];

    #[test]
    fn a_number_that_was_given_is_kept() {
        let mut choice = ThreadChoice::with_threads(3);
        for tokens in [1, 500, 1] {
            assert_eq!(choice.choose(tokens, Instant::now(), |_| true), 3);
            choice.record_pass(tokens, Duration::from_secs(9), Instant::now());
        }
    }

    #[test]
    fn a_tiny_model_has_one_thread_for_ever() {
        let mut machine = Machine::new(3_000_000, |threads, tokens, now| idle(threads, tokens, now) / 24.0);
        machine.run(20_000, |_| 1);
        assert_eq!(machine.passes, [20_000, 0]);
    }

    #[test]
    fn an_idle_machine_gives_all_threads() {
        for tokens in TOKENS {
            let mut machine = Machine::new(WEIGHTS, idle);
            let (took, alone) = machine.run(2_000, tokens);
            assert!(took < 0.33 * alone, "{took} s instead of {} s", 0.3 * alone);
        }
    }

    #[test]
    fn a_busy_machine_is_no_slower_than_with_one() {
        for tokens in TOKENS {
            let mut machine = Machine::new(WEIGHTS, busy);
            // What the first trial of each size loses cannot be known before.
            machine.run(40, tokens);
            let (took, alone) = machine.run(2_000, tokens);
            assert!(took < 1.06 * alone, "{took} s instead of {alone} s");
        }
    }

    /// The first passes do not wait, either.
    #[test]
    fn where_the_system_says_that_it_is_busy_nothing_is_tried() {
        for tokens in TOKENS {
            let mut machine = Machine::new(WEIGHTS, busy as fn(u32, usize, f64) -> f64);
            machine.crowded = true;
            let (took, alone) = machine.run(2_000, tokens);
            assert_eq!((took, machine.passes[1]), (alone, 0));
            // And when it is no longer, all come again.
            machine.crowded = false;
            machine.takes = idle;
            machine.run(2_000, tokens);
            assert!(machine.passes[1] > 1_000, "{:?}", machine.passes);
        }
    }

    #[test]
    fn the_system_is_asked_now_and_then() {
        let mut choice = ThreadChoice::new(4, WEIGHTS);
        let (begin, mut asked) = (Instant::now(), 0);
        for millisecond in 0..1_000 {
            choice.choose(1, begin + Duration::from_millis(millisecond), |_| {
                asked += 1;
                false
            });
        }
        assert_eq!(asked, 100);
    }

    #[test]
    fn threads_that_do_not_help_are_left_alone() {
        let mut machine = Machine::new(WEIGHTS, |_, tokens, now| idle(1, tokens, now));
        let (took, alone) = machine.run(2_000, |_| 1);
        assert!(took <= 1.0001 * alone);
        assert!(machine.passes[1] < 200, "{:?}", machine.passes);
    }

    #[test]
    fn what_changes_is_noticed_both_ways() {
        for tokens in TOKENS {
            let is_busy = |now: f64| (20.0..60.0).contains(&now);
            let takes = move |threads, tokens, now| {
                if is_busy(now) { busy(threads, tokens, now) } else { idle(threads, tokens, now) }
            };
            let mut machine = Machine::new(WEIGHTS, takes);
            while machine.gone < 20.0 {
                machine.run(1, tokens);
            }
            let mut lost = 0.0;
            while machine.gone < 60.0 {
                let (took, alone) = machine.run(1, tokens);
                lost += took - alone;
            }
            assert!(lost < 0.06 * 40.0, "{lost} s lost in 40 busy ones");
            while machine.gone < 75.0 {
                machine.run(1, tokens);
            }
            let (took, alone) = machine.run(1_000, tokens);
            assert!(took < 0.35 * alone, "{took} s instead of {} s", 0.3 * alone);
        }
    }
}
