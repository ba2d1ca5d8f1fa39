//! The ways in which arguments are written: tags, elements, pairs, literals, JSON in a string.

pub(super) mod after;
pub(super) mod elements;
pub(super) mod guard;
pub(super) mod json_text;
pub(super) mod listed;
pub(super) mod literal;
pub(super) mod pairs;
pub(super) mod quoted;
pub(super) mod raw;
pub(super) mod slot;
pub(super) mod tagged;
pub(super) mod track;
