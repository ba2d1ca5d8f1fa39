//! Exact scoring over a table of logits, against a twin that lists every sequence and adds up softmaxes in double
//! precision.

mod endless;
mod exact;
mod hosts;
mod table;
mod twin;
mod whole;
