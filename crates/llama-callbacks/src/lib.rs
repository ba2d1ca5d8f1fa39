//! A token trie as a sampler inside any llama.cpp: a table of callbacks over a shared span.
//!
//! This crate does not link llama.cpp. [`TokenTrieSampler::into_raw`] makes a sampler for any llama.cpp that the
//! process has loaded, from the address of its `llama_sampler_init`. Once a chain has taken the sampler, a
//! [`SamplerHandle`] reads and controls it. [`exit`] makes the end of a process wait for work in llama.cpp.
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
//! | file | contents |
//! | --- | --- |
//! | `abi` | llama.cpp's types, as its header lays them out |
//! | `table` | `llama_sampler_init`, handed in by its address, and the callbacks (unsafe) |
//! | `candidates` | shrinking an array of candidates |
//! | `graph` | the callbacks of a sampler in the compute graph (unsafe) |
//! | `status` | the handle, which reads and controls a sampler |
//! | `exit` | the end of the process (unsafe) |

pub mod abi;
mod candidates;
pub mod exit;
mod graph;
mod status;
mod table;
#[cfg(test)]
mod tests;

pub use graph::{GraphFunctions, GraphInputs, GraphOptions};
pub use status::{SamplerCounts, SamplerHandle, SamplerStatus};
pub use table::SamplerInit;

use abi::RawSampler;
use graph::GraphSide;
use status::{Inner, SharedState};
use std::sync::Arc;
use trie_core::{Mode, Span, SpanRules};

/// A token trie as a sampler for a chain of llama.cpp. Put it **first**: top-k, top-p or a temperature of 0 before it
/// may have removed the legal tokens.
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
/// llama.cpp has no way to return an error from a callback. So an illegal token at the root is ignored, and an illegal
/// token below the root turns the span off; the status reports it.
#[derive(Debug)]
pub struct TokenTrieSampler {
    shared: Arc<SharedState>,
}

impl TokenTrieSampler {
    /// A sampler armed at the root of the first trie.
    pub fn new(rules: Arc<SpanRules>, mode: Mode) -> Self {
        Self::from_span(Span::new(rules), mode)
    }

    /// A sampler that goes on from the position of this span.
    pub fn from_span(span: Span, mode: Mode) -> Self {
        Self { shared: Arc::new(SharedState::new(Inner::new(span, mode))) }
    }

    /// Another sampler over the state of a handle, for hosts that keep one in the compute graph and one outside. They
    /// share the position, so each token is accepted in one of both alone.
    pub fn of_handle(handle: &SamplerHandle) -> Self {
        Self { shared: Arc::clone(&handle.0) }
    }

    /// The handle, which reads and controls the sampler once a chain has taken it.
    pub fn handle(&self) -> SamplerHandle {
        SamplerHandle(Arc::clone(&self.shared))
    }

    /// A `llama_sampler *` for the llama.cpp of `init`; null if that library made none.
    ///
    /// The caller owns the sampler. `llama_sampler_chain_add` of the same library takes it over; otherwise
    /// `llama_sampler_free` of the same library frees it. The versions of llama.cpp that were compared are listed in
    /// [`abi`].
    pub fn into_raw(self, init: SamplerInit) -> *mut RawSampler {
        table::shell(self.shared, init, None)
    }

    /// A `llama_sampler *` that may run in the compute graph, where llama.cpp asks for it (`llama_set_sampler`): the
    /// device gathers the logits of the allowed tokens, and only these leave it. Elsewhere it runs on the host, as that
    /// of [`into_raw`](Self::into_raw). Null if the library made none.
    ///
    /// In the graph the mode has no effect: what follows selects among the allowed. llama.cpp's own `greedy` must not
    /// follow, because it selects the index among the candidates, not the token. A sampler in the graph that is not the
    /// first of its chain closes.
    pub fn into_raw_in_graph(self, options: GraphOptions) -> *mut RawSampler {
        table::shell(self.shared, options.functions.init(), Some(GraphSide::new(options)))
    }
}

/// A clone begins at the position of the original, and is independent of it.
impl Clone for TokenTrieSampler {
    fn clone(&self) -> Self {
        Self { shared: Arc::new(self.shared.copy()) }
    }
}
