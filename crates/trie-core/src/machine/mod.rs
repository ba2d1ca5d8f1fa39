//! Constraints of every kind, and the span that walks one: allowed tokens, transitions, and forced tokens. Nothing here
//! knows of logits.

pub(crate) mod constraint;
pub(crate) mod span;
