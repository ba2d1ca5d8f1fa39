//! What stands between llguidance and everything else: its panics and its error texts end here.

use anyhow::Result;
use std::panic::AssertUnwindSafe;
use trie_core::work::apart;

/// Runs this; an error or a panic becomes its first lines.
pub(crate) fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T, String> {
    llguidance::panic_utils::catch_unwind(AssertUnwindSafe(run)).map_err(|error| said(&format!("{error:#}")))
}

/// [`caught`] for what may take long or is nested deeply: on a thread of its own, which is left behind where the
/// [work](trie_core::work) of this one is over.
pub(crate) fn caught_apart<T: Send + 'static>(run: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T, String> {
    apart(|| caught(run)).unwrap_or_else(|over| Err(format!("too large: {over}")))
}

/// An error text without the traces that follow it.
pub(crate) fn said(text: &str) -> String {
    if text.contains("grammar.symbols.len()") {
        return "too many symbols: a grammar has at most 65,525 of them".into();
    }
    let text = text.split("\n<").next().unwrap_or_default().trim();
    text.chars().take(2000).collect()
}
