//! Memory shared by all rules over a vocabulary, and its limit.
//!
//! Each rule keeps masks and the data of its walker. A program with thousands of rules, such as a server with as many
//! tool lists, would keep all of that for every rule. So all rules over one vocabulary share one limit: if they keep
//! more, the least recently used rules drop their data. A mask that several rules share, such as that inside a string,
//! is kept once.

use crate::tokens::masks::Legal;
use lru::DefaultHasher;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes that rules over a vocabulary may keep together, unless somebody says otherwise: 256 MiB.
pub(crate) const USUAL_LIMIT: usize = 256 << 20;

/// Masks of fewer bytes are not looked for among those of other rules.
const WORTH_SHARING: usize = 256;

/// Statistics of the memory of the rules over a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KeptStats {
    /// Approximate bytes of all masks, and of the data that walkers keep to compute more of them.
    pub bytes: usize,
    /// Limit on these bytes.
    pub limit: usize,
    /// Number of rules in use.
    pub rules: usize,
    /// Number of times that a rule dropped its data to make room for others.
    pub forgotten: u64,
}

/// The memory in which all rules over a vocabulary keep their masks and the data of their walkers. A clone shares the
/// memory.
///
/// It holds 256 MiB unless a limit is set. Beyond the limit the least recently used rules drop their masks, which are
/// computed again when needed: this takes longer, but never changes a mask. Masks in use stay.
#[derive(Debug, Clone, Default)]
pub struct MaskMemory(Arc<KeptMemory>);

impl MaskMemory {
    /// Sets the limit in bytes.
    pub fn limit(&self, bytes: usize) {
        self.0.set_limit(bytes);
    }

    /// Returns the statistics of the memory.
    pub fn stats(&self) -> KeptStats {
        self.0.stats()
    }

    pub(crate) fn kept_memory(&self) -> &KeptMemory {
        &self.0
    }
}

/// A rule that keeps something.
pub(crate) trait Keeps: Send + Sync {
    /// When it was used last, by [`KeptMemory::current_time`].
    fn used(&self) -> u64;

    /// Lets go of what can be found again, and says so by [`KeptMemory::set`].
    fn forget(&self);
}

/// The memory of the rules over a vocabulary.
pub(crate) struct KeptMemory {
    limit: AtomicUsize,
    bytes: AtomicUsize,
    /// Goes on with each mask that is walked.
    clock: AtomicU64,
    masks: Mutex<SharedMasks>,
    rules: Mutex<Vec<Weak<dyn Keeps>>>,
    alive: AtomicUsize,
    forgotten: AtomicU64,
    /// Words of walks that are over.
    spare: Mutex<Vec<Vec<u32>>>,
}

/// As many threads as mostly walk at once.
const MOST_SPARE: usize = 16;

/// Masks that rules keep, each once.
#[derive(Default)]
struct SharedMasks {
    masks: HashSet<Legal, DefaultHasher>,
    /// Number of masks after the last sweep of unused ones.
    swept: usize,
    /// Rules that went since.
    gone: usize,
}

impl Default for KeptMemory {
    fn default() -> Self {
        let (zero, none) = (|| AtomicU64::new(0), || AtomicUsize::new(0));
        Self {
            limit: AtomicUsize::new(USUAL_LIMIT),
            bytes: none(),
            clock: zero(),
            masks: Mutex::default(),
            rules: Mutex::default(),
            alive: none(),
            forgotten: zero(),
            spare: Mutex::default(),
        }
    }
}

impl fmt::Debug for KeptMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptMemory").field("stats", &self.stats()).finish()
    }
}

/// Locks; a thread that panicked left the value whole.
fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeptMemory {
    pub(crate) fn stats(&self) -> KeptStats {
        KeptStats {
            bytes: self.bytes.load(Ordering::Relaxed),
            limit: self.limit.load(Ordering::Relaxed),
            rules: self.alive.load(Ordering::Relaxed),
            forgotten: self.forgotten.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets how much may be kept, and forgets what is more.
    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
        self.hold_limit();
    }

    /// Returns `count` words that are 0.
    pub(crate) fn words(&self, count: usize) -> Vec<u32> {
        let mut words = lock(&self.spare).pop().unwrap_or_default();
        words.clear();
        words.resize(count, 0);
        words
    }

    /// Takes words of a walk that is over.
    pub(crate) fn give_back(&self, words: Vec<u32>) {
        let mut spare = lock(&self.spare);
        if spare.len() < MOST_SPARE {
            spare.push(words);
        }
    }

    /// The time, in masks that were walked.
    pub(crate) fn current_time(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Returns whether so many bytes more can be kept without a rule forgetting.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit()
    }

    /// Takes note of a rule, which may be asked to forget from now on.
    pub(crate) fn enter(&self, rule: Weak<dyn Keeps>) {
        self.alive.fetch_add(1, Ordering::Relaxed);
        let mut rules = lock(&self.rules);
        // Those that went are looked for when there are as many as the others.
        if rules.len() >= 2 * self.alive.load(Ordering::Relaxed) {
            rules.retain(|rule| rule.strong_count() > 0);
        }
        rules.push(rule);
    }

    /// A rule is gone, with what it kept.
    pub(crate) fn leave(&self, counted: &AtomicUsize) {
        self.set(counted, 0);
        let alive = self.alive.fetch_sub(1, Ordering::Relaxed) - 1;
        let mut shared = lock(&self.masks);
        shared.gone += 1;
        if shared.gone > alive {
            self.sweep(&mut shared);
        }
    }

    /// A mask that was walked: the same that another rule keeps, if one does.
    pub(crate) fn share(&self, mask: Legal) -> Legal {
        self.clock.fetch_add(1, Ordering::Relaxed);
        if mask.nbytes() < WORTH_SHARING {
            return mask;
        }
        let mut shared = lock(&self.masks);
        if let Some(known) = shared.masks.get(&mask) {
            return known.clone();
        }
        if shared.masks.len() > 64 + 2 * shared.swept {
            self.sweep(&mut shared);
        }
        self.bytes.fetch_add(shared_bytes(&mask), Ordering::Relaxed);
        shared.masks.insert(mask.clone());
        mask
    }

    /// Bytes of a mask that count for the rule that keeps it: shared ones count for all together.
    pub(crate) fn own_bytes(mask: &Legal) -> usize {
        if mask.nbytes() < WORTH_SHARING { mask.nbytes() } else { 0 }
    }

    /// Sets what a rule keeps of its own, of which `counted` is what it kept before; then forgets what is too much.
    pub(crate) fn count(&self, counted: &AtomicUsize, bytes: usize) {
        self.set(counted, bytes);
        self.hold_limit();
    }

    /// Sets what a rule keeps of its own.
    pub(crate) fn set(&self, counted: &AtomicUsize, bytes: usize) {
        let before = counted.swap(bytes, Ordering::Relaxed);
        // Each exchange is paired with its difference, so that the sum is right whoever comes first.
        self.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Throws away masks that no rule has.
    fn sweep(&self, shared: &mut SharedMasks) {
        let mut bytes = 0;
        shared.masks.retain(|mask| {
            let is_held = mask.holders() > 1;
            bytes += if is_held { 0 } else { shared_bytes(mask) };
            is_held
        });
        (shared.swept, shared.gone) = (shared.masks.len(), 0);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Has rules forget, those first that were used longest ago, until a quarter is free again.
    fn hold_limit(&self) {
        if self.bytes.load(Ordering::Relaxed) <= self.limit() {
            return;
        }
        // Whoever has the lock does it.
        let Ok(mut rules) = self.rules.try_lock() else { return };
        self.sweep(&mut lock(&self.masks));
        rules.retain(|rule| rule.strong_count() > 0);
        let mut oldest: Vec<Arc<dyn Keeps>> = rules.iter().filter_map(Weak::upgrade).collect();
        oldest.sort_by_key(|rule| rule.used());
        let goal = self.limit() / 4 * 3;
        for some in oldest.chunks(oldest.len().div_ceil(16).max(1)) {
            if self.bytes.load(Ordering::Relaxed) <= goal {
                break;
            }
            for rule in some {
                rule.forget();
            }
            self.forgotten.fetch_add(some.len() as u64, Ordering::Relaxed);
            self.sweep(&mut lock(&self.masks));
        }
        // The last holder of a rule may have gone meanwhile: what it leaves wants the lock of the masks alone.
        drop(rules);
    }
}

/// Returns the bytes of a mask that is kept once: itself, its reference counts, and its place in the table.
fn shared_bytes(mask: &Legal) -> usize {
    mask.nbytes() + 2 * size_of::<usize>() + size_of::<Legal>() + 8
}
