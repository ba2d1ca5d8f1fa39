//! Vocabularies and texts in their tokens.

mod files;
mod split_points;
mod texts;
