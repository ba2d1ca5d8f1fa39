//! Constraints and calls as data: the layer that all hosts of tokentrie share.
//!
//! A [`Spec`](constraint::Spec) is a constraint with a JSON form: a list of texts, a regular expression, a JSON Schema,
//! a form. It is built over a vocabulary into what samplers run. A call of a model is a request with a JSON form too,
//! and `engine::Runtime::run` runs every one of them. Hosts convert values and hold handles; this crate has no type of
//! Python or C.
//!
//! ```
//! use std::sync::Arc;
//! use tokentrie::constraint::{DataOnly, Over, Spec};
//! use trie_core::{Scratch, Span, SpanRules, TokenId};
//! use trie_text::{TokenKind, Vocab};
//!
//! let pieces = ["1", "2", "12", "-", "2-1", "x"];
//! let tokens = pieces.iter().map(|piece| (piece.as_bytes(), TokenKind::Text));
//! let vocab = Arc::new(Vocab::new(tokens, vec![], None)?);
//! let spec = Spec::from_json(br#"{"regex": "[0-9]{2}-[0-9]"}"#)?;
//! let spans = spec.constraint(&Over::vocab(&vocab), &DataOnly)?;
//! let mut span = Span::new(SpanRules::for_constraint(spans[0].1.clone(), vocab.len())?.into());
//! span.accept(TokenId::new(0).unwrap())?;
//! let mut scratch = Scratch::default();
//! assert_eq!(span.allowed(&mut scratch).iter().map(|t| t.get()).collect::<Vec<_>>(), [0, 1, 4]);
//!
//! let error = Spec::from_json(br#"{"regx": "[0-9]"}"#).unwrap_err();
//! assert!(error.to_string().contains("regex"), "an unknown kind is refused, and the nearest one named");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading and building take time linear in the text of the spec for sets and texts; rules compile within the limits of
//! their spec. Errors are [`SpecError`](constraint::SpecError) and `GenerateError`: each has the place in the JSON and
//! an `ErrorKind`.
//!
//! | folder | what it holds |
//! | --- | --- |
//! | `constraint/` | constraints as data: one JSON form, built over a vocabulary |
//! | `json/` | JSON to types and back, with errors that say where |
//! | `call/` | generations and choices: their options, their order, their ends |
//! | `engine/` | many calls of one model at once |
//! | `decide/` | typed questions about a state, answered with the probability of every option |
//! | `chat/` | the chat loop: prompt, constraint, reader, finish reasons, probabilities |

#![forbid(unsafe_code)]

pub mod call;
#[cfg(feature = "chat")]
pub mod chat;
pub mod constraint;
#[cfg(feature = "llama")]
pub mod decide;
#[cfg(feature = "llama")]
pub mod engine;
mod json;
