//! Prefix tables: the cases that other programs share, a naive twin, and hostile input.

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod hostile;
mod twin;
