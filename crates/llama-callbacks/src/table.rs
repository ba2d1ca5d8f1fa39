//! The callbacks that llama.cpp calls. Every SAFETY note here rests on one of three facts, named once:
//!
//! - **Shell**: llama.cpp calls a callback only with a `llama_sampler` that carries [`TABLE`] or [`GRAPH_TABLE`], and
//!   only [`shell`] makes such samplers, with a `ctx` from `Box::into_raw`. During the call the sampler is alive. `ctx`
//!   is null only after `free`.
//! - **Owned**: one shell owns its `ctx`. Only `free` gives it back, and nothing else uses the shell during that call.
//!   `llama_sampler_copy` calls `free` and then moves the `ctx` of a clone into the old shell, so a `ctx` never points
//!   back to a shell.
//! - **Array**: llama.cpp hands over an array whose `data` points to `size` initialised candidates that nothing else
//!   touches during the call (`llama_sampler_apply` in `llama.cpp/src/llama-sampler.cpp`).

use super::abi::{Callbacks, GraphCallbacks, InitFn, LATER, RawSampler, Token, TokenData, TokenDataArray};
use super::candidates::Candidates;
use super::graph::{CALLBACKS, GraphSide};
use super::status::{Inner, SharedState};
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// The table of samplers of the host.
pub(super) static TABLE: Callbacks = table(GraphCallbacks {
    backend_init: None,
    backend_accept: None,
    backend_apply: None,
    backend_set_input: None,
    backend_reset: None,
    copy_state: None,
});

/// The table of samplers in a compute graph.
static GRAPH_TABLE: Callbacks = table(CALLBACKS);

const fn table(graph: GraphCallbacks) -> Callbacks {
    Callbacks {
        name: Some(name),
        accept: Some(accept),
        apply: Some(apply),
        reset: Some(reset),
        clone: Some(clone),
        free: Some(free),
        graph,
        later: [0; LATER],
    }
}

/// Target of a shell's `ctx` pointer.
pub(super) struct Context {
    pub(super) shared: Arc<SharedState>,
    /// The library of the shell, which also makes its clones.
    init: SamplerInit,
    /// Its nodes in a compute graph, if it may have any.
    pub(super) graph: Option<GraphSide>,
}

/// Wraps shared state into a new sampler, which owns it. If the library makes none, the state is dropped and null
/// returned.
pub(super) fn shell(shared: Arc<SharedState>, init: SamplerInit, graph: Option<GraphSide>) -> *mut RawSampler {
    let table = if graph.is_some() { &raw const GRAPH_TABLE } else { &raw const TABLE };
    let ctx = Box::into_raw(Box::new(Context { shared, init, graph }));
    // llama.cpp only reads the table, though older headers do not say `const`.
    let raw = init.call(table.cast_mut(), ctx.cast::<c_void>());
    if raw.is_null() {
        // SAFETY: it came from `Box::into_raw` above, and no shell has taken it.
        drop(unsafe { Box::from_raw(ctx) });
    }
    raw
}

/// Returns the context of a shell, or `None` after `free`.
///
/// # Safety
/// `sampler` is a shell of ours that stays alive, and its `ctx` with it, for `'a`.
pub(super) unsafe fn context<'a>(sampler: *const RawSampler) -> Option<&'a Context> {
    // SAFETY: the caller's promise.
    let ctx = unsafe { (*sampler).ctx };
    // SAFETY: Shell: `ctx` is null or points to a `Context` that the shell keeps alive and nobody writes to.
    unsafe { ctx.cast_const().cast::<Context>().as_ref() }
}

/// Returns the state that a sampler shares with its owner; `None` for null, and for a foreign sampler.
///
/// # Safety
/// `sampler` is null or a sampler of any llama.cpp that stays alive, and that nobody frees, during the call.
pub(super) unsafe fn shared_of(sampler: *const RawSampler) -> Option<Arc<SharedState>> {
    // SAFETY: the caller's promise.
    let iface = unsafe { sampler.as_ref() }?.iface;
    if !std::ptr::eq(iface, &raw const TABLE) && !std::ptr::eq(iface, &raw const GRAPH_TABLE) {
        return None;
    }
    // SAFETY: it has a table of ours, so it is a shell, and it stays alive.
    unsafe { context(sampler) }.map(|context| Arc::clone(&context.shared))
}

/// Runs one callback's work. A panic ends here: it poisons the sampler, which stays closed from then on.
pub(super) fn run_guarded<T>(shared: &SharedState, work: impl FnOnce(&SharedState) -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(|| work(shared)));
    if result.is_err() {
        shared.poison();
    }
    result.ok()
}

unsafe extern "C" fn name(_: *const RawSampler) -> *const c_char {
    c"token-trie".as_ptr()
}

unsafe extern "C" fn accept(sampler: *mut RawSampler, token: Token) {
    // SAFETY: Shell.
    if let Some(context) = unsafe { context(sampler) } {
        run_guarded(&context.shared, |shared| shared.lock().observe(token));
    }
}

unsafe extern "C" fn reset(sampler: *mut RawSampler) {
    // SAFETY: Shell.
    if let Some(context) = unsafe { context(sampler) } {
        run_guarded(&context.shared, |shared| shared.lock().span.reset());
    }
}

unsafe extern "C" fn apply(sampler: *mut RawSampler, array: *mut TokenDataArray) {
    // SAFETY: Shell.
    let context = unsafe { context(sampler) };
    // SAFETY: Array: null, or an array that is ours during the call.
    let array = unsafe { array.as_mut() };
    let (Some(context), Some(array)) = (context, array) else { return };
    if array.data.is_null() {
        return;
    }
    // SAFETY: Array, and `data` is not null.
    let data = unsafe { std::slice::from_raw_parts_mut(array.data, array.size) };
    let mut after = constrain_or_close(&context.shared, data, array.sorted, array.selected);
    // Whatever happened, an array that had a candidate keeps one: an empty array aborts the process.
    after.len = after.len.clamp(usize::from(array.size > 0), array.size);
    (array.size, array.sorted, array.selected) = (after.len, after.sorted, after.selected);
}

/// Outcome of an array.
#[derive(Debug, PartialEq, Eq)]
struct ArrayOutcome {
    len: usize,
    sorted: bool,
    selected: i64,
}

impl From<&Candidates<'_>> for ArrayOutcome {
    fn from(candidates: &Candidates<'_>) -> Self {
        Self { len: candidates.len, sorted: candidates.sorted, selected: candidates.selected }
    }
}

fn constrain_or_close(shared: &SharedState, data: &mut [TokenData], sorted: bool, selected: i64) -> ArrayOutcome {
    if !shared.is_poisoned() {
        let constrained = run_guarded(shared, |shared| {
            let mut inner = shared.lock();
            let Inner { span, mode, counts, scratch, .. } = &mut *inner;
            let mut candidates = Candidates::new(data, sorted, selected);
            let rules = span.rules();
            candidates.constrain(span.allowed(scratch), *mode, rules.n_vocab(), rules.stop_tokens());
            counts.applied += 1;
            counts.starved += u64::from(candidates.starved);
            ArrayOutcome::from(&candidates)
        });
        if let Some(after) = constrained {
            return after;
        }
    }
    let closed = run_guarded(shared, |shared| {
        let mut candidates = Candidates::new(data, sorted, selected);
        candidates.close(shared.lock().span.rules().stop_tokens());
        ArrayOutcome::from(&candidates)
    });
    closed.unwrap_or(ArrayOutcome { len: 1, sorted: true, selected: 0 })
}

unsafe extern "C" fn clone(sampler: *const RawSampler) -> *mut RawSampler {
    // SAFETY: Shell.
    let Some(context) = (unsafe { context(sampler) }) else { return null_mut() };
    let copy = run_guarded(&context.shared, |shared| Arc::new(shared.copy()));
    // A null would crash the chain that asked. A copy that failed has just poisoned the original: both are closed.
    let graph = context.graph.as_ref().map(GraphSide::without_nodes);
    shell(copy.unwrap_or_else(|| Arc::clone(&context.shared)), context.init, graph)
}

unsafe extern "C" fn free(sampler: *mut RawSampler) {
    // SAFETY: Shell, and Owned: `free` has the shell to itself.
    let ctx = unsafe { std::mem::replace(&mut (*sampler).ctx, null_mut()) };
    if ctx.is_null() {
        return;
    }
    // SAFETY: Owned: `ctx` came from `Box::into_raw`, and replacing it above makes this the only return.
    let context = unsafe { Box::from_raw(ctx.cast::<Context>()) };
    // Dropping the last owner frees tries; a panic there must not reach C either.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(context)));
}

/// `llama_sampler_init` of one loaded llama.cpp. Samplers made through it belong to that library.
#[derive(Debug, Clone, Copy)]
pub struct SamplerInit(InitFn);

impl SamplerInit {
    /// Wraps the address of `llama_sampler_init`.
    ///
    /// # Safety
    /// - It is `llama_sampler_init` of a llama.cpp, or behaves like it: it returns a new [`RawSampler`] with this table
    ///   and this `ctx`, or null, and never throws.
    /// - That library is laid out as the module [`abi`](super::abi) says, and calls the table as its own header says:
    ///   with samplers that are alive, `free` once and last, an array of candidates that nobody else touches during the
    ///   call.
    /// - It stays loaded for as long as any sampler made through it, or a clone of one, is alive.
    pub const unsafe fn new(init: InitFn) -> Self {
        Self(init)
    }

    /// The function at this address, as `dlsym` or Python's `ctypes` give it.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub const unsafe fn from_address(address: NonNull<c_void>) -> Self {
        // SAFETY: the caller says that a function of this type lies there.
        Self(unsafe { std::mem::transmute::<*mut c_void, InitFn>(address.as_ptr()) })
    }

    pub(super) fn call(self, table: *mut Callbacks, ctx: *mut c_void) -> *mut RawSampler {
        // SAFETY: whoever made `self` has promised that this is `llama_sampler_init`, which takes any table and
        // context.
        unsafe { (self.0)(table, ctx) }
    }
}
