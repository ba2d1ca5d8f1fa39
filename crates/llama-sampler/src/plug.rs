//! The sampler inside llama.cpp: a callback table over a shared span. All unsafe code of the plug is in this file.
//!
//! Every SAFETY note below rests on one of three facts, named here once:
//!
//! - **Shell**: llama.cpp calls a callback only with a `llama_sampler` that carries our table, and only [`shell`] makes
//!   such samplers, with a `ctx` from `Arc::into_raw`. `ctx` is null only after `free`.
//! - **Owned**: one shell owns one reference count of its `ctx`, given back by `free` alone.
//!   `llama_sampler_copy` calls `free` and then moves the `ctx` of a clone into the old shell, so `ctx` never points back.
//! - **Array**: llama.cpp hands over an array whose `data` points to `size` initialised candidates that nothing else
//!   touches during the call (`llama_sampler_apply` in `llama.cpp/src/llama-sampler.cpp`).

mod candidates;
mod status;
#[cfg(test)]
mod tests;

pub use status::{SamplerCounts, SamplerHandle, SamplerStatus};

use candidates::Candidates;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_sys_2::{
    llama_sampler, llama_sampler_i, llama_sampler_init, llama_token, llama_token_data, llama_token_data_array,
};
use status::{Inner, Shared};
use std::alloc::{Layout, handle_alloc_error};
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use trie_core::{Mode, Span, SpanRules};

/// A token trie as a sampler for `LlamaSampler::chain`: put it **first**, since after top-k, top-p or a temperature of
/// 0 the legal tokens may be gone.
///
/// Allowed candidates move to the front and the array shrinks, which costs `O(allowed)` and no pass over the
/// vocabulary. In [`Mode::Greedy`] one candidate remains, already selected; in [`Mode::Sampled`] the rest of the chain
/// draws among the allowed.
///
/// `LlamaSampler::sample` accepts the token by itself: do not accept it again.
///
/// # Limits
///
/// Device-side (backend) sampling is not provided yet. llama.cpp has no way to return an error from a callback: an
/// illegal token at the root is ignored, deeper it turns the span off, and the status says so.
#[derive(Debug)]
pub struct TokenTrieSampler {
    shared: Arc<Shared>,
}

impl TokenTrieSampler {
    /// A sampler armed at the root of the first trie.
    pub fn new(rules: Arc<SpanRules>, mode: Mode) -> Self {
        Self::from_span(Span::new(rules), mode)
    }

    /// A sampler that goes on from where this span stands.
    pub fn from_span(span: Span, mode: Mode) -> Self {
        Self::from_inner(Inner { span, mode, counts: SamplerCounts::default() }, false)
    }

    fn from_inner(inner: Inner, poisoned: bool) -> Self {
        Self { shared: Arc::new(Shared::new(inner, poisoned)) }
    }

    /// The owner's end: reads and steers the sampler once a chain has taken it.
    pub fn handle(&self) -> SamplerHandle {
        SamplerHandle(Arc::clone(&self.shared))
    }

    /// An ordinary sampler of llama.cpp, freed by whoever owns it.
    pub fn into_llama_sampler(self) -> LlamaSampler {
        let raw = shell(self.shared);
        if raw.is_null() {
            handle_alloc_error(Layout::new::<llama_sampler>());
        }
        // SAFETY: `LlamaSampler` has one field, a non-null pointer to a sampler that it owns, so equal size and
        // alignment (asserted below) mean equal layout; `raw` is not null and was owned by nobody.
        unsafe { std::mem::transmute::<*mut llama_sampler, LlamaSampler>(raw) }
    }
}

/// A clone stands where the original stands and is independent of it.
impl Clone for TokenTrieSampler {
    fn clone(&self) -> Self {
        Self::from_inner(self.shared.lock().clone(), self.shared.is_poisoned())
    }
}

const _: () = assert!(size_of::<LlamaSampler>() == size_of::<*mut llama_sampler>());
const _: () = assert!(align_of::<LlamaSampler>() == align_of::<*mut llama_sampler>());

/// llama.cpp's table has grown from 6 to 12 fields. Zeroes behind it keep a newer library from reading past our end.
#[repr(C)]
struct Table {
    callbacks: llama_sampler_i,
    reserve: [usize; 16],
}

static TABLE: Table = {
    // SAFETY: every field is an `Option` of a function pointer, for which zeroes are `None`.
    let mut callbacks: llama_sampler_i = unsafe { MaybeUninit::zeroed().assume_init() };
    callbacks.name = Some(name);
    callbacks.accept = Some(accept);
    callbacks.apply = Some(apply);
    callbacks.reset = Some(reset);
    callbacks.clone = Some(clone);
    callbacks.free = Some(free);
    // The device-side callbacks stay null: llama.cpp then runs this sampler on the host.
    Table { callbacks, reserve: [0; 16] }
};

/// Wraps shared state into a new sampler, which owns it.
fn shell(shared: Arc<Shared>) -> *mut llama_sampler {
    debug_assert_eq!(TABLE.reserve, [0; 16]);
    let table = (&raw const TABLE).cast::<llama_sampler_i>().cast_mut();
    let ctx = Arc::into_raw(shared).cast_mut().cast::<c_void>();
    // SAFETY: the table is static and llama.cpp only reads it; the context is ours to interpret (Owned).
    unsafe { llama_sampler_init(table, ctx) }
}

/// The state behind a shell, or `None` after `free`.
///
/// # Safety
/// `sampler` is a shell of ours that stays alive for `'a`.
unsafe fn shared<'a>(sampler: *const llama_sampler) -> Option<&'a Shared> {
    // SAFETY: the caller's promise.
    let ctx = unsafe { (*sampler).ctx };
    // SAFETY: Shell: `ctx` is null or points to a `Shared` that the shell keeps alive.
    unsafe { ctx.cast::<Shared>().as_ref() }
}

/// Runs one callback's work. A panic ends here: it poisons the sampler, which stays closed from then on.
fn guarded<T>(shared: &Shared, work: impl FnOnce(&Shared) -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(|| work(shared)));
    if result.is_err() {
        shared.poison();
    }
    result.ok()
}

unsafe extern "C" fn name(_: *const llama_sampler) -> *const c_char {
    c"token-trie".as_ptr()
}

unsafe extern "C" fn accept(sampler: *mut llama_sampler, token: llama_token) {
    // SAFETY: Shell.
    if let Some(shared) = unsafe { shared(sampler) } {
        guarded(shared, |shared| shared.lock().observe(token));
    }
}

unsafe extern "C" fn reset(sampler: *mut llama_sampler) {
    // SAFETY: Shell.
    if let Some(shared) = unsafe { shared(sampler) } {
        guarded(shared, |shared| shared.lock().span.reset());
    }
}

unsafe extern "C" fn apply(sampler: *mut llama_sampler, array: *mut llama_token_data_array) {
    // SAFETY: Shell.
    let shared = unsafe { shared(sampler) };
    // SAFETY: Array.
    let array = unsafe { array.as_mut() };
    let (Some(shared), Some(array)) = (shared, array) else { return };
    if array.data.is_null() {
        return;
    }
    // SAFETY: Array, and `data` is not null.
    let data = unsafe { std::slice::from_raw_parts_mut(array.data, array.size) };
    let mut after = constrain_or_close(shared, data, array.sorted, array.selected);
    // Whatever happened, an array that had a candidate keeps one: an empty array aborts the process.
    after.len = after.len.clamp(usize::from(array.size > 0), array.size);
    (array.size, array.sorted, array.selected) = (after.len, after.sorted, after.selected);
}

/// What becomes of an array.
#[derive(Debug, PartialEq, Eq)]
struct After {
    len: usize,
    sorted: bool,
    selected: i64,
}

impl From<&Candidates<'_>> for After {
    fn from(candidates: &Candidates<'_>) -> Self {
        Self { len: candidates.len, sorted: candidates.sorted, selected: candidates.selected }
    }
}

fn constrain_or_close(shared: &Shared, data: &mut [llama_token_data], sorted: bool, selected: i64) -> After {
    if !shared.is_poisoned() {
        let constrained = guarded(shared, |shared| {
            let mut inner = shared.lock();
            let Inner { span, mode, counts } = &mut *inner;
            let mut candidates = Candidates::new(data, sorted, selected);
            candidates.constrain(span.allowed(), *mode, span.rules().n_vocab());
            counts.applied += 1;
            counts.starved += u64::from(candidates.starved);
            After::from(&candidates)
        });
        if let Some(after) = constrained {
            return after;
        }
    }
    let closed = guarded(shared, |shared| {
        let mut candidates = Candidates::new(data, sorted, selected);
        candidates.close(shared.lock().span.rules().stop_tokens());
        After::from(&candidates)
    });
    closed.unwrap_or(After { len: 1, sorted: true, selected: 0 })
}

unsafe extern "C" fn clone(sampler: *const llama_sampler) -> *mut llama_sampler {
    // SAFETY: Shell.
    let Some(original) = (unsafe { shared(sampler) }) else { return std::ptr::null_mut() };
    let copy = guarded(original, |shared| Arc::new(Shared::new(shared.lock().clone(), shared.is_poisoned())));
    // A null would crash the chain that asked. A copy that failed has just poisoned the original: both are closed.
    shell(copy.unwrap_or_else(|| share(original)))
}

/// A second owner of the same state.
fn share(shared: &Shared) -> Arc<Shared> {
    let raw = std::ptr::from_ref(shared);
    // SAFETY: Shell: every `Shared` behind a shell came from `Arc::into_raw` and is alive.
    unsafe { Arc::increment_strong_count(raw) };
    // SAFETY: the count that was just added is this one's.
    unsafe { Arc::from_raw(raw) }
}

unsafe extern "C" fn free(sampler: *mut llama_sampler) {
    // SAFETY: Shell; `llama_sampler_free` has exclusive use of it.
    let ctx = unsafe { std::mem::replace(&mut (*sampler).ctx, std::ptr::null_mut()) };
    if ctx.is_null() {
        return;
    }
    // SAFETY: Owned: `ctx` came from `Arc::into_raw`, and replacing it above makes this the only return.
    let shared = unsafe { Arc::from_raw(ctx.cast_const().cast::<Shared>()) };
    // Dropping the last owner frees tries; a panic there must not reach C either.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(shared)));
}
