//! Calls of a model: their options, the order in which they run, and the ways in which they end.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `options.rs` | the options of generations and choices: names, defaults, ranges |
//! | `run.rs` | code that calls of every kind share: running a call, and the host's hooks meanwhile |
//! | `generate.rs`, `choose.rs` | a generation and a choice: prepared, then run |
//! | `probability.rs` | the probability of a constraint: request, preparation, result |
//! | `error.rs` | why a generation cannot begin |
//! | `request.rs`, `wire.rs`, `choice.rs` | requests and results of generations and choices, as JSON |
//! | `receipt.rs` | record of the allowed tokens of a generation, for others to check without the model |
//! | `retraced.rs` | check of a receipt: its tokens are walked again |
//! | `ending.rs` | cancel handles and time limits |
//! | `stops.rs` | stop texts: the text that is certain, and its end |
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
mod probability;
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
pub use probability::{ProbabilityRequest, ProbabilityResult, ProbabilitySettings, ReadyProbability};
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
