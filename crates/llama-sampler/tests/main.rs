//! The sampler and the runtime; what needs a linked llama.cpp is left out without it. One binary, because each is
//! linked anew.

mod callbacks;
mod candidates;
#[cfg(feature = "llama")]
mod chain;
mod common;
#[cfg(feature = "llama")]
mod runtime;
#[cfg(feature = "llama")]
mod text;
