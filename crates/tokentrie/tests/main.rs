//! What all hosts share. One binary, because each is linked anew.

#[cfg(feature = "llama")]
mod call_spelling;
#[cfg(feature = "llama")]
mod chats;
#[cfg(feature = "llama")]
mod decisions;
#[cfg(all(feature = "llama", feature = "schema"))]
mod examples;
#[cfg(all(feature = "llama", feature = "schema"))]
mod run;
#[cfg(all(feature = "schema", feature = "chat"))]
mod specs;
#[cfg(feature = "llama")]
mod stops;
