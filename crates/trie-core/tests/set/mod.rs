//! Sets: how they are made, put together, saved and looked at.

mod byte_trie;
mod damage;
mod external;
mod file;
mod graph;
mod host_tries;
mod naive;
mod outline;
mod prefix_table;
mod sets;
mod weights;
