//! What stands between llguidance and everything else: its panics and its error texts end here.

use anyhow::Result;
use std::panic::AssertUnwindSafe;

/// Runs this; an error or a panic becomes its first lines.
pub(crate) fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T, String> {
    llguidance::panic_utils::catch_unwind(AssertUnwindSafe(run)).map_err(|error| said(&format!("{error:#}")))
}

/// [`caught`] with room for grammars that are nested deeply.
pub(crate) fn caught_deep<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let started = thread.spawn_scoped(scope, || caught(run)).map_err(|error| error.to_string())?;
        started.join().unwrap_or_else(|_| Err("it panicked".to_owned()))
    })
}

/// Bytes of stack for a grammar that is read. Memory is used only as far as it is needed.
const STACK: usize = 256 << 20;

/// An error text without the traces that follow it.
pub(crate) fn said(text: &str) -> String {
    let text = text.split("\n<").next().unwrap_or_default().trim();
    text.chars().take(2000).collect()
}
