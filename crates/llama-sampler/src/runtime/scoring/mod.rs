//! The exact probability of every value of a set after a prompt.

mod choose;
mod scores;
mod search;
mod tree;

pub use choose::{Choice, ChooseOptions, ChooseStats};
