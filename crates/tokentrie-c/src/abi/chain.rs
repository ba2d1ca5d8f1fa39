//! Inside the llama.cpp of the program.

use super::parts::{named, state};
use super::sampler::put_leaf;
use super::structs::{llama_sampler, llama_vocab, tokentrie_llama_api};
use crate::error::{Error, Result, done, guarded};
use crate::memory::{Buffer, In, Out};
use crate::status::tokentrie_status;
use crate::{chain, process};
use ::llama_callbacks::SamplerHandle;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

/// The llama.cpp that llama_sampler_init_token_trie shall use, in place of what is found in the process. NULL: look in
/// the process again. Of several calls at once one is the last.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_bind_llama(api: In<tokentrie_llama_api>) -> tokentrie_status {
    done(|| process::bind(process::given(&api)?.as_ref()))
}

/// A sampler for a chain of the process's llama.cpp; put it first. `json` ends with a zero and may be freed afterwards;
/// the chain owns the sampler. `vocab` may be NULL: ids are not checked. NULL on a payload that is malformed or has no
/// usable leaf, on an unknown mode, and where there is no llama.cpp that is known; tokentrie_last_error() says why.
#[unsafe(no_mangle)]
pub extern "C" fn llama_sampler_init_token_trie(
    vocab: In<llama_vocab>,
    json: In<c_char>,
    mode: c_int,
) -> *mut llama_sampler {
    let mut raw = null_mut();
    done(|| {
        raw = chain::sampler(vocab.pointer(), json.until_zero("json")?, mode)?;
        Ok(())
    });
    raw
}

/// The owner's end of a sampler of ours.
fn handle(sampler: &In<llama_sampler>) -> Result<SamplerHandle> {
    let ours = chain::handle(sampler.pointer());
    ours.ok_or_else(|| Error::argument("sampler is NULL, or not from llama_sampler_init_token_trie"))
}

/// Returns the state of a sampler from llama_sampler_init_token_trie, while its chain lives: `state` becomes
/// TOKENTRIE_STATE_…, `depth` the tokens walked in the trie; either may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_chain_state(
    sampler: In<llama_sampler>,
    state: Out<i32>,
    depth: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let status = handle(&sampler)?.status();
        state.put(self::state(status.state));
        depth.put(status.depth);
        Ok(())
    })
}

/// As tokentrie_sampler_leaf, of a sampler from llama_sampler_init_token_trie while its chain lives.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_chain_leaf(
    sampler: In<llama_sampler>,
    leaf: Out<u32>,
    name: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let found = named(handle(&sampler)?.leaf());
        put_leaf(found, &leaf, &Buffer::new(&name, capacity, &count, "name")?)
    })
}

/// Arms a sampler from llama_sampler_init_token_trie at the start of the trie with this path, while its chain lives.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_chain_activate(
    sampler: In<llama_sampler>,
    path: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| Ok(handle(&sampler)?.activate(path.text(length, "path")?)?))
}
