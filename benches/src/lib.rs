//! Shared parts of the benches: rivals in C and AVX2, and seeded inputs.

use std::hint::black_box;

mod c {
    unsafe extern "C" {
        pub(crate) fn limit_gather_argmax(row: *const f32, ids: *const u32, k: usize) -> u32;
        pub(crate) fn limit_mask(row: *mut f32, n: usize, ids: *const u32, k: usize, saved: *mut f32);
    }
}

fn check_ids(row: &[f32], ids: &[u32]) {
    assert!(ids.last().is_some_and(|&id| (id as usize) < row.len()), "ids are ascending and inside the row");
}

/// The best of `k`, in C.
pub fn c_argmax(row: &[f32], ids: &[u32]) -> u32 {
    debug_assert!(!ids.is_empty());
    // SAFETY: callers pass ascending ids inside the row (`inside` is asserted once per input); both slices are alive.
    unsafe { c::limit_gather_argmax(row.as_ptr(), ids.as_ptr(), ids.len()) }
}

/// Gather, fill, scatter, in C.
pub fn c_mask(row: &mut [f32], ids: &[u32], saved: &mut [f32]) {
    debug_assert!(saved.len() >= ids.len());
    // SAFETY: as `c_argmax`; `saved` has room for all ids.
    unsafe { c::limit_mask(row.as_mut_ptr(), row.len(), ids.as_ptr(), ids.len(), saved.as_mut_ptr()) }
}

/// The best of `k` with AVX2 gathers, or `None` where the machine has none.
pub fn avx2_argmax(row: &[f32], ids: &[u32]) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was detected; ids are inside the row as for `c_argmax`.
        return Some(unsafe { avx2(row, ids) });
    }
    let _ = (row, ids);
    None
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(
    clippy::multiple_unsafe_ops_per_block,
    clippy::float_cmp,
    reason = "one loop, one argument; equal bits are looked for"
)]
fn avx2(row: &[f32], ids: &[u32]) -> u32 {
    use std::arch::x86_64::{_mm256_i32gather_ps, _mm256_loadu_si256, _mm256_max_ps, _mm256_set1_ps, _mm256_storeu_ps};
    let mut best = _mm256_set1_ps(f32::NEG_INFINITY);
    let (eights, rest) = ids.as_chunks::<8>();
    for eight in eights {
        // SAFETY: eight ids are readable, and each is inside the row.
        let values = unsafe { _mm256_i32gather_ps::<4>(row.as_ptr(), _mm256_loadu_si256(eight.as_ptr().cast())) };
        // A NaN in the first operand gives the second, so a NaN never wins.
        best = _mm256_max_ps(values, best);
    }
    let mut lanes = [0.0f32; 8];
    // SAFETY: eight floats are writable.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), best) };
    let high = rest.iter().map(|&id| row[id as usize]).chain(lanes).fold(f32::NEG_INFINITY, f32::max);
    ids.iter().copied().find(|&id| row[id as usize] == high).unwrap_or(ids[0])
}

/// A row of seeded logits, about normal.
pub fn row(n: usize) -> Vec<f32> {
    let mut random = Random(7);
    (0..n).map(|_| (0..4).map(|_| random.unit()).sum::<f32>() - 2.0).collect()
}

/// `k` ascending ids, spread over the vocabulary.
///
/// # Panics
/// If `k` is 0 or over `n`.
pub fn ids(n: usize, k: usize) -> Vec<u32> {
    let mut random = Random(k as u64);
    let mut ids = std::collections::BTreeSet::new();
    while ids.len() < k {
        ids.insert((random.next() % n as u64) as u32);
    }
    let ids: Vec<u32> = ids.into_iter().collect();
    check_ids(&row(n), &ids);
    black_box(ids)
}

/// `SplitMix64`: inputs must be the same in every run, nothing more.
pub struct Random(pub u64);

impl Random {
    /// Returns the next random number.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to below a limit that fits 32 bits.
    pub fn number_below(&mut self, limit: u64) -> u32 {
        (self.next() % limit) as u32
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }
}

/// Thirty action names of an assistant.
pub const ACTIONS: [&str; 30] = [
    "SEND_MESSAGE",
    "SEND_DIRECT_MESSAGE",
    "SEND_MESSAGE_ATTACHMENT",
    "SEND_EMAIL_REMINDER",
    "SEARCH_WEB_PAGES",
    "SEARCH_WEB_IMAGES",
    "SEARCH_MEMORY_NOTES",
    "SEARCH_MEMORY_FACTS",
    "CREATE_TASK",
    "CREATE_TASK_REMINDER",
    "CREATE_CALENDAR_EVENT",
    "CREATE_CALENDAR_INVITE",
    "CREATE_CHANNEL_INVITE",
    "UPDATE_TASK_STATUS",
    "UPDATE_TASK_PRIORITY",
    "UPDATE_USER_PROFILE",
    "UPDATE_USER_SETTINGS",
    "DELETE_TASK",
    "DELETE_MESSAGE_THREAD",
    "DELETE_CALENDAR_EVENT",
    "LIST_OPEN_TASKS",
    "LIST_CALENDAR_EVENTS",
    "GET_WEATHER_FORECAST",
    "GET_CALENDAR_DAY",
    "READ_FILE_CONTENTS",
    "WRITE_FILE_CONTENTS",
    "TRANSFER_FUNDS",
    "SUMMARIZE_THREAD",
    "REPLY_TO_THREAD",
    "IGNORE_MESSAGE",
];

/// The payload of [`ACTIONS`], four tokens each, words shared between names, as a tokenizer would.
pub fn actions_payload() -> String {
    let token =
        |text: &str| text.bytes().fold(17u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % 151_000;
    let leaves: Vec<String> = ACTIONS
        .iter()
        .map(|name| {
            let mut words = name.split('_').map(token);
            let mut next = |other: u32| words.next().unwrap_or_else(|| token(name) ^ other);
            format!(r#"{{"name":"{name}","tokens":[{},{},{},{}]}}"#, next(1), next(2), next(3), next(4))
        })
        .collect();
    format!(r#"{{"modelId":"bench","descriptors":[{{"path":"action","leaves":[{}]}}]}}"#, leaves.join(","))
}
