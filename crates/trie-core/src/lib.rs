//! Token tries: the finite set of token sequences that a language model may choose from.
//!
//! A [`Payload`] (JSON) or a [`TrieBuilder`] gives an immutable [`Trie`]; a [`Cursor`] is a position in it;
//! a [`Span`] is the life of one constrained stretch of output; a [`Sampler`] adds the choice over a row of
//! logits; a [`Batch`] is many rows. Nothing here knows of llama.cpp or of Python; `map.rs` alone, which maps
//! files, is `unsafe`.
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

mod arrays;
mod batch;
mod builder;
mod byte_trie;
mod cache;
mod constraint;
mod draw;
mod drawing;
mod element;
mod export;
mod external;
mod file;
mod graph;
mod ids;
mod kernel;
mod layout;
mod leaf_set;
mod levels;
pub mod logits;
#[allow(unsafe_code, reason = "slices of mapped files and the map itself; every other file is safe")]
mod map;
mod outline;
mod packed;
mod payload;
mod prefix_table;
mod row;
mod sampler;
mod scoring;
mod sets;
mod softmax;
mod span;
mod store;
mod trie;
mod weights;

pub use arrays::TrieArrays;
pub use batch::{
    Batch, BatchError, BatchMask, BeamOptions, BeamSearch, Child, Children, Hypothesis, MaskMemory, NoRepeat, Rows,
    RowsError, RowsMut, ScoreMode,
};
pub use builder::{BuildError, FlatSequences, TrieBuilder};
pub use byte_trie::{ByteTrie, ByteTrieError};
pub use cache::{CacheStats, TrieCache};
pub use constraint::{
    AnyConstraint, AnyState, Budget, Constraint, Ending, Except, FilterError, FilteredTrie, GateError, Mask, Next,
    NotListed, Opening, Problem, Role, Scratch, Sequence, SequenceError, SequenceState, Step, ThinkGate, ThinkOptions,
    ThinkState, Thought, Tokens, TrieState, Unconstrained, WeightedList, WeightedTokens,
};
pub use draw::{DrawError, DrawSettings};
pub use drawing::{BoxKind, DrawnBox, svg};
pub use element::Logit;
pub use export::{NotInGbnf, TextGrammar};
pub use external::{ExternalBuilder, ExternalError};
pub use file::{FileError, FileOptions, FileProblem, FileStamp, VocabularyId};
pub use graph::{ForcedText, NamedLeaf, TokenizationError, TokenizedLeaf};
pub use ids::{LeafId, NodeId, TokenId, TokenIdError};
pub use kernel::{Pick, argmax, clear_bits, fill_bits, mask_row};
pub use leaf_set::{LeafSet, LeafSetError};
pub use levels::Level;
pub use outline::{OutlineLimits, OutlineNode};
pub use payload::{DroppedLeaf, Payload, PayloadError, PayloadReport};
pub use prefix_table::{PrefixTable, PrefixTableError, PrefixTableReport, Skipped, SkippedWhy, Strictness};
pub use sampler::{Mode, RowError, Sampler, SamplerError, SamplerOptions};
pub use scoring::{
    Choice, ChooseError, ChooseOptions, ChooseStats, Decoded, PrefixRows, PrefixRowsError, PromptProblem, RowProblem,
    TokenTree, TreeDecoder, TreeNode, choose, choose_many,
};
pub use sets::{LeafWalk, SetError, SetOperation};
pub use softmax::{log_add, log_probability, log_sum_exp};
pub use span::{
    After, Allowed, ForcedRun, Observed, RulesError, Span, SpanError, SpanRules, SpanState, Status, UnknownPath,
};
pub use trie::{Cursor, Forced, Leaf, NotAllowed, Trie};
pub use weights::WeightsError;
