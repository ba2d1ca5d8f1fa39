//! Decisions: typed questions about a state, answered with the exact probability of every option.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `request.rs`, `question.rs`, `options.rs` | a request as data: states, questions, how to decide |
//! | `prompt.rs`, `layout.rs`, `spelling.rs` | the prompts of a question, and the texts that are scored after them |
//! | `balance.rs` | balanced orders of listed options, and when enough of them were asked |
//! | `ready.rs` | a decision, prepared and scored: its prompts are one scoring job, so a state is decoded once |
//! | `model_traits.rs` | traits of a model that say how it is asked, read once |
//! | `checkpoint.rs` | models that were trained to decide: their own prompt, labels and temperatures |
//! | `thinking.rs` | close calls that think before they are decided |
//! | `answer.rs` | answers, and their JSON form |
//! | `calibration/` | calibration of the probabilities: fitted on known answers, measured, applied |

mod answer;
mod balance;
mod calibration;
mod checkpoint;
mod layout;
mod model_traits;
mod options;
mod prompt;
mod question;
mod ready;
mod request;
mod shares;
mod spelling;
mod thinking;

pub use answer::{Answer, Answers, AskedPrompt, Thought, TopBound};
pub use calibration::{
    Bin, CalibrateError, Calibration, CutPoint, Example, FitError, HeldOut, Measures, QuestionCalibration,
    model_fingerprint,
};
pub use layout::Layout;
pub use options::{Decide, End, ListOrder, Prior, Readout, SolvedExample};
pub use question::{Kind, Question};
pub use ready::{DecideError, ReadyDecision};
pub use request::Request;
