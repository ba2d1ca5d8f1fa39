//! The set itself: ids, leaves, the immutable trie, its arrays, and the code that builds them. Nothing here decides
//! which tokens are allowed.

pub(crate) mod builder;
pub(crate) mod byte_order;
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
