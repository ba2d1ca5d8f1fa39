//! The set itself: ids, leaves, the immutable trie and the arrays below it, and how both are made, kept and shown.
//! Nothing here knows what may be written next.

pub(crate) mod builder;
pub(crate) mod byte_trie;
pub(crate) mod drawing;
pub(crate) mod export;
pub(crate) mod external;
pub(crate) mod file;
pub(crate) mod graph;
pub(crate) mod ids;
pub(crate) mod leaf_set;
pub(crate) mod levels;
pub(crate) mod operations;
pub(crate) mod outline;
pub(crate) mod prefix_table;
pub(crate) mod storage;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod threads;
pub(crate) mod trie;
pub(crate) mod weights;
