//! A chain with a constraint first, of which the graph runs a part.

use super::nodes::linked_graph;
use super::stateless::{flat, token_alone};
use super::{DeviceError, raw};
use crate::linked::{IntoLlamaSampler as _, owned};
use llama_callbacks::{GraphOptions, SamplerHandle, TokenTrieSampler};
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_sys_2::{llama_sampler_chain_get, llama_sampler_chain_n, llama_sampler_clone};

/// A chain for [`AttachedChains`](super::AttachedChains): a constraint, and samplers that choose among the tokens that
/// it allows.
#[derive(Debug)]
pub struct DeviceChain {
    pub(super) handle: SamplerHandle,
    pub(super) place: Place,
}

/// Where a chain chooses.
#[derive(Debug)]
pub(super) enum Place {
    /// On the host, among the logits that the graph gathered. This chain is never attached: the graph has a sampler of
    /// its own, over the same state.
    Host(LlamaSampler),
    /// In the graph, as far as the device can.
    Graph(LlamaSampler),
}

impl DeviceChain {
    /// Least number of tokens that nodes gather. So nodes are rarely built anew as a value goes on.
    pub const LEAST: usize = 16;
    /// Most tokens that are gathered. Where more are allowed, the row of logits is copied as if there were no chain.
    pub const MOST: usize = 4096;

    /// A chain that chooses on the host, among the logits that the graph gathered. `tail` follows the constraint, as in
    /// any chain: the same tokens come as from a chain on the host, bit for bit.
    pub fn new(sampler: TokenTrieSampler, tail: impl IntoIterator<Item = LlamaSampler>) -> Self {
        let handle = sampler.handle();
        let first = std::iter::once(sampler.into_llama_sampler());
        Self { handle, place: Place::Host(LlamaSampler::chain(first.chain(tail), true)) }
    }

    /// A chain that draws in the graph, as far as the device can; the token alone is copied. `tail` ends with a sampler
    /// that draws. Devices round the sums of a draw otherwise than the host does: where a number falls on the border
    /// of two tokens, the same seed may give the other one.
    ///
    /// # Errors
    /// [`DeviceError::Tail`]: llama.cpp's `greedy`, which selects an index among the candidates in place of a token,
    /// or a chain in the chain.
    pub fn with_graph_draw(
        sampler: &TokenTrieSampler,
        tail: impl IntoIterator<Item = LlamaSampler>,
    ) -> Result<Self, DeviceError> {
        let handle = sampler.handle();
        let tail: Vec<LlamaSampler> = tail.into_iter().collect();
        for sampler in &tail {
            let name = sampler.name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let reason = match name.as_str() {
                "greedy" => "in a graph it selects an index, not a token",
                "chain" => "list its samplers one by one",
                _ => continue,
            };
            return Err(DeviceError::Tail { name, reason });
        }
        Ok(Self { place: Place::Graph(graph_chain(&handle, Self::LEAST, tail)), handle })
    }

    /// Returns the handle of the constraint.
    pub fn handle(&self) -> &SamplerHandle {
        &self.handle
    }

    /// Number of tokens that nodes should gather now from a row of this length; `None` where the whole row is needed.
    pub(super) fn selection_len(&self, n_vocab: usize) -> Option<usize> {
        let count = self.handle.count_allowed(Self::MOST)?;
        Some(count.next_power_of_two().clamp(Self::LEAST, Self::MOST).min(n_vocab))
    }

    /// Prepares for a graph with nodes that gather this many, in which the chain has not been yet. Returns the sampler
    /// to attach, if the chain does not own it.
    pub(super) fn renew(&mut self, most: usize) -> Option<LlamaSampler> {
        match &mut self.place {
            Place::Host(_) => Some(LlamaSampler::chain([constraint(&self.handle, most, false)], true)),
            Place::Graph(chain) => {
                let tail = tail_of(chain);
                *chain = graph_chain(&self.handle, most, tail);
                None
            }
        }
    }
}

/// The constraint as a sampler of a graph.
fn constraint(handle: &SamplerHandle, most: usize, weighed: bool) -> LlamaSampler {
    let options = GraphOptions { functions: linked_graph(), most, weighed };
    let raw = TokenTrieSampler::of_handle(handle).into_raw_in_graph(options);
    // SAFETY: it was made just now, by the llama.cpp that is linked in.
    unsafe { owned(raw) }
}

/// The constraint, the tail with a [`flat`] behind each of its samplers, and [`token_alone`].
fn graph_chain(handle: &SamplerHandle, most: usize, tail: Vec<LlamaSampler>) -> LlamaSampler {
    let first = std::iter::once(constraint(handle, most, true));
    let tail = tail.into_iter().flat_map(|sampler| [sampler, flat()]);
    LlamaSampler::chain(first.chain(tail).chain([token_alone()]), true)
}

/// Copies the tail of a [`graph_chain`], with its states. The copies are in no graph.
fn tail_of(chain: &LlamaSampler) -> Vec<LlamaSampler> {
    let chain = raw(chain);
    // SAFETY: the chain is alive and borrowed.
    let count = unsafe { llama_sampler_chain_n(chain) };
    let copy = |index| {
        // SAFETY: as before; the index is one of the chain's.
        let sampler = unsafe { llama_sampler_chain_get(chain, index) };
        // SAFETY: the sampler of a living chain.
        let copy = unsafe { llama_sampler_clone(sampler) };
        // SAFETY: the copy is nobody else's.
        unsafe { owned(copy.cast()) }
    };
    (1..count - 1).step_by(2).map(copy).collect()
}
