//! The callbacks in a llama.cpp that is written in Rust.

mod callbacks;
mod candidates;
mod common;
mod graph;
