//! Exports for crates that add functions of their own to those of the header.

use crate::abi::trie::payload_bytes;
use crate::abi::vocab::VOCABS;
pub use crate::abi::vocab::Vocab;
pub use crate::error::{Error, Result, done, guarded, panicked, report};
pub use crate::handles::{Kind, Table};
pub use crate::memory::Buffer;
use crate::memory::In;
use std::sync::Arc;

/// Keeps a vocabulary and gives its handle.
///
/// # Errors
/// Too many handles.
pub fn insert_vocab(tokens: Arc<trie_text::Vocab>) -> Result<u64> {
    VOCABS.insert(Arc::new(Vocab::of_tokens(tokens)))
}

/// Keeps a constraint of a spec over a vocabulary and gives its handle.
///
/// # Errors
/// Too many handles.
#[cfg(all(feature = "specs", not(feature = "llama")))]
pub fn insert_constraint(
    spec: tokentrie::constraint::Spec,
    spans: tokentrie::constraint::Spans,
    vocab: Arc<Vocab>,
) -> Result<u64> {
    crate::abi::constraint::insert(spec, spans, vocab)
}

/// The vocabulary of a handle.
///
/// # Errors
/// No handle of one.
pub fn vocab_of(handle: u64) -> Result<Arc<Vocab>> {
    VOCABS.get(handle)
}

/// Returns the values of a trie or of a constraint, with the spec of the constraint.
///
/// # Errors
/// No handle of one; values without end, or too many.
#[cfg(all(feature = "specs", not(feature = "llama")))]
pub fn values_of(handle: u64) -> Result<(trie_core::Trie, Option<tokentrie::constraint::Spec>)> {
    crate::abi::constraint::values_of(handle)
}

/// The bytes of a text in JSON, no more than a payload may have.
///
/// # Errors
/// NULL, and too many.
pub fn json_bytes(json: &In<std::ffi::c_char>, length: usize) -> Result<&[u8]> {
    payload_bytes(json, length, "json")
}
