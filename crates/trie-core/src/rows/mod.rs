//! Constraints applied to rows of logits: masks, the choice over logits, seeded draws, and batches of rows.

pub(crate) mod adjustments;
pub(crate) mod batch;
pub(crate) mod chooser;
pub(crate) mod draw;
pub(crate) mod element;
pub(crate) mod kernel;
pub mod logits;
pub(crate) mod row;
pub(crate) mod sampler;
pub(crate) mod settings;
pub(crate) mod softmax;
