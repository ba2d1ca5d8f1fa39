//! The core. One binary, because each is linked anew.

mod batch;
mod byte_trie;
mod cache;
mod common;
mod constraints;
mod damage;
mod external;
mod file;
mod filter;
mod gate;
mod graph;
mod host_tries;
mod naive;
mod outline;
mod payload;
mod prefix_table;
mod scoring;
mod sets;
mod span;
mod vectors;
mod weights;
