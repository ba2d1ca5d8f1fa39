//! A safe runtime on llama.cpp: load, tokenize, decode (`context/`), generate inside a span (`generation/`), and find
//! the exact probability of every value (`scoring/`).

mod context;
mod error;
mod generation;
mod scoring;
mod watch;

pub use context::{
    Context, ContextOptions, Model, ModelOptions, Progress, default_threads, supports_graphics_cards, vocab_from_gguf,
};
pub use error::RuntimeError;
pub use generation::{Engine, Field, FillOptions, Filled, Finish, GenerateOptions, GenerateStats, Generated};
pub use watch::{Step, Watch};
