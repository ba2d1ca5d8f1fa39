//! The set itself: ids, leaves, the immutable trie and the arrays below it, and how both are made.
//! Nothing here knows what may be written next.

pub(crate) mod builder;
pub(crate) mod byte_trie;
pub(crate) mod damage;
pub(crate) mod graph;
pub(crate) mod ids;
pub(crate) mod leaf_set;
pub(crate) mod levels;
pub(crate) mod operations;
pub(crate) mod storage;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod threads;
pub(crate) mod trie;
pub(crate) mod vocabulary;
pub(crate) mod weights;
