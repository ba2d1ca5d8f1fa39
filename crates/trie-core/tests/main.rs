//! The core. One binary, because each is linked anew.

mod batch;
mod common;
mod machine;
mod scoring;
mod set;
