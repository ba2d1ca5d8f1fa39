//! Token tries: the finite set of token sequences that a language model may choose from.
//!
//! A [`TrieBuilder`] builds an immutable [`Trie`]. A [`Cursor`] is a position in a trie. A [`Span`] is one constrained
//! stretch of output. A [`Sampler`] also chooses a token from a row of logits, and a [`Batch`] does so for many rows.
//! This crate does not depend on files, JSON, llama.cpp or Python. Only `set/storage/memory.rs`, which lends memory,
//! contains `unsafe` code.
//!
//! ```
//! use trie_core::{Sampler, SamplerOptions, SpanRules, TokenId, Trie};
//! use std::sync::Arc;
//!
//! let mut builder = Trie::builder();
//! builder.push(Some("THINK"), &[5, 6].map(|id| TokenId::new(id).unwrap()));
//! builder.push(Some("STOP"), &[TokenId::new(2).unwrap()]);
//! let rules = SpanRules::new([("action".to_owned(), builder.build()?.into())], 8)?;
//! let mut sampler = Sampler::new(Arc::new(rules), SamplerOptions::default())?;
//!
//! // The model likes token 7 best, but only 2 and 5 may come, and after 5 the 6 is forced.
//! let logits = [0.0, 0.1, 0.2, 0.3, 0.4, 0.9, 0.6, 9.0];
//! let mut tokens = Vec::new();
//! sampler.advance(&logits, &mut tokens)?;
//! assert_eq!(tokens, [TokenId::new(5).unwrap(), TokenId::new(6).unwrap()]);
//! assert_eq!(sampler.span().leaf().unwrap().name.as_deref(), Some("THINK"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! Token ids are 0 … 2^31−1; a trie has fewer than 2^32−1 nodes and less than 4 GiB of names.

mod machine;
mod rows;
mod scoring;
mod set;
pub mod work;

/// The arrays of a set and the code that fills them, for the crate that stores sets in files. They may change in every
/// version.
#[doc(hidden)]
pub mod storage {
    pub use crate::set::builder::{SortedLeaf, fits};
    pub use crate::set::damage::{PendingCheck, Verify};
    pub use crate::set::graph::Graph;
    pub use crate::set::storage::layout::{Cursors, Sink};
    pub use crate::set::storage::memory::{Array, Memory};
    pub use crate::set::storage::names::Names;
    pub use crate::set::storage::packed::PackedInts;
    pub use crate::set::storage::store::{LeafTable, Store};
    pub use crate::set::trie::SetInfo;
    pub use crate::set::weights::Weights;
}

pub use machine::constraint::{
    AllExcept, AnyConstraint, AnyState, Budget, Changes, Constraint, Ending, FilterError, FilteredTrie, GateError,
    Mask, Next, NotListed, Opening, PatchError, PatchedState, PatchedTrie, Problem, Role, Scratch, Sequence,
    SequenceError, SequenceState, Special, Step, ThinkGate, ThinkOptions, ThinkState, Thought, Tokens, TrieState,
    Unconstrained, WeightedList, WeightedTokens,
};
pub use machine::span::{
    After, Allowed, ForcedRun, Observation, RulesError, Span, SpanError, SpanRules, SpanState, Status, UnknownPath,
};
pub use rows::adjustments::LogitBias;
pub use rows::batch::{
    Batch, BatchError, BatchMask, BeamOptions, BeamSearch, Child, Children, Hypothesis, MaskMemory, NoRepeat, Rows,
    RowsError, RowsMut, ScoreMode,
};
pub use rows::chooser::{Mode, RowChooser, SamplerOptions};
pub use rows::element::Logit;
pub use rows::kernel::{BestToken, argmax, clear_bits, fill_bits, mask_row};
pub use rows::logits;
pub use rows::row::bitmask;
pub use rows::sampler::{RowError, Sampler, SamplerError};
pub use rows::settings::{DrawError, DrawSetting, DrawSettings};
pub use rows::softmax::{log_add, log_probability, log_sum_exp};
pub use scoring::{
    Choice, ChooseError, ChooseOptions, ChooseStats, CorrectedDraw, Correction, CorrectionJob, CorrectionOptions,
    DeadEnd, DecodeCost, Host, Job, PrefixRows, PrefixRowsError, Probability, ProbabilityJob, ProbabilityOptions,
    PromptProblem, RowProblem, RunError, Scoring, ScoringError, ScoringRequest, TextProbability, TokenTree,
    TreeDecoder, TreeNode, WantedRows, choose, choose_many, run,
};
pub use set::builder::{BuildError, FlatSequences, TrieBuilder};
pub use set::byte_order::{shared_length, shared_prefix, sort_by_bytes};
pub use set::byte_trie::ByteTrie;
pub use set::damage::Damage;
pub use set::graph::{ForcedText, NamedLeaf, TokenizationError, TokenizedLeaf};
pub use set::ids::{LeafId, NodeId, TokenId, TokenIdError};
pub use set::leaf_set::{LeafSet, LeafSetError};
pub use set::levels::Level;
pub use set::operations::{LeafWalk, SetError, SetOperation};
pub use set::storage::arrays::TrieArrays;
#[cfg(not(target_family = "wasm"))]
pub use set::threads::SharedThreads;
pub use set::trie::{Cursor, ForcedTokens, Leaf, NotAllowed, Trie};
pub use set::vocabulary::VocabularyId;
pub use set::weights::WeightsError;
pub use work::ErrorKind;
