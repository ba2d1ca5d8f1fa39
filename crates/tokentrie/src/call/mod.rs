//! Calls of a model: what they may be told, whose turn it is, what ends them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `options.rs` | the options of generations and choices: names, defaults, ranges |
//! | `generate.rs` | a generation: made ready, then run on a context |
//! | `request.rs`, `wire.rs` | generations and choices as JSON, and what came of them |
//! | `receipt.rs` | what a generation was allowed, for others to check without the model |
//! | `retraced.rs` | its tokens, walked again |
//! | `ending.rs` | handles and times that end a call |
//! | `stops.rs` | stop texts: what of a text is certain, and where it ends |
//! | `turns.rs` | one call at a time |

mod ending;
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
mod stops;
mod turns;
#[cfg(feature = "llama")]
mod wire;

pub use ending::{Call, CallOptions, Cancel, Ended, TimeoutError};
#[cfg(feature = "llama")]
pub(crate) use generate::nth_seed;
#[cfg(feature = "llama")]
pub use generate::{GenerateError, ReadyGeneration};
#[cfg(feature = "llama")]
pub use options::{BeamWidth, Choose, ChooseTurn, FREE_TOKENS, Generate, TextsAround};
#[cfg(feature = "llama")]
pub use receipt::{Receipt, ReceiptBranch, ReceiptError, ReceiptPrompt, ReceiptStep, ReceiptSubject};
#[cfg(feature = "llama")]
pub use request::{ChooseRequest, GenerateRequest, PrefillRequest, names_of, read_both, read_options, read_three};
#[cfg(feature = "llama")]
pub use stops::{StopError, StopFilter, Stops};
pub use turns::{Refusal, Turn, Turns};
#[cfg(feature = "llama")]
#[cfg(feature = "llama")]
pub use wire::{GenerationFields, choice_json, generated_json};

#[cfg(feature = "llama")]
pub(crate) use options::{logit_bias, sampling};
