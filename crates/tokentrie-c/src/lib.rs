//! The C ABI of tokentrie. `include/tokentrie.h` is made from this crate and says what every function promises.
//!
//! Objects are numbers (`handles.rs`), constraints and calls are JSON, rows of logits are pointers with a length. A
//! function returns a status; `tokentrie_last_error` has the sentence. Panics are caught at the border and become a
//! status.
//!
//!
//! | file | what it holds |
//! | --- | --- |
//! | `abi/` | the functions that C calls, one file a kind of handle; each turns pointers into slices and calls on |
//! | `memory.rs` | pointers of C: the `unsafe` of every function but those named below |
//! | `handles.rs` | numbers for objects; freed and foreign ones are refused |
//! | `more.rs` | for crates that add functions of their own |
//! | `status.rs`, `error.rs` | what went wrong, and the sentence of each thread |
//! | `rtkt.rs` | the binary form of a trie |
//! | `chain.rs`, `process.rs` | `llama_sampler_init_token_trie` and the llama.cpp of the process (unsafe) |
//! | `session/` | models, with the feature `llama` |

#![allow(non_camel_case_types, reason = "names of C")]
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links, reason = "it is the documentation of the header")]
#![allow(clippy::wildcard_imports, reason = "the named numbers of the header")]

pub mod abi;
#[cfg(not(target_family = "wasm"))]
mod chain;
mod error;
mod handles;
mod memory;
pub mod more;
#[cfg(not(target_family = "wasm"))]
mod process;
pub mod rtkt;
#[cfg(feature = "llama")]
mod session;
pub mod status;

pub use memory::{In, Out};
