//! Token tries: the finite set of token sequences that a language model may choose from.
//!
//! A [`Payload`] (JSON) or a [`TrieBuilder`] gives an immutable [`Trie`]; a [`Cursor`] is a position in it;
//! a [`Span`] is the life of one constrained stretch of output; a [`Sampler`] adds the choice over a row of
//! logits; a [`Batch`] is many rows. Nothing here knows of llama.cpp or of Python; `set/storage/map.rs` alone, which
//! maps files, is `unsafe`.
//!
//! ```
//! use trie_core::{Payload, Sampler, SamplerOptions, SpanRules, TokenId};
//! use std::sync::Arc;
//!
//! let json = br#"{"modelId": "m", "descriptors": [{"path": "action", "leaves": [
//!     {"name": "THINK", "tokens": [5, 6]}, {"name": "STOP", "tokens": [2]}]}]}"#;
//! let payload = Payload::from_json(json, Some(8))?;
//! let rules = SpanRules::new(payload.constraints, 8)?;
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

pub use machine::cache::{CacheStats, TrieCache};
pub use machine::constraint::{
    AnyConstraint, AnyState, Budget, Changes, Constraint, Ending, Except, FilterError, FilteredTrie, GateError, Mask,
    Next, NotListed, Opening, PatchError, PatchedState, PatchedTrie, Problem, Role, Scratch, Sequence, SequenceError,
    SequenceState, Special, Step, ThinkGate, ThinkOptions, ThinkState, Thought, Tokens, TrieState, Unconstrained,
    WeightedList, WeightedTokens,
};
pub use machine::payload::{DroppedLeaf, Payload, PayloadError, PayloadReport};
pub use machine::span::{
    After, Allowed, ForcedRun, Observed, RulesError, Span, SpanError, SpanRules, SpanState, Status, UnknownPath,
};
pub use rows::adjustments::LogitBias;
pub use rows::batch::{
    Batch, BatchError, BatchMask, BeamOptions, BeamSearch, Child, Children, Hypothesis, MaskMemory, NoRepeat, Rows,
    RowsError, RowsMut, ScoreMode,
};
pub use rows::chooser::{Mode, RowChooser, SamplerOptions};
pub use rows::element::Logit;
pub use rows::kernel::{Pick, argmax, clear_bits, fill_bits, mask_row};
pub use rows::logits;
pub use rows::row::bitmask;
pub use rows::sampler::{RowError, Sampler, SamplerError};
pub use rows::settings::{DrawError, DrawSetting, DrawSettings};
pub use rows::softmax::{log_add, log_probability, log_sum_exp};
pub use scoring::{
    Asked, Choice, ChooseError, ChooseOptions, ChooseStats, DeadEnd, Decoded, Host, Job, PrefixRows, PrefixRowsError,
    PromptProblem, RowProblem, RunError, Scoring, ScoringError, TokenTree, TreeDecoder, TreeNode, Want, choose,
    choose_many, run,
};
pub use set::builder::{BuildError, FlatSequences, TrieBuilder};
pub use set::byte_trie::{ByteTrie, ByteTrieError};
pub use set::drawing::{BoxKind, DrawnBox, svg};
pub use set::export::{NotInGbnf, TextGrammar};
pub use set::external::{ExternalBuilder, ExternalError};
pub use set::file::{FileError, FileOptions, FileProblem, FileStamp, VocabularyId, replace_whole};
pub use set::graph::{ForcedText, NamedLeaf, TokenizationError, TokenizedLeaf};
pub use set::ids::{LeafId, NodeId, TokenId, TokenIdError};
pub use set::leaf_set::{LeafSet, LeafSetError};
pub use set::levels::Level;
pub use set::operations::{LeafWalk, SetError, SetOperation};
pub use set::outline::{OutlineLimits, OutlineNode};
pub use set::prefix_table::{PrefixTable, PrefixTableError, PrefixTableReport, Skipped, SkippedWhy, Strictness};
pub use set::storage::arrays::TrieArrays;
#[cfg(not(target_family = "wasm"))]
pub use set::threads::SharedThreads;
pub use set::trie::{Cursor, Forced, Leaf, NotAllowed, Trie};
pub use set::weights::WeightsError;
pub use work::ErrorKind;
