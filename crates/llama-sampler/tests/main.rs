//! The sampler in chains, and the runtime. One binary, because each is linked anew.

mod chain;
mod common;
mod runtime;
mod text;
