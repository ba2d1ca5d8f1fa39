//! Sets: how they are made, put together and looked at.

mod byte_trie;
mod graph;
mod naive;
mod sets;
mod weights;
