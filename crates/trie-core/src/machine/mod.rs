//! What may come next, what a token does, and what must come: constraints of every kind, and the span that walks one.
//! Nothing here knows of logits.

pub(crate) mod constraint;
pub(crate) mod span;
