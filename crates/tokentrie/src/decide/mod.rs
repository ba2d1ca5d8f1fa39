//! Decisions: typed questions about a state, answered with the exact probability of every option.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `request.rs`, `question.rs`, `options.rs` | a request as data: states, questions, how to decide |
//! | `prompt.rs`, `layout.rs` | what the model is asked |
//! | `ready.rs` | a decision made ready, then asked: all its prompts are one scoring job, so a state is decoded once |
//! | `answer.rs` | what came of it |

mod answer;
mod layout;
mod options;
mod prompt;
mod question;
mod ready;
mod request;

pub use answer::{Answer, Answers, AskedPrompt};
pub use layout::Layout;
pub use options::{Decide, Prior, Readout};
pub use question::{Kind, Question};
pub use ready::{DecideError, ReadyDecision};
pub use request::Request;
