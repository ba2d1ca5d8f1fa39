//! What the test files share.
#![allow(unused_imports, unreachable_pub)]

pub mod fake_llama;
pub mod plain;

pub use llama_callbacks::abi;
pub use plain::*;
