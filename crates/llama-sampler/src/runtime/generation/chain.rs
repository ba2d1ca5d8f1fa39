//! The sampler chain of a generation: the trie first, a selecting sampler last.

use crate::linked::IntoLlamaSampler as _;
use llama_callbacks::{SamplerHandle, TokenTrieSampler};
use llama_cpp_2::sampling::LlamaSampler;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use trie_core::{DrawError, DrawSettings, Host, Mode, SamplerOptions, SpanRules};

/// llama.cpp draws a random seed where it is given this one.
const RANDOM_SEED: u32 = u32::MAX;

/// A chain, the handle of its sampler, and the seed in use.
pub(super) struct Chain {
    pub(super) sampler: LlamaSampler,
    pub(super) handle: Option<SamplerHandle>,
    pub(super) seed: u32,
}

/// Builds the chain. The order after the trie is that of llama.cpp's default chain and of `trie_core::Sampler`.
pub(super) fn build(rules: Option<&Arc<SpanRules>>, options: &SamplerOptions, host: Host) -> Result<Chain, DrawError> {
    options.draw.check()?;
    let penalised = options.draw.has_penalties();
    // A greedy one leaves a single candidate, and nothing for penalties to change.
    let mode = if penalised { Mode::Sampled } else { options.mode };
    let trie = rules.map(|rules| TokenTrieSampler::new(Arc::clone(rules), mode));
    let handle = trie.as_ref().map(TokenTrieSampler::handle);
    let seed = seed_of(options);
    let mut samplers: Vec<LlamaSampler> = trie.map(TokenTrieSampler::into_llama_sampler).into_iter().collect();
    let draw = options.draw;
    if penalised {
        // It keeps room for all that count, and no output is longer than the context.
        let last = usize::try_from(draw.penalty_last_n).unwrap_or(host.room).min(host.room);
        let (n_vocab, last) = (clamp_count(host.n_vocab), clamp_count(last));
        let DrawSettings { repeat_penalty, frequency_penalty, presence_penalty, .. } = draw;
        samplers.push(LlamaSampler::penalties(n_vocab, last, repeat_penalty, frequency_penalty, presence_penalty));
    }
    match options.mode {
        Mode::Greedy => samplers.push(LlamaSampler::greedy()),
        Mode::Sampled => {
            if draw.top_k > 0 {
                samplers.push(LlamaSampler::top_k(clamp_count(draw.top_k as usize)));
            }
            if draw.typical_p < 1.0 {
                samplers.push(LlamaSampler::typical(draw.typical_p, 1));
            }
            if draw.top_p < 1.0 {
                samplers.push(LlamaSampler::top_p(draw.top_p, 1));
            }
            if draw.min_p > 0.0 {
                samplers.push(LlamaSampler::min_p(draw.min_p, 1));
            }
            samplers.push(LlamaSampler::temp(draw.temperature));
            samplers.push(LlamaSampler::dist(seed));
        }
    }
    Ok(Chain { sampler: LlamaSampler::chain(samplers, true), handle, seed })
}

/// Returns a count as the 32-bit number that llama.cpp takes.
fn clamp_count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The seed that was given, or one from the operating system.
pub(super) fn seed_of(options: &SamplerOptions) -> u32 {
    options.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() as u32).min(RANDOM_SEED - 1)
}
