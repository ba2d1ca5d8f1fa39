//! Constraints that are classes of Rust still, rules of users, and what texts stand for.

pub(crate) mod gate;
pub(crate) mod of_user;
pub(crate) mod problem;
pub(crate) mod typed;
pub(crate) mod values;
