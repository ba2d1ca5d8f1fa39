//! Shared layer of all hosts of tokentrie: no Python, no C types.
//!
//! | folder | what it holds |
//! | --- | --- |
//! | `constraint/` | what may be written, as data: one JSON form, made into a constraint over a vocabulary |
//! | `json/` | JSON to types and back, with errors that say where |
//! | `call/` | generations and choices: options, whose turn it is, what ends a call |
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
