//! Kinds that hold much of their own.

pub(super) mod form;
pub(crate) mod reply;
pub(super) mod rules;
pub(super) mod think;
