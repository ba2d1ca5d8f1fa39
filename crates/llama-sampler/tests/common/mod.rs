//! What the test files share.
#![allow(unused_imports, unreachable_pub)]

pub mod fake_llama;
#[cfg(feature = "llama")]
mod linked;
pub mod plain;

#[cfg(feature = "llama")]
pub use linked::*;
pub use llama_sampler::abi;
pub use plain::*;
