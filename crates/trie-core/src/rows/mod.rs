//! What the machine says, applied to rows: masks, the choice over logits, seeded draws, and many rows together.

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
