//! The functions that C calls, one file a kind of handle.

mod batch;
mod cache;
mod chain;
#[cfg(feature = "llama")]
mod eliza;
mod library;
pub(crate) mod parts;
mod sampler;
#[cfg(feature = "llama")]
mod session;
mod structs;
pub(crate) mod trie;
pub(crate) mod vocab;

pub use batch::*;
pub use cache::*;
pub use chain::*;
#[cfg(feature = "llama")]
pub use eliza::*;
pub use library::*;
pub use sampler::*;
#[cfg(feature = "llama")]
pub use session::*;
pub use structs::*;
pub use trie::*;
pub use vocab::*;
