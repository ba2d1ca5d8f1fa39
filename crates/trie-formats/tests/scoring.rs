//! The model and the twin that trie-core scores against.
#![allow(dead_code, reason = "its own tests use the rest")]

#[path = "../../trie-core/tests/scoring/table.rs"]
pub(crate) mod table;
#[path = "../../trie-core/tests/scoring/twin.rs"]
pub(crate) mod twin;
