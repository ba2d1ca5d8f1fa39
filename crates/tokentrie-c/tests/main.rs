//! The C library, called from Rust. One binary, because each is linked anew.

mod common;
mod rtkt_cases;
