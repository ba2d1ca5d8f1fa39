//! What one rendering may use: steps, memory, depth.
//!
//! A rendering has a thread of its own, so its meter is a thread-local: a value gives its bytes back when it is
//! dropped, wherever that happens.

use crate::error::{Res, too_much};
use crate::value::{Text, TracedText, Value};
use std::cell::Cell;

/// Bytes of a template.
pub(crate) const SOURCE: usize = 1 << 20;
/// Names, numbers and signs of a template; those that are used have some ten thousand.
pub(crate) const TOKENS: usize = 300_000;
/// Levels of blocks and expressions inside each other; a list counts twice. Python compiles no more than 100 blocks.
pub(crate) const NESTING: usize = 240;
/// Levels of what runs inside each other: expressions, blocks, macros. Python stops after about 300 macros.
/// In WebAssembly they share the stack of their caller, which browsers keep small.
pub(crate) const CALLS: usize = if cfg!(target_family = "wasm") { 400 } else { 2000 };
/// Levels of lists and dicts inside each other.
pub(crate) const DEPTH: u32 = 200;
/// Bytes of text, lists and dicts that are alive at once, the output among them.
pub(crate) const BYTES: usize = 32 << 20;
/// Bytes of a range of text that the template wrote.
pub(crate) const RANGE: usize = 2 * size_of::<usize>();
/// Bytes of messages, tools and variables.
pub(crate) const DATA: usize = 16 << 20;
/// Steps: one for each expression and block, and one for every 32 bytes that are copied or looked at.
const STEPS: u64 = 6_000_000;
/// Stack of a rendering; touched only as deep as it goes.
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

/// Begins a rendering over data of so many bytes: they do not count, and long conversations get more steps.
pub(crate) fn start(data: usize) {
    STEPS_LEFT.set(STEPS + 2 * data as u64);
    LIVE.set(0);
}

/// From here on lists with a name may grow, and other changes of them do nothing, instead of being refused.
pub(crate) fn be_lenient() {
    LENIENT.set(true);
    GROWING.set(true);
}

/// From here on lists with a name may grow.
pub(crate) fn let_lists_grow() {
    GROWING.set(true);
}

/// Whether lists may grow; notes that one should.
pub(crate) fn may_grow() -> bool {
    CHANGED.set(CHANGED.get() || LENIENT.get());
    GROWING.get()
}

/// Whether a change of a list may pass without effect; notes that one was tried.
pub(crate) fn passes_change() -> bool {
    CHANGED.set(CHANGED.get() || LENIENT.get());
    LENIENT.get()
}

/// Whether a template tried to change a list.
pub(crate) fn tried_change() -> bool {
    CHANGED.get()
}

/// From here on data comes in, which was measured before.
pub(crate) fn before_data() {
    ALLOWED.set(usize::MAX);
}

/// From here on memory counts: the data is there.
pub(crate) fn count_from_here() {
    ALLOWED.set(LIVE.get() + BYTES);
}

/// Some steps of work.
pub(crate) fn spend(steps: u64) -> Res<()> {
    let left = STEPS_LEFT.get().checked_sub(steps);
    STEPS_LEFT.set(left.unwrap_or(0));
    if left.is_some() { Ok(()) } else { too_much(format!("it takes more than {STEPS} steps")) }
}

/// The work of looking at some bytes.
pub(crate) fn spend_bytes(bytes: usize) -> Res<()> {
    spend(1 + (bytes / 32) as u64)
}

/// Whether so many bytes more may be made.
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

/// Text that is being put together, within what may be used. Every byte remembers whether the template wrote it.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    text: TracedText,
    held: usize,
}

impl Buffer {
    /// Appends what the template did not write, or not like this.
    pub(crate) fn push(&mut self, text: &str) -> Res<()> {
        spend_bytes(text.len())?;
        self.hold(text.len())?;
        self.text.push_foreign(text);
        Ok(())
    }

    /// Appends what stands in the template.
    pub(crate) fn push_own(&mut self, text: &str) -> Res<()> {
        spend_bytes(text.len())?;
        self.hold(text.len() + RANGE)?;
        self.text.push_own(text);
        Ok(())
    }

    /// Appends a text as it is.
    pub(crate) fn push_text(&mut self, text: &Text) -> Res<()> {
        self.push_part(text, text.as_str())
    }

    /// Appends a part of a text as it is; what is no slice of it counts as foreign.
    pub(crate) fn push_part(&mut self, of: &Text, part: &str) -> Res<()> {
        let Some(range) = of.range_of(part) else { return self.push(part) };
        spend_bytes(part.len())?;
        let before = self.text.own().len();
        self.hold(part.len())?;
        self.text.push_part(of.traced(), range);
        let ranges = self.text.own().len() - before;
        spend_bytes(ranges * RANGE)?;
        self.hold(ranges * RANGE)
    }

    pub(crate) fn push_char(&mut self, character: char) -> Res<()> {
        self.hold(character.len_utf8())?;
        self.text.push_foreign(character.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    /// The same character so many times.
    pub(crate) fn fill(&mut self, character: char, times: usize) -> Res<()> {
        let bytes = times.saturating_mul(character.len_utf8());
        spend_bytes(bytes)?;
        self.hold(bytes)?;
        self.text.push_foreign(&String::from_iter(std::iter::repeat_n(character, times)));
        Ok(())
    }

    fn hold(&mut self, bytes: usize) -> Res<()> {
        hold(bytes)?;
        self.held += bytes;
        Ok(())
    }

    pub(crate) fn as_str(&self) -> &str {
        self.text.text()
    }

    pub(crate) fn into_traced(mut self) -> TracedText {
        std::mem::take(&mut self.text)
    }

    /// The value that it makes.
    pub(crate) fn into_value(self) -> Res<Value> {
        Text::traced_text(self.into_traced(), false).map(Value::Str)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        release(self.held);
    }
}
