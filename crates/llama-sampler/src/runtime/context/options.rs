//! Size of a context.

use crate::runtime::error::RuntimeError;
use llama_cpp_2::context::params::KvCacheType;

/// A type of numbers in the KV cache. Fewer bits take less memory, but round more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheType {
    /// Float of 32 bits.
    F32,
    /// Float of 16 bits.
    F16,
    /// 16 bits, with the exponent of 32.
    Bf16,
    /// 8.5 bits, in blocks.
    Q8_0,
    /// Quantised to 5.5 bits.
    Q5_0,
    /// Quantised to 4.5 bits.
    Q4_0,
}

impl CacheType {
    /// All of the types.
    pub const ALL: [Self; 6] = [Self::F32, Self::F16, Self::Bf16, Self::Q8_0, Self::Q5_0, Self::Q4_0];

    /// Its name in llama.cpp.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q5_0 => "q5_0",
            Self::Q4_0 => "q4_0",
        }
    }

    pub(super) fn of_llama(self) -> KvCacheType {
        match self {
            Self::F32 => KvCacheType::F32,
            Self::F16 => KvCacheType::F16,
            Self::Bf16 => KvCacheType::BF16,
            Self::Q8_0 => KvCacheType::Q8_0,
            Self::Q5_0 => KvCacheType::Q5_0,
            Self::Q4_0 => KvCacheType::Q4_0,
        }
    }

    /// Returns whether it is stored in blocks, which only flash attention reads for values.
    fn has_blocks(self) -> bool {
        matches!(self, Self::Q8_0 | Self::Q5_0 | Self::Q4_0)
    }
}

/// Size and options of a context. The default suits choices after prompts of a few pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// Tokens of context; `None` takes 4096, or the context length that the model was trained on if that is less.
    pub n_ctx: Option<u32>,
    /// Tokens in one forward pass. A long prompt can be stopped between two passes.
    pub n_batch: u32,
    /// Threads. `None` takes one or all of [`default_threads`](crate::default_threads) for each forward pass. The
    /// passes are timed as they happen, so that a busy machine never makes them slower than one thread would be.
    pub n_threads: Option<u32>,
    /// Keeps keys and values in f32 and computes attention step by step. With f32 weights, log-probabilities of values
    /// then agree to 1e-4 however tokens are batched, at twice the memory of the KV cache. Without `precise`,
    /// llama.cpp's defaults hold (f16, flash attention).
    pub precise: bool,
    /// Type of the keys and values; `None` takes f16, or f32 with `precise`.
    pub cache_type: Option<CacheType>,
    /// Use of flash attention; `None` lets llama.cpp choose, or turns it off with `precise`.
    pub flash_attention: Option<bool>,
    /// Gathers the logits of the allowed tokens on the device and copies only these to the host, where a generation is
    /// constrained to at most [`DeviceChain::MOST`](crate::DeviceChain::MOST) tokens. The host chooses, from the same
    /// bits. It pays where copying a row is slow, as from a graphics card, and costs time on a CPU.
    pub device_sampling: bool,
    /// Number of sequences that have a context of [`ContextOptions::n_ctx`] tokens each and are decoded in common
    /// forward passes: see `tokentrie::engine`. The KV cache has room for all of them.
    pub slots: u32,
}

impl ContextOptions {
    pub(in crate::runtime) const N_CTX: u32 = 4096;
    pub(super) const MAX_THREADS: u64 = 512;
    /// Highest number that [`ContextOptions::slots`] accepts.
    pub const MAX_SLOTS: u64 = 128;

    /// Sets [`ContextOptions::n_ctx`] to this.
    #[must_use]
    pub fn with_n_ctx(self, n_ctx: impl Into<Option<u32>>) -> Self {
        Self { n_ctx: n_ctx.into(), ..self }
    }

    /// Sets [`ContextOptions::n_batch`] to this.
    #[must_use]
    pub fn with_n_batch(self, n_batch: u32) -> Self {
        Self { n_batch, ..self }
    }

    /// Sets [`ContextOptions::n_threads`] to this.
    #[must_use]
    pub fn with_n_threads(self, n_threads: impl Into<Option<u32>>) -> Self {
        Self { n_threads: n_threads.into(), ..self }
    }

    /// Sets [`ContextOptions::slots`] to this.
    #[must_use]
    pub fn with_slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// Sets [`ContextOptions::cache_type`] to this.
    #[must_use]
    pub fn with_cache_type(self, cache_type: impl Into<Option<CacheType>>) -> Self {
        Self { cache_type: cache_type.into(), ..self }
    }

    /// Sets [`ContextOptions::flash_attention`] to this.
    #[must_use]
    pub fn with_flash_attention(self, flash_attention: impl Into<Option<bool>>) -> Self {
        Self { flash_attention: flash_attention.into(), ..self }
    }

    /// Sets [`ContextOptions::device_sampling`] to this.
    #[must_use]
    pub fn with_device_sampling(self, device_sampling: bool) -> Self {
        Self { device_sampling, ..self }
    }

    /// Checks that the KV cache can be created with these types.
    pub(super) fn check_cache(&self) -> Result<(), RuntimeError> {
        let wrong = |reason: String| Err(RuntimeError::Cache { reason });
        if self.precise {
            if let Some(other) = self.cache_type.filter(|&other| other != CacheType::F32) {
                let name = other.name();
                return wrong(format!(
                    "cache_type {name:?} is not supported with precise: that is \"f32\"; give one of both"
                ));
            }
            if self.flash_attention == Some(true) {
                return wrong("flash_attention is not supported with precise, which computes step by step".to_owned());
            }
        }
        if let (Some(blocks), Some(false)) = (self.cache_type.filter(|one| one.has_blocks()), self.flash_attention) {
            let name = blocks.name();
            return wrong(format!("cache_type {name:?} is not supported without flash_attention: leave that out"));
        }
        Ok(())
    }

    /// Sets [`ContextOptions::precise`] to this.
    #[must_use]
    pub fn with_precise(self, precise: bool) -> Self {
        Self { precise, ..self }
    }
}

impl Default for ContextOptions {
    fn default() -> Self {
        Self {
            n_ctx: None,
            n_batch: 512,
            n_threads: None,
            precise: false,
            cache_type: None,
            flash_attention: None,
            device_sampling: false,
            slots: 1,
        }
    }
}
