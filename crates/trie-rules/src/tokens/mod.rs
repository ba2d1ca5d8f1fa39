//! Rules over the tokens of a vocabulary: bytes of the tokens, walks through them, and cached masks.

pub(crate) mod by_rule;
pub(crate) mod forced;
pub(crate) mod lazy_walk;
pub(crate) mod masks;
pub(crate) mod memory;
pub(crate) mod order;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod prepare;
pub(crate) mod slices;
pub(crate) mod spellable;
pub(crate) mod spelling;
pub(crate) mod token_bytes;
pub(crate) mod walk;
