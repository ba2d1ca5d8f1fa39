//! A model that was loaded, and what its calls take and give.

#[cfg(feature = "llama")]
pub(crate) mod chat;
pub(crate) mod choice;
#[cfg(feature = "llama")]
pub(crate) mod choices;
#[cfg(feature = "llama")]
pub(crate) mod choose;
#[cfg(feature = "llama")]
pub(crate) mod decide;
#[cfg(feature = "llama")]
pub(crate) mod embed;
#[cfg(feature = "llama")]
pub(crate) mod embedding;
#[cfg(feature = "llama")]
pub(crate) mod generated;
#[cfg(feature = "llama")]
pub(crate) mod loaded;
pub(crate) mod meaning;
#[cfg(not(feature = "llama"))]
pub(crate) mod missing;
pub(crate) mod options;
#[cfg(feature = "llama")]
mod prefix;
#[cfg(feature = "llama")]
mod probability;
#[cfg(feature = "llama")]
pub(crate) mod rivals;
#[cfg(feature = "llama")]
pub(crate) mod several;
#[cfg(feature = "llama")]
pub(crate) mod watch;
