//! Kinds of specs that need a module each.

pub(super) mod form;
pub(super) mod integer;
pub(super) mod moment;
pub(super) mod number;
pub(super) mod repeat;
pub(crate) mod reply;
pub(super) mod rules;
pub(super) mod think;
