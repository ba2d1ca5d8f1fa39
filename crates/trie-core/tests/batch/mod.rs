//! Batches, against a span and a sampler for each row.

mod beams;
mod elements;
mod items;
mod kinds;
mod refusals;
mod steps;
mod top;
mod twin;
mod values;
