//! Sets in files and texts. One binary, because each is linked anew.

mod byte_trie;
mod cache;
#[path = "../../trie-core/tests/common/mod.rs"]
mod common;
mod damage;
mod external;
mod file;
mod host_tries;
mod outline;
mod payload;
mod prefix_table;
mod scored;
mod scoring;
mod vectors;
mod walked;
mod weights;
