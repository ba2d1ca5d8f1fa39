//! What all hosts share. One binary, because each is linked anew.

#[cfg(all(feature = "schema", feature = "chat"))]
mod specs;
