//! Rows of logits: samplers, batches, searches.

pub(crate) mod batch;
pub(crate) mod batch_items;
pub(crate) mod batch_rules;
pub(crate) mod batch_values;
pub(crate) mod exact;
pub(crate) mod in_chain;
pub(crate) mod pace;
pub(crate) mod sampler;
pub(crate) mod sampler_state;
pub(crate) mod sampling;
pub(crate) mod score;
pub(crate) mod scorer;
pub(crate) mod search;
