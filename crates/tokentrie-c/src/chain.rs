//! A sampler for a chain of the process's llama.cpp. The `unsafe` is one promise: that a pointer which C calls a
//! `llama_sampler` is one.

use crate::abi::{llama_sampler, llama_vocab, parts};
use crate::error::{Error, Result};
use crate::process;
use crate::status::{TOKENTRIE_ERROR_LIMIT, TOKENTRIE_ERROR_LLAMA, TOKENTRIE_MAX_PAYLOAD};
use llama_callbacks::{SamplerHandle, TokenTrieSampler};
use std::sync::Arc;
use trie_core::{SpanRules, TokenId};
use trie_formats::Payload;

/// Ids that any vocabulary may have, where none is given.
const ANY_VOCABULARY: usize = TokenId::MAX.index() + 1;

/// Builds a sampler for a chain.
pub(crate) fn sampler(vocab: *const llama_vocab, json: &[u8], mode: i32) -> Result<*mut llama_sampler> {
    let mode = parts::mode(mode)?;
    if json.len() > TOKENTRIE_MAX_PAYLOAD {
        let message = format!("json has {} bytes: a payload may have {TOKENTRIE_MAX_PAYLOAD}", json.len());
        return Err(Error::new(TOKENTRIE_ERROR_LIMIT, message));
    }
    let llama = process::llama()?;
    let known = llama.vocabulary(vocab)?;
    let payload = Payload::from_json(json, known.as_ref().map(|(size, _)| *size))?;
    let (size, ends) = known.unwrap_or((ANY_VOCABULARY, Vec::new()));
    let rules = SpanRules::new(payload.constraints, size)?.with_end_of_generation(ends)?;
    let raw = TokenTrieSampler::new(Arc::new(rules), mode).into_raw(llama.init);
    if raw.is_null() {
        let message = "llama_sampler_init made no sampler: is there no memory left?";
        return Err(Error::new(TOKENTRIE_ERROR_LLAMA, message));
    }
    Ok(raw.cast())
}

/// The owner's end of a sampler; `None` for NULL and for samplers of others.
pub(crate) fn handle(sampler: *const llama_sampler) -> Option<SamplerHandle> {
    // SAFETY: the header wants NULL or a sampler whose chain lives.
    unsafe { SamplerHandle::of_raw(sampler.cast()) }
}
