//! Storage of a trie: its arrays, how they are packed, and the memory that holds them, owned or borrowed.

pub(crate) mod arrays;
pub(crate) mod layout;
#[allow(unsafe_code, reason = "slices of memory that something else keeps; every other file is safe")]
pub(crate) mod memory;
pub(crate) mod names;
pub(crate) mod packed;
pub(crate) mod store;
