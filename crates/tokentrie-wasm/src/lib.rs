//! The C ABI of tokentrie as a module of WebAssembly, and what pages need beside it: vocabularies from a
//! `tokenizer.json`, choices over rows that come later, formats of chats.
//!
//! What `tokentrie-c` exports is in the module as it is: `hosts/typescript` calls it by one table of functions in every
//! runtime. The functions here follow the rules of that header. Texts that they make are read with
//! `tokentrie_wasm_result`.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `host.rs` | memory for calls, and what the module asks its host for |
//! | `vocab.rs` | vocabularies of a `tokenizer.json`, and tokenizers of the host |
//! | `choose.rs` | choices whose rows the host computes when it can |
//! | `chat.rs` | formats of chats |

#![cfg(any(target_family = "wasm", feature = "lints"))]
#![allow(clippy::wildcard_imports, reason = "the named numbers of the header")]

#[cfg(feature = "chat")]
pub mod chat;
pub mod choose;
pub mod host;
pub mod vocab;

// Without a name of it nothing of the crate would be linked.
use tokentrie_c as _;
