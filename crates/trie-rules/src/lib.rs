//! Constraints over bytes: a rule decides byte by byte which texts are legal, and becomes a mask of allowed tokens.
//!
//! A [`Rule`] is a machine over bytes. [`ByRule`] walks it through the tokens of a vocabulary ([`TokenBytes`]) and is a
//! [`Constraint`](trie_core::Constraint) like a trie: samplers, batches, generation and the C callbacks take it. Any
//! tokenisation of a legal text is legal. A token is legal if and only if the text, with all bytes of the token, still
//! begins some legal text.
//!
//! ```
//! use std::sync::Arc;
//! use trie_core::{AnyConstraint, Span, SpanRules, TokenId};
//! use trie_rules::{ByRule, Regex, TokenBytes};
//!
//! let pieces = ["1", "2", "12", "-", "2-1", "x"];
//! let id = |n: usize| TokenId::new(n as u32).unwrap();
//! let tokens = TokenBytes::new(6, pieces.iter().enumerate().map(|(n, piece)| (piece.as_bytes(), id(n))))?;
//! let dates = ByRule::new(Regex::new("[0-9]{2}-[0-9]")?, Arc::new(tokens))?;
//! let mut span = Span::new(SpanRules::for_constraint(AnyConstraint::new(dates), 6)?.into());
//! let mut scratch = trie_core::Scratch::default();
//! assert_eq!(span.allowed(&mut scratch).iter().map(|t| t.get()).collect::<Vec<_>>(), [0, 1, 2]);
//! span.accept(id(0))?;
//! assert_eq!(span.allowed(&mut scratch).iter().map(|t| t.get()).collect::<Vec<_>>(), [0, 1, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod any_rule;
mod automaton;
mod check;
mod context_free;
mod grammar;
mod number_set;
mod placed;
mod regular;
mod rule;
mod samples;
mod text_set;
mod texts;
mod tokens;
#[cfg(feature = "wasm")]
mod wasm;

pub use any_rule::{AnyRule, CompiledRule, Read, SpelledBetween};
pub use automaton::regex::{Regex, RegexError};
pub use automaton::{Automaton, AutomatonError, AutomatonLimits};
pub use check::{Broken, CheckExtent, check_rule};
pub use context_free::{ContextFree, ContextFreeState, EmbeddedRule, SchemaReader};
pub use grammar::{Example, Grammar, GrammarError, GrammarOptions, GrammarProblem, GrammarState, Place, TextOf};
pub use number_set::{Decimal, NumberError, NumberMachine, NumberSet, NumberSpelling, NumberState};
pub use placed::{DelimitedRule, PlacedState, fit_behind};
pub use regular::{
    Choice, ChoiceState, Clock, Documents, DocumentsBuilder, DocumentsState, Machine, Moment, MomentFormat,
    NumberBound, NumberOptions, Parts, PartsState, Regular, RegularError, RegularState, StringOptions, Timespec, Value,
};
pub use rule::{Rule, Walker};
pub use samples::samples;
pub use text_set::{CharKinds, CharRun, TextFormat, TextMachine, TextSet, TextState};
pub use texts::{TextsError, texts};
pub use tokens::by_rule::{ByRule, ByRuleError, ByRuleState, DeadEnd};
pub use tokens::lazy_walk::LazyWalk;
pub use tokens::masks::{Legal, MaskLimits, MaskStats};
pub use tokens::memory::{KeptStats, MaskMemory};
pub use tokens::order::{TokenTree, TreeNode};
#[cfg(not(target_family = "wasm"))]
pub use tokens::prepare::{Preparation, PrepareLimits};
pub use tokens::spelling::{Spelling, Tokenize};
pub use tokens::token_bytes::{TokenBytes, TokenBytesError};
#[cfg(feature = "wasm")]
pub use wasm::{Wasm, WasmError};
