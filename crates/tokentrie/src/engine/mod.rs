//! Many calls of one model at once: they share its forward passes.
//!
//! A call is a *job*: a task that says which tokens it wants decoded after which prompt, gets the rows of logits, and
//! goes on ([`llama_sampler::Task`]). Each forward pass takes something from every running job: next tokens, whole
//! forced runs, trees of exact choices, pieces of new prompts. Jobs join and leave between passes.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `cells.rs` | what the engine asks of a cache; tests have one without llama.cpp |
//! | `pool.rs` | one context that all slots share, or one for each |
//! | `job.rs` | a job, and how far it is |
//! | `slot.rs` | a sequence of the cache: what it holds, and the job in it |
//! | `branches.rs` | the sequences for trees |
//! | `options.rs` | how an engine works, and what it tells of that |
//! | `core.rs` | jobs join, go on and leave |
//! | `pass.rs` | what goes into one forward pass, and who gets its rows |
//! | `inbox.rs` | what has come for the thread of an engine, and what the thread does |
//! | `thread.rs` | an engine: submitting, the queue's bound, closing, fork |
//! | `relay.rs` | what a job tells the thread that waits for it; generations and choices as jobs |
//! | `runtime.rs` | a context alone, or an engine: the same calls |

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
pub use thread::Engine;
