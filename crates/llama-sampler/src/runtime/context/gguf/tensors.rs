//! Weights of types that llama.cpp loads and cannot compute with: it aborts in the first forward pass.

use super::{Header, Tensor};
use crate::runtime::error::RuntimeError;

/// Types by `ggml_type` in `llama.cpp/ggml/include/ggml.h`.
const F32: u32 = 0;
/// Types that llama.cpp uses for activations, never for weights.
const OF_ACTIVATIONS: [u32; 2] = [9, 15];
/// Types of integers and doubles.
const NOT_WEIGHTS: std::ops::RangeInclusive<u32> = 24..=28;
const I32: u32 = 26;

/// A list of ids, the only weights that are integers.
const IDS: &str = "ffn_gate_tid2eid";

impl Header {
    pub(super) fn check_tensors(&self) -> Result<(), RuntimeError> {
        self.tensors.iter().try_for_each(|tensor| {
            let Tensor { name, shape, kind } = tensor;
            let refuse = |what: &str| {
                let key = format!("the tensor {}", trie_text::quote(name));
                Err(self.refuse(key, &format!("of type {kind} with the shape {shape:?}"), what))
            };
            let weight = matches!(name.rsplit_once('.'), Some((_, "weight" | "bias")));
            let ids = name.contains(IDS) && *kind == I32;
            if weight && !ids && (OF_ACTIVATIONS.contains(kind) || NOT_WEIGHTS.contains(kind)) {
                return refuse("weights of that type cannot be computed with");
            }
            if weight && shape.iter().filter(|&&length| length != 1).count() <= 1 && shape.len() <= 1 && *kind != F32 {
                return refuse("weights of one dimension must be of type 0 (f32)");
            }
            if shape.contains(&0) {
                return refuse("it has no items");
            }
            Ok(())
        })
    }
}
