//! The sampler and the runtime; what needs a linked llama.cpp is left out without it. One binary, because each is
//! linked anew.

mod callbacks;
mod candidates;
#[cfg(feature = "llama")]
mod chain;
#[cfg(feature = "llama")]
mod choose;
mod common;
#[cfg(feature = "llama")]
mod constraints;
#[cfg(feature = "llama")]
mod cpp_chain;
#[cfg(feature = "llama")]
mod draw;
#[cfg(feature = "llama")]
mod files;
#[cfg(feature = "llama")]
mod forms;
#[cfg(feature = "llama")]
mod heal;
#[cfg(feature = "llama")]
mod rules;
#[cfg(feature = "llama")]
mod runtime;
#[cfg(feature = "llama")]
mod skip_ahead;
#[cfg(feature = "llama")]
mod split_points;
#[cfg(feature = "llama")]
mod texts;
#[cfg(feature = "llama")]
mod vectors;
