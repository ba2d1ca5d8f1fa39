//! Prefix tables: the cases that other programs share, a naive twin, and hostile input.

mod cases;
mod hostile;
mod twin;
