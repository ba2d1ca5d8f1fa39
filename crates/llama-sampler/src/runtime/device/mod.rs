//! Chains of llama.cpp in the compute graph of a context: the device gathers the logits of the legal tokens, and only
//! these leave it, in place of a row as long as the vocabulary.
//!
//! | file | contents |
//! | --- | --- |
//! | `nodes` | the nodes of a sampler in the graph (unsafe) |
//! | `chain` | a chain: where it chooses, and what its nodes gather (unsafe) |
//! | `stateless` | samplers that stand between others in the graph (unsafe) |
//! | `attached` | chains that are attached to a context (unsafe) |
//! | `gathered` | rows of one context, of which it gathers what a span allows (unsafe) |

mod attached;
mod chain;
mod gathered;
mod nodes;
mod stateless;

pub use attached::AttachedChains;
pub use chain::DeviceChain;
pub(super) use gathered::GatheredRows;
pub use nodes::linked_graph;

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_sys_2::llama_sampler;
use trie_core::ErrorKind;

/// Reason why a chain cannot run in a graph, or chose nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A sampler that cannot follow on the device.
    #[error("{name:?} after a constraint in the graph is not supported: {reason}")]
    Tail {
        /// Name of the sampler.
        name: String,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// A sequence that the context does not have.
    #[error("invalid sequence: expected 0 to {most}, got {sequence}")]
    Sequence {
        /// The sequence that was given.
        sequence: i32,
        /// The highest sequence of the context.
        most: i64,
    },
    /// A sequence to which no chain is attached.
    #[error("unknown sequence: {sequence}; no chain is attached to it")]
    UnknownSequence {
        /// The sequence that was given.
        sequence: i32,
    },
    /// Two chains for one sequence.
    #[error("invalid chains: expected one for each sequence, got two for {sequence}")]
    RepeatedSequence {
        /// The sequence that was given twice.
        sequence: i32,
    },
    /// Rules made for a larger vocabulary than the model's.
    #[error("the rules were made for {rules} token ids, the model has {n_vocab}")]
    Vocabulary {
        /// Ids in the rules.
        rules: usize,
        /// Ids in the model.
        n_vocab: usize,
    },
    /// A context whose address llama-cpp-2 does not tell.
    #[error("the context of this llama-cpp-2 is not supported: its address is not known")]
    Address,
    /// A token of the batch whose logits were not requested, or none.
    #[error("invalid row: expected the index of a token whose logits were requested, got {row}")]
    Row {
        /// The index that was given.
        row: i32,
    },
    /// No token is allowed, or the chain selected none.
    #[error("the chain selected no token")]
    NothingSelected,
    /// The graph selected a token that is not allowed. It was not accepted.
    #[error(
        "the graph selected token {token}, which is not allowed: the row is of another sequence, or of another state"
    )]
    Illegal {
        /// Id of the token.
        token: i32,
    },
}

impl DeviceError {
    /// Returns the kind of the error, as hosts map it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Tail { .. }
            | Self::Sequence { .. }
            | Self::UnknownSequence { .. }
            | Self::RepeatedSequence { .. } => ErrorKind::Argument,
            Self::Vocabulary { .. } => ErrorKind::Vocabulary,
            Self::Address => ErrorKind::Model,
            Self::Row { .. } => ErrorKind::Row,
            Self::NothingSelected | Self::Illegal { .. } => ErrorKind::NotAllowed,
        }
    }
}

/// The sampler that a [`LlamaSampler`] owns.
fn raw(sampler: &LlamaSampler) -> *mut llama_sampler {
    // SAFETY: `LlamaSampler` has one field, that pointer: `linked.rs` compares size and alignment. The pointer is
    // copied, not the ownership.
    unsafe { std::mem::transmute_copy::<LlamaSampler, *mut llama_sampler>(sampler) }
}
