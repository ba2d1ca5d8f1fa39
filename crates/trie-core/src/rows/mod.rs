//! What the machine says, applied to rows: masks, the choice over logits, seeded draws, and many rows together.

mod allowed_logits;
pub(crate) mod batch;
pub(crate) mod bias;
pub(crate) mod chooser;
pub(crate) mod draw;
pub(crate) mod element;
mod generator;
pub(crate) mod kernel;
pub mod logits;
mod penalties;
pub(crate) mod row;
pub(crate) mod sampler;
pub(crate) mod settings;
pub(crate) mod softmax;
