//! Python's values as Rust's, and back.

pub(crate) mod added;
pub(crate) mod asking;
pub(crate) mod buffer;
pub(crate) mod data;
#[cfg(feature = "llama")]
pub(crate) mod generic;
pub(crate) mod gil;
pub(crate) mod ids;
#[cfg(feature = "llama")]
pub(crate) mod options;
#[cfg(feature = "llama")]
pub(crate) mod prompt;
pub(crate) mod results;
pub(crate) mod strings;
pub(crate) mod value;
pub(crate) mod words;
