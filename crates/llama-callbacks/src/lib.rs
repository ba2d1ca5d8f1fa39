//! A token trie as a sampler inside any llama.cpp: a table of callbacks over a shared span.
//!
//! Nothing here links llama.cpp. [`TokenTrieSampler::into_raw`] makes a sampler for whichever llama.cpp a process has
//! loaded, from the address of its `llama_sampler_init`; a [`SamplerHandle`] reads and steers it once a chain has taken
//! it. [`exit`] lets the end of a process wait for work in llama.cpp.
//!
//! ```
//! use llama_callbacks::TokenTrieSampler;
//! use trie_core::{Mode, SpanRules, TokenId, Trie};
//!
//! let id = |id: u32| TokenId::new(id).unwrap();
//! let mut set = Trie::builder();
//! set.push(Some("yes"), &[id(3), id(5)]);
//! set.push(Some("no"), &[id(3), id(7)]);
//! let sampler = TokenTrieSampler::new(SpanRules::for_constraint(set.build()?, 16)?.into(), Mode::Greedy);
//! let handle = sampler.handle(); // `sampler.into_raw(init)` then goes first into a chain of llama.cpp
//! handle.accept_all(&[id(3), id(7)])?;
//! assert_eq!(handle.leaf().unwrap().name.as_deref(), Some("no"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | what it holds |
//! | --- | --- |
//! | `abi` | llama.cpp's types, as its header lays them out |
//! | `table` | `llama_sampler_init`, handed in by its address, and the callbacks (unsafe) |
//! | `candidates` | shrinking an array of candidates |
//! | `status` | what the owner sees and steers |
//! | `exit` | the end of the process (unsafe) |

pub mod abi;
mod candidates;
pub mod exit;
mod status;
mod table;
#[cfg(test)]
mod tests;

pub use status::{SamplerCounts, SamplerHandle, SamplerStatus};
pub use table::SamplerInit;

use abi::RawSampler;
use status::{Inner, SharedState};
use std::sync::Arc;
use trie_core::{Mode, Span, SpanRules};

/// A token trie as a sampler for a chain of llama.cpp: put it **first**, since after top-k, top-p or a temperature of 0
/// the legal tokens may be gone.
///
/// Allowed candidates move to the front and the array shrinks, which costs `O(allowed)` and no pass over the
/// vocabulary. In [`Mode::Greedy`] one candidate remains, already selected; in [`Mode::Sampled`] the rest of the chain
/// draws among the allowed.
///
/// `llama_sampler_sample` accepts the token by itself: do not accept it again.
///
/// [`into_raw`](Self::into_raw) makes a sampler for whatever llama.cpp the process has loaded. The crate
/// `llama-sampler` makes one for the crate `llama-cpp-2`.
///
/// # Limits
///
/// Device-side (backend) sampling is not provided yet. llama.cpp has no way to return an error from a callback: an
/// illegal token at the root is ignored, deeper it turns the span off, and the status says so.
#[derive(Debug)]
pub struct TokenTrieSampler {
    shared: Arc<SharedState>,
}

impl TokenTrieSampler {
    /// A sampler armed at the root of the first trie.
    pub fn new(rules: Arc<SpanRules>, mode: Mode) -> Self {
        Self::from_span(Span::new(rules), mode)
    }

    /// A sampler that goes on from where this span stands.
    pub fn from_span(span: Span, mode: Mode) -> Self {
        Self { shared: Arc::new(SharedState::new(Inner::new(span, mode))) }
    }

    /// The owner's end: reads and steers the sampler once a chain has taken it.
    pub fn handle(&self) -> SamplerHandle {
        SamplerHandle(Arc::clone(&self.shared))
    }

    /// A `llama_sampler *` for the llama.cpp that `init` belongs to; null where that made none.
    ///
    /// Whoever has it owns it: `llama_sampler_chain_add` of that library takes it over, else `llama_sampler_free` of
    /// that library frees it. Versions of llama.cpp that were looked at are named in [`abi`].
    pub fn into_raw(self, init: SamplerInit) -> *mut RawSampler {
        table::shell(self.shared, init)
    }
}

/// A clone stands where the original stands and is independent of it.
impl Clone for TokenTrieSampler {
    fn clone(&self) -> Self {
        Self { shared: Arc::new(self.shared.copy()) }
    }
}
