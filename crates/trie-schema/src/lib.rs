//! JSON Schema as a rule over bytes.
//!
//! A [`JsonSchema`] is a [`Rule`](trie_rules::Rule) like any other: its states are small values, equal for documents
//! with the same continuations. Every allowed prefix can be completed. Any tokenisation of a legal text is legal.
//!
//! ```
//! use std::sync::Arc;
//! use trie_core::{AnyConstraint, Scratch, Span, SpanRules, Status, TokenId};
//! use trie_rules::TokenBytes;
//! use trie_schema::{JsonSchema, SchemaOptions};
//!
//! let schema = JsonSchema::new(r#"{"enum": ["red", "green"]}"#, SchemaOptions::default())?;
//! let id = |n: u32| TokenId::new(n).unwrap();
//! let pieces = ["\"", "r", "re", "ed", "green\"", "d\"", "x"];
//! let tokens = TokenBytes::new(7, pieces.iter().zip(0..).map(|(piece, n)| (piece.as_bytes(), id(n))))?;
//! let mut span = Span::new(SpanRules::for_constraint(AnyConstraint::new(schema.over(&Arc::new(tokens))?), 7)?.into());
//! let mut scratch = Scratch::default();
//! span.accept(id(0))?;
//! assert_eq!(span.allowed(&mut scratch).iter().map(|t| t.get()).collect::<Vec<_>>(), [1, 2, 4]);
//! span.accept_all(&[id(2), id(5)])?;
//! assert_eq!(span.status(), Status::Complete);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod compile;
mod event;
mod formula;
mod json;
mod machine;
mod schema;
mod shape;
mod values;
mod writable;

pub use event::{Event, MOST_LEVELS, RemainingText};
pub use formula::Types;
pub use machine::{Place, prepare_vocabulary};
pub use schema::{
    Closing, Formats, JsonSchema, Order, SchemaCache, SchemaError, SchemaOptions, SchemaWarning, Whitespace,
};
pub use values::{MemberNames, ValueId, ValueState, Values};
pub use writable::Writable;
