//! Handles and structures of the header.

use bytemuck::{Pod, Zeroable};
use std::ffi::c_void;
use trie_core::DrawSettings;

/// A handle: a vocabulary. Handles are below 2^53; 0 is none.
pub type tokentrie_vocab = u64;
/// A handle: one or several tries, by path.
pub type tokentrie_trie = u64;
/// A handle: a constraint of any kind. It will do wherever a tokentrie_trie is followed.
pub type tokentrie_constraint = u64;
/// A handle: a sampler over rows of logits.
pub type tokentrie_sampler = u64;
/// A handle: many rows.
pub type tokentrie_batch = u64;
/// A handle: a cache of payloads.
pub type tokentrie_cache = u64;
/// A handle: a model with a prompt.
pub type tokentrie_session = u64;

/// Options of a choice by a sampler or a batch. All zero is greedy, with free text after the leaf.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
pub struct tokentrie_sampler_options {
    /// Size of this structure, as sizeof.
    pub size: u32,
    /// Mode of the choice: TOKENTRIE_MODE_…
    pub mode: i32,
    /// Text after a leaf: TOKENTRIE_AFTER_…
    pub after: i32,
    /// Number of candidates kept; 0: all.
    pub top_k: u32,
    /// 0 takes the highest; not used in greedy mode.
    pub temperature: f32,
    /// 0 counts as 1: all.
    pub top_p: f32,
    /// Minimum probability relative to the best; 0: all.
    pub min_p: f32,
    /// Seed of the draw.
    pub seed: u32,
    /// 0: the seed comes from the operating system.
    pub has_seed: u32,
    /// 0 counts as 1: all.
    pub typical_p: f32,
    /// 0 counts as 1: no penalty. In greedy mode too, as the next three.
    pub repeat_penalty: f32,
    /// Penalty on written tokens; 0: none.
    pub presence_penalty: f32,
    /// Penalty per occurrence; 0: none.
    pub frequency_penalty: f32,
    /// Number of the last accepted tokens that penalties count. -1: all; 0: 64.
    pub penalty_last_n: i32,
}

impl tokentrie_sampler_options {
    /// A share that is left 0 takes all, and penalties that are left 0 change nothing.
    pub(super) fn draw(&self) -> DrawSettings {
        let share = |given| if given == 0.0 { 1.0 } else { given };
        let &Self { temperature, top_k, min_p, presence_penalty, frequency_penalty, penalty_last_n, .. } = self;
        let (top_p, typical_p) = (share(self.top_p), share(self.typical_p));
        let usual = DrawSettings::default();
        DrawSettings {
            temperature,
            top_k,
            top_p,
            min_p,
            typical_p,
            repeat_penalty: share(self.repeat_penalty),
            presence_penalty,
            frequency_penalty,
            penalty_last_n: if penalty_last_n == 0 { usual.penalty_last_n } else { penalty_last_n },
        }
    }
}

/// Properties of a trie.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
pub struct tokentrie_trie_info {
    /// Size of this structure, as sizeof.
    pub size: u32,
    /// Number of tries, by path. What follows is of the first.
    pub tries: u32,
    /// Number of its leaves.
    pub leaves: u64,
    /// Nodes, with the root.
    pub nodes: u64,
    /// Bytes of memory held.
    pub bytes: u64,
    /// Largest token id used.
    pub max_token: i32,
    /// Tokens of the longest leaf.
    pub max_depth: u32,
    /// Leaves of the payload that were left out: they have no tokens.
    pub empty_leaves: u64,
    /// Leaves of the payload that were left out: the vocabulary does not have their ids.
    pub outside_vocabulary: u64,
}

/// Statistics of a cache.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
pub struct tokentrie_cache_stats {
    /// Size of this structure, as sizeof.
    pub size: u32,
    /// Payloads that can be held.
    pub capacity: u32,
    /// Payloads that are held.
    pub held: u64,
    /// Found by the text.
    pub hits: u64,
    /// Other text with the same content.
    pub content_hits: u64,
    /// Number of payloads built.
    pub misses: u64,
    /// Texts that had to leave.
    pub evictions: u64,
}

/// Opaque vocabulary of llama.cpp.
pub struct llama_vocab {
    _private: (),
}

/// Opaque sampler of llama.cpp.
pub struct llama_sampler {
    _private: (),
}

/// llama.cpp's table of callbacks.
pub struct llama_sampler_i {
    _private: (),
}

/// The llama.cpp of a program. All of it belongs to one library, which stays loaded.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tokentrie_llama_api {
    /// Size of this structure, as sizeof.
    pub size: u32,
    /// Fields of llama_sampler_i in that library: sizeof(struct llama_sampler_i) / sizeof(void *). Unknown numbers are
    /// refused.
    pub callback_fields: u32,
    /// Address of llama_sampler_init there.
    pub sampler_init: Option<unsafe extern "C" fn(iface: *mut llama_sampler_i, ctx: *mut c_void) -> *mut llama_sampler>,
    /// llama_vocab_n_tokens; NULL: vocabularies are not looked at.
    pub vocab_n_tokens: Option<unsafe extern "C" fn(vocab: *const llama_vocab) -> i32>,
    /// llama_vocab_is_eog; NULL: end-of-generation tokens are not known.
    pub vocab_is_eog: Option<unsafe extern "C" fn(vocab: *const llama_vocab, token: i32) -> bool>,
}

/// Options for opening a model. All zero takes the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
pub struct tokentrie_session_options {
    /// Size of this structure, as sizeof.
    pub size: u32,
    /// Tokens of context. 0: 4096, or what the model was trained on if that is less.
    pub n_ctx: u32,
    /// The most tokens in one forward pass. 0: 512.
    pub n_batch: u32,
    /// 0: as many as pay off.
    pub n_threads: u32,
    /// Layers on a graphics card.
    pub n_gpu_layers: u32,
    /// TOKENTRIE_AFTER_FREE: text goes on after the leaf; TOKENTRIE_AFTER_STOP: the generation ends with it.
    pub after: i32,
    /// Seed of the draws.
    pub seed: u32,
    /// 0: the seed comes from the operating system.
    pub has_seed: u32,
    /// Calls of sessions of one file and the same options that run at once, up to 128. 0: a context for each session.
    pub slots: u32,
    /// With slots: calls that may wait for one; one more gives TOKENTRIE_ERROR_BUSY at once. 0: 1024.
    pub max_queue: u32,
    /// Contents of a forward pass: TOKENTRIE_BATCHING_…
    pub batching: i32,
}

/// Load and statistics of the engine that sessions of a file share.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
pub struct tokentrie_engine_info {
    /// Size of this structure, as sizeof.
    pub size: u32,
    /// Calls that may run at once.
    pub slots: u32,
    /// Number of running calls.
    pub running: u64,
    /// Number of waiting calls.
    pub queued: u64,
    /// Calls that were begun.
    pub calls: u64,
    /// Number of forward passes.
    pub passes: u64,
    /// Number of tokens in them.
    pub tokens: u64,
    /// Tokens that were not decoded, because another call begins with them.
    pub tokens_reused: u64,
    /// Cells of the cache that hold something, counted once for each sequence.
    pub cells: u64,
    /// Forward passes that failed.
    pub failed_passes: u64,
    /// Seconds that llama.cpp took for them.
    pub decode_seconds: f64,
    /// Seconds that all else in them took: what is decoded next, constraints, choosing tokens.
    pub own_seconds: f64,
}

/// State of a session.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
pub struct tokentrie_session_info {
    /// Size of this structure, as sizeof.
    pub size: u32,
    /// 1 while a generation runs.
    pub generating: i32,
    /// 1 while a trie is set.
    pub has_trie: i32,
    /// State of the trie in the last generation: TOKENTRIE_STATE_…
    pub state: i32,
    /// Reason for the end of the last generation: TOKENTRIE_FINISH_…
    pub finish: i32,
    /// Slot of the last prefill, or -1.
    pub slot: i32,
    /// Context size in tokens.
    pub n_ctx: u32,
    /// Tokens of the vocabulary.
    pub n_vocab: u32,
    /// Tokens that the next generation begins after.
    pub prompt_tokens: u64,
    /// Tokens of the last generation.
    pub tokens: u64,
    /// Number of forced tokens among them.
    pub forced_tokens: u64,
    /// Number of those that were chosen among several, and of a token that only ended the output.
    pub sampled_tokens: u64,
    /// Number of its forward passes.
    pub forward_passes: u64,
    /// Tokens of it that needed none of their own.
    pub forward_passes_saved: u64,
    /// Tokens of the prompt that were in the cache already.
    pub prompt_tokens_reused: u64,
    /// Times that no legal token had a usable logit.
    pub starved: u64,
    /// Its duration in seconds.
    pub seconds: f64,
    /// Leaves without tokens that were left out of what was set or asked for last.
    pub empty_leaves: u64,
    /// Leaves that were left out of it because the vocabulary does not have their ids.
    pub outside_vocabulary: u64,
}
