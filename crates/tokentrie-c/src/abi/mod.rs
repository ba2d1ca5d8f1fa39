//! The functions that C calls, one file a kind of handle.

mod batch;
mod cache;
mod chain;
// Its handles are pointers.
#[cfg(all(feature = "llama", target_pointer_width = "64"))]
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
#[cfg(all(feature = "llama", target_pointer_width = "64"))]
pub use eliza::*;
pub use library::*;
pub use sampler::*;
#[cfg(feature = "llama")]
pub use session::*;
pub use structs::*;
pub use trie::*;
pub use vocab::*;
