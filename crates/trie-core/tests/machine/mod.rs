//! What may come: constraints and the walk of a span.

mod constraints;
mod filter;
mod gate;
mod patched;
mod penalties;
mod span;
mod text_ends;
