//! The C library, called from Rust. One binary, because each is linked anew.

mod common;
mod constraints;
mod rtkt_cases;
