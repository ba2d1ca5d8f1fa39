//! What may come: payloads, constraints, and the walk of a span.

mod cache;
mod constraints;
mod filter;
mod gate;
mod patched;
mod payload;
mod penalties;
mod span;
mod vectors;
