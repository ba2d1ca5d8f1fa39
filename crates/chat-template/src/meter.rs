//! Limits of one rendering: steps, memory, depth.
//!
//! A rendering has a thread of its own, so its meter is a thread-local: a value gives its bytes back when it is
//! dropped, wherever that happens.

use crate::error::{Res, too_much};
use std::cell::Cell;

/// Most bytes of a template.
pub(crate) const SOURCE: usize = 1 << 20;
/// Most names, numbers and signs of a template. Templates in use have some ten thousand.
pub(crate) const TOKENS: usize = 300_000;
/// Most levels of blocks and expressions inside each other; a list counts twice. Python compiles no more than 100
/// blocks.
pub(crate) const NESTING: usize = 240;
/// Most levels of expressions, blocks and macros that run inside each other. Python stops after about 300 macros.
/// In WebAssembly they share the stack of their caller, which browsers keep small.
pub(crate) const CALLS: usize = if cfg!(target_family = "wasm") { 400 } else { 2000 };
/// Most levels of lists and dicts inside each other.
pub(crate) const DEPTH: u32 = 200;
/// Most bytes of text, lists and dicts that are alive at once, including the output.
pub(crate) const BYTES: usize = 32 << 20;
/// Bytes that are counted for one range of a text that the template wrote.
pub(crate) const RANGE: usize = 2 * size_of::<usize>();
/// Most bytes of messages, tools and variables.
pub(crate) const DATA: usize = 16 << 20;
/// Most steps: one for each expression and block, and one for every 32 bytes that are copied or inspected.
const STEPS: u64 = 6_000_000;
/// Stack size of a rendering. Only the depth in use is touched.
#[cfg(not(target_family = "wasm"))]
pub(crate) const STACK: usize = 64 << 20;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(STEPS) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static ALLOWED: Cell<usize> = const { Cell::new(BYTES) };
    static LENIENT: Cell<bool> = const { Cell::new(false) };
    static GROWING: Cell<bool> = const { Cell::new(false) };
    static CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// Runs with a meter of its own, as a thread of its own would.
#[cfg(target_family = "wasm")]
pub(crate) fn afresh<T>(run: impl FnOnce() -> T) -> T {
    let limits = (STEPS_LEFT.replace(STEPS), LIVE.replace(0), ALLOWED.replace(BYTES));
    let flags = (LENIENT.replace(false), GROWING.replace(false), CHANGED.replace(false));
    let made = run();
    (STEPS_LEFT.set(limits.0), LIVE.set(limits.1), ALLOWED.set(limits.2));
    (LENIENT.set(flags.0), GROWING.set(flags.1), CHANGED.set(flags.2));
    made
}

/// Begins a rendering over this many bytes of data. They do not count as memory, and long conversations get more steps.
pub(crate) fn start(data: usize) {
    STEPS_LEFT.set(STEPS + 2 * data as u64);
    LIVE.set(0);
}

/// Lets named lists grow from here on. Other changes of lists then do nothing, instead of being refused.
pub(crate) fn be_lenient() {
    LENIENT.set(true);
    GROWING.set(true);
}

/// Lets named lists grow from here on.
pub(crate) fn let_lists_grow() {
    GROWING.set(true);
}

/// Returns whether lists may grow, and notes that a list should.
pub(crate) fn may_grow() -> bool {
    CHANGED.set(CHANGED.get() || LENIENT.get());
    GROWING.get()
}

/// Returns whether a change of a list may pass without effect, and notes the attempt.
pub(crate) fn passes_change() -> bool {
    CHANGED.set(CHANGED.get() || LENIENT.get());
    LENIENT.get()
}

/// Returns whether a template tried to change a list.
pub(crate) fn tried_change() -> bool {
    CHANGED.get()
}

/// Suspends the limit on memory while data is loaded, whose size was checked before.
pub(crate) fn before_data() {
    ALLOWED.set(usize::MAX);
}

/// Begins to count memory, once the data is loaded.
pub(crate) fn count_from_here() {
    ALLOWED.set(LIVE.get() + BYTES);
}

/// Spends some steps of work.
pub(crate) fn spend(steps: u64) -> Res<()> {
    let left = STEPS_LEFT.get().checked_sub(steps);
    STEPS_LEFT.set(left.unwrap_or(0));
    if left.is_some() { Ok(()) } else { too_much(format!("it takes more than {STEPS} steps")) }
}

/// Spends the steps for inspecting some bytes.
pub(crate) fn spend_bytes(bytes: usize) -> Res<()> {
    spend(1 + (bytes / 32) as u64)
}

/// Checks that so many more bytes may be allocated.
pub(crate) fn room(bytes: usize) -> Res<()> {
    if LIVE.get().saturating_add(bytes) > ALLOWED.get() {
        return too_much(format!("its values and output take more than {BYTES} bytes"));
    }
    Ok(())
}

/// Takes bytes; [`release`] gives them back.
pub(crate) fn hold(bytes: usize) -> Res<()> {
    room(bytes)?;
    LIVE.set(LIVE.get() + bytes);
    Ok(())
}

pub(crate) fn release(bytes: usize) {
    LIVE.set(LIVE.get().saturating_sub(bytes));
}
