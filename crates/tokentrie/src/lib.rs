//! What all hosts of tokentrie share: no Python, no C types.
//!
//! | folder | what it holds |
//! | --- | --- |
//! | `spec/` | what may be written, as data: one JSON form, made into a constraint over a vocabulary |
//! | `options/` | settings of the draw, of generation, choice and chats: defined once, read by name |
//! | `model/` | whose turn it is, what ends a call, the end of the process |
//! | `chat/` | the chat loop: prompt, constraint, reader, finish reasons, probabilities |

#![forbid(unsafe_code)]

pub mod chat;
pub mod model;
pub mod options;
pub mod spec;
