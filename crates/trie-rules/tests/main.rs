//! Rules. One binary, because each is linked anew.

mod common;
mod context_free;
mod forced;
mod formats;

mod grammar;
mod grammar_cases;
mod memory;
mod number_set;
mod patterns;
mod placed;
mod regular;
mod rule_cases;
mod slices;
mod text_set;
mod vocabularies;
mod walk;
#[cfg(feature = "wasm")]
mod wasm;
