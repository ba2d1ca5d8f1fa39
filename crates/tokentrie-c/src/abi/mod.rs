//! The functions that C calls, one file a kind of handle. The header has them in this order.

pub(crate) mod parts;
mod structs;

mod library;

pub(crate) mod vocab;

pub(crate) mod trie;

mod cache;

#[cfg(feature = "specs")]
pub(crate) mod constraint;

mod sampler;

// Pages walk their rows one by one.
#[cfg(not(target_family = "wasm"))]
mod batch;

#[cfg(not(target_family = "wasm"))]
mod chain;

#[cfg(feature = "llama")]
mod session;

#[cfg(feature = "llama")]
mod choose;

#[cfg(feature = "llama")]
mod chat;

// Its handles are pointers.
#[cfg(all(feature = "llama", target_pointer_width = "64"))]
mod eliza;

#[cfg(not(target_family = "wasm"))]
pub use batch::*;
pub use cache::*;
#[cfg(not(target_family = "wasm"))]
pub use chain::*;
#[cfg(feature = "llama")]
pub use chat::*;
#[cfg(feature = "llama")]
pub use choose::*;
#[cfg(feature = "specs")]
pub use constraint::*;
#[cfg(all(feature = "llama", target_pointer_width = "64"))]
pub use eliza::*;
pub use library::*;
pub use sampler::*;
#[cfg(feature = "llama")]
pub use session::*;
pub use structs::*;
pub use trie::*;
pub use vocab::*;
