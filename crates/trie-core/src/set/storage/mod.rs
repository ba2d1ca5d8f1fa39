//! What a trie lies in: its arrays, how they are packed, and the memory that holds them, owned or of a mapped file.

pub(crate) mod arrays;
pub(crate) mod layout;
#[allow(unsafe_code, reason = "slices of mapped files and the map itself; every other file is safe")]
pub(crate) mod map;
pub(crate) mod names;
pub(crate) mod packed;
pub(crate) mod store;
