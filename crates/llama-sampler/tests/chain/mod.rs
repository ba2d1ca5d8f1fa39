//! Real chains of llama.cpp, ours and those of other programs.

mod constraints;
mod cpp_chain;
mod device;
mod draw;
mod real_chains;
mod vectors;
