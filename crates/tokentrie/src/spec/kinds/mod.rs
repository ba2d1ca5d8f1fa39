//! Kinds that hold much of their own.

pub(super) mod form;
pub(super) mod reply;
pub(super) mod rules;
pub(super) mod think;
