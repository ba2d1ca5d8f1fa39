//! The numbers of a model that llama.cpp asserts (`llama_model_base::load_hparams` in `llama.cpp/src/llama-model.cpp`),
//! or that its safe crate takes for granted. Numbers that llama.cpp itself refuses are not checked here.

use super::{Header, Value};
use crate::runtime::error::RuntimeError;

/// `LLAMA_MAX_LAYERS` and `LLAMA_MAX_EXPERTS` in `llama.cpp/src/llama-hparams.h`.
const MAX_LAYERS: i128 = 512;
const MAX_EXPERTS: i128 = 1024;

/// Names that llama.cpp lists in `LLAMA_ROPE_SCALING_TYPES`.
const ROPE_SCALING: [&str; 4] = ["none", "linear", "yarn", "longrope"];

/// Architectures that treat one expert as none.
const LONE_EXPERTS: [&str; 2] = ["hunyuan-vl", "hunyuan-dense"];

/// Numbers that must be 1 at least, where `load_arch_hparams` and `load_arch_tensors` in `llama.cpp/src/models/` assert
/// them.
const NEEDED: [(&[&str], &str); 6] = [
    (&["smallthinker", "llada-moe", "bailingmoe2", "glm4moe", "grovemoe"], "expert_count"),
    (&["grovemoe"], "experts_per_group"),
    (&["hrm_text"], "hrm.layers_per_stack"),
    (&["hrm_text"], "hrm.h_cycles"),
    (&["hrm_text"], "hrm.l_cycles"),
    (&["minimax-m3"], "attention.indexer.block_size"),
];

/// Architectures that assert experts in the layers behind some dense ones.
const DENSE_FIRST: [&str; 1] = ["lfm2moe"];

/// Architectures whose positions have several parts: `ggml_compute_forward_rope_flt` asserts that one of the first
/// three is there.
const SECTIONS: [&str; 7] = ["paddleocr", "qwen2vl", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe", "qwen4exp"];

impl Header {
    pub(super) fn check_numbers(&self, architecture: &str) -> Result<(), RuntimeError> {
        let key = |name: &str| format!("{architecture}.{name}");
        let in_range = |name: &str, least: i128, most: i128| match self.integer(&key(name)) {
            Some(number) if !(least..=most).contains(&number) => {
                Err(self.refuse(key(name), &number, format!("it must be in {least}..={most}")))
            }
            _ => Ok(()),
        };
        in_range("context_length", 1, i32::MAX.into())?;
        in_range("embedding_length", 1, i32::MAX.into())?;
        in_range("block_count", 1, MAX_LAYERS)?;
        let causal = key("attention.causal");
        if self.metadata.get(&causal) == Some(&Value::Flag(false)) {
            let what = "a model whose tokens see those behind them does not predict the next one";
            return Err(self.refuse(causal, "false", what));
        }
        in_range("nextn_predict_layers", 0, self.integer(&key("block_count")).unwrap_or(0))?;
        self.check_experts(architecture)?;
        self.check_needed(architecture)?;
        for name in ["attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "attention.group_norm_epsilon"]
        {
            match self.metadata.get(&key(name)) {
                Some(&Value::Real(number)) if !(number >= 0.0 && number.is_finite()) => {
                    return Err(self.refuse(key(name), &number, "it must be a number that is not negative"));
                }
                _ => {}
            }
        }
        let scaling = key("rope.scaling.type");
        match self.metadata.get(&scaling) {
            Some(Value::Text(kind)) if !ROPE_SCALING.iter().any(|known| known.as_bytes() == kind) => {
                let kind = trie_text::quote(&String::from_utf8_lossy(kind));
                Err(self.refuse(scaling, &kind, format!("it must be one of {ROPE_SCALING:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Checks values that an architecture asserts instead of refusing.
    fn check_needed(&self, architecture: &str) -> Result<(), RuntimeError> {
        let number = |name: &str| self.integer(&format!("{architecture}.{name}")).unwrap_or(0);
        for (architectures, name) in NEEDED {
            if architectures.contains(&architecture) && number(name) < 1 {
                let what = format!("a {architecture} model needs one that is 1 at least");
                return Err(self.refuse(format!("{architecture}.{name}"), &number(name), what));
            }
        }
        if DENSE_FIRST.contains(&architecture)
            && number("leading_dense_block_count") < number("block_count")
            && number("expert_count") < 1
        {
            let what = "layers behind the first leading_dense_block_count need experts";
            return Err(self.refuse(format!("{architecture}.expert_count"), &number("expert_count"), what));
        }
        if SECTIONS.contains(&architecture) {
            let key = format!("{architecture}.rope.dimension_sections");
            let sections = match self.metadata.get(&key) {
                Some(Value::Wholes(sections)) => &sections[..],
                _ => &[],
            };
            if !sections.iter().take(3).any(|&section| section > 0) {
                let what = "one of the first three must be above 0";
                return Err(self.refuse(key, &format!("{sections:?}"), what));
            }
        }
        Ok(())
    }

    fn check_experts(&self, architecture: &str) -> Result<(), RuntimeError> {
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| self.integer(&key(name)).unwrap_or(0);
        let experts = number("expert_count");
        if LONE_EXPERTS.contains(&architecture) && experts <= 1 {
            return Ok(());
        }
        let refuse = |name: &str, value: i128, what: String| Err(self.refuse(key(name), &value, what));
        if experts > MAX_EXPERTS {
            return refuse("expert_count", experts, format!("it must be in 0..={MAX_EXPERTS}"));
        }
        // One number, or one for each layer.
        let used = match self.metadata.get(&key("expert_used_count")) {
            Some(Value::Wholes(of_layers)) => of_layers.iter().copied().max().unwrap_or(0).into(),
            _ => number("expert_used_count"),
        };
        let (least, groups) = (i128::from(experts > 0), number("expert_group_count"));
        if !(least..=experts).contains(&used) {
            return refuse(
                "expert_used_count",
                used,
                format!("of {experts} experts it must be in {least}..={experts}"),
            );
        }
        if groups > 0 && groups >= experts || groups > 1 && experts % groups != 0 {
            let what = format!("it must be less than the {experts} experts, and divide them");
            return refuse("expert_group_count", groups, what);
        }
        let used_groups = number("expert_group_used_count");
        if groups > 1 && !(1..groups).contains(&used_groups) {
            return refuse("expert_group_used_count", used_groups, format!("it must be in 1..{groups}"));
        }
        Ok(())
    }
}
