//! Decisions: typed questions about a state, answered with the exact probability of every option.
//!
//! `question.rs` reads a request, `prompt.rs` writes what the model is asked, `ready.rs` asks it, `answer.rs` says what
//! came of it. All questions of a request are one scoring job: what their prompts begin with alike, the state, is
//! decoded once.

mod answer;
mod options;
mod prompt;
mod question;
mod ready;

pub use answer::{Answer, Answers, AskedPrompt};
pub use options::{Decide, Prior, Readout};
pub use question::{Kind, Question, Request};
pub use ready::{DecideError, ReadyDecision};
