//! What the test files share.
#![allow(unused_imports, unreachable_pub)]

mod linked;
#[path = "../../../llama-callbacks/tests/common/plain.rs"]
pub mod plain;

pub use linked::*;
pub use plain::*;
