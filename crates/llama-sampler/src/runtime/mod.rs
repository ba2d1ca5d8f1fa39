//! A safe runtime on llama.cpp: load, tokenize, decode (`context/`), generate inside a span (`generation/`), find the
//! exact probability of every value (`scoring/`), also of several sets after several prompts (`questions.rs`). All of
//! this work is done by tasks, which never call llama.cpp (`task.rs`). Sources of drafts are in `draft/`, chains in the
//! compute graph of a context in `device/`.

mod context;
mod device;
mod draft;
mod error;
mod generation;
mod questions;
mod scoring;
mod task;
mod watch;

pub use context::{
    CacheType, Context, ContextOptions, Embedder, Model, ModelOptions, PlacedToken, Pooling, Prefix, Progress,
    chat_from_gguf, default_threads, model_digest, supports_graphics_cards, vocab_from_gguf,
};
pub use device::{AttachedChains, DeviceChain, DeviceError, linked_graph};
pub use draft::Draft;
pub use error::RuntimeError;
pub use generation::{
    Branch, Completion, Field, Finish, GenerateOptions, GenerateStats, GenerateTask, Generated, GenerationConstraint,
    ReadingTask, TrailStep, form_of,
};
pub use questions::{Answers, Question, QuestionScorer};
pub use scoring::{Bounds, CompletedJob, PlannedWave, Scorer, ScoringTask, place_branches, plan, plan_draft};
pub use task::Task;
pub use watch::{Step, TokenLogprob, Watch};
