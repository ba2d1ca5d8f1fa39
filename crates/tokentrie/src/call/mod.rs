//! Calls of a model: what they may be told, whose turn it is, what ends them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `options.rs` | the options of generations and choices: names, defaults, ranges |
//! | `run.rs` | what is common to calls of every kind: how each is run, and what its host does meanwhile |
//! | `generate.rs`, `choose.rs` | a generation and a choice: made ready, then run |
//! | `error.rs` | why a generation cannot begin |
//! | `request.rs`, `wire.rs`, `choice.rs` | generations and choices as JSON, and what came of them |
//! | `receipt.rs` | what a generation was allowed, for others to check without the model |
//! | `retraced.rs` | its tokens, walked again |
//! | `ending.rs` | handles and times that end a call |
//! | `stops.rs` | stop texts: what of a text is certain, and where it ends |
//! | `turns.rs` | one call at a time |

mod choice;
#[cfg(feature = "llama")]
mod choose;
mod ending;
#[cfg(feature = "llama")]
mod error;
#[cfg(feature = "llama")]
mod generate;
#[cfg(feature = "llama")]
mod options;
#[cfg(feature = "llama")]
mod receipt;
#[cfg(feature = "llama")]
mod request;
#[cfg(feature = "llama")]
mod retraced;
#[cfg(feature = "llama")]
mod run;
#[cfg(feature = "llama")]
mod stops;
mod turns;
#[cfg(feature = "llama")]
mod wire;

#[cfg(feature = "llama")]
pub use crate::json::ReadParts;
pub use choice::ChoiceResult;
#[cfg(feature = "llama")]
pub use choose::ReadyChoice;
pub use ending::{Call, CallOptions, Cancel, Ended, TimeoutError};
#[cfg(feature = "llama")]
pub use error::GenerateError;
#[cfg(feature = "llama")]
pub use generate::{Follows, GenerateResult, ReadyGeneration};
#[cfg(feature = "llama")]
pub use options::{BeamWidth, Choose, ChooseTurn, FREE_TOKENS, Generate, TextsAround};
#[cfg(feature = "llama")]
pub use receipt::{Receipt, ReceiptBranch, ReceiptError, ReceiptPrompt, ReceiptStep};
#[cfg(feature = "llama")]
pub use request::{ChooseRequest, GenerateRequest, PrefillRequest, names_of, read_options};
#[cfg(feature = "llama")]
pub use run::{Hooks, ReadyCall};
#[cfg(feature = "llama")]
pub use stops::{StopError, StopFilter, Stops};
pub use turns::{Refusal, Turn, Turns};
#[cfg(feature = "llama")]
pub use wire::GenerationFields;
#[cfg(feature = "llama")]
pub(crate) use {generate::nth_seed, receipt::ReceiptSubject, run::finish_of};

#[cfg(feature = "llama")]
pub(crate) use options::{logit_bias, sampling};
