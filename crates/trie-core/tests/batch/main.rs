//! Batches, against a span and a sampler for each row.

#[path = "../common/mod.rs"]
mod common;
mod kinds;
mod refusals;
mod steps;
mod top;
mod twin;
