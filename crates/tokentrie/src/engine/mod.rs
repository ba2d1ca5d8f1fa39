//! Many calls of one model at once: they share its forward passes.
//!
//! A call is a *job*: a task that says which tokens it wants decoded after which prompt, gets the rows of logits, and
//! goes on ([`llama_sampler::Task`]). Each forward pass takes something from every running job: next tokens, whole
//! forced runs, trees of exact choices, pieces of new prompts. Jobs join and leave between passes.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `cells.rs` | operations that the engine needs from a cache; tests have a cache without llama.cpp |
//! | `pool.rs` | one context that all slots share, or one context for each slot |
//! | `job.rs` | a job, and its progress |
//! | `slot.rs` | a sequence of the cache: its tokens, and its job |
//! | `branches.rs` | the sequences for trees |
//! | `options.rs` | options and statistics of an engine |
//! | `core.rs` | jobs join, advance and leave |
//! | `pass.rs` | scheduling of one forward pass: its tokens, and the jobs that get its rows |
//! | `inbox.rs` | inbox of an engine's thread, and the loop of that thread |
//! | `thread.rs` | an engine: submitting, the queue's bound, closing, fork |
//! | `relay.rs` | messages of a job to the thread that waits for it; generations and choices as jobs |
//! | `runtime.rs` | one interface to a single context or an engine |

mod branches;
mod cells;
mod core;
mod inbox;
mod job;
mod options;
mod pass;
mod pool;
mod relay;
mod runtime;
mod slot;
mod thread;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use job::Job;
pub use options::{Batching, EngineOptions, EngineStats};
pub(crate) use relay::{Generating, JobEvent, Stop};
pub use runtime::{ModelDecoder, Runtime};
pub use thread::{Engine, GenerationStart};
