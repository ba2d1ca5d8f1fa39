//! Sessions under the names that one agent runtime looks for in a library. Its handle is the number of the session, in
//! a pointer; what it says is what its interface says, so that it needs no code of ours.

use super::session::tokentrie_token_callback;
use super::session::{NO_TOKEN, generate, tokentrie_session_clear_token_trie, tokentrie_session_set_token_trie};
use super::structs::tokentrie_session;
use crate::error::{Error, Result, done, guarded, last_sentence};
use crate::memory::{Buffer, In, Out, copy_of};
use crate::session::{Event, Opening, Plan, SESSIONS, Session};
use crate::status::{TOKENTRIE_ERROR_BUFFER, TOKENTRIE_OK, tokentrie_status};
use ::llama_sampler::ContextOptions;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;
use tokentrie::engine::EngineOptions;
use trie_core::After;
use trie_text::Prompt;

const FAILED: i32 = -1;

fn number(handle: *mut c_void) -> tokentrie_session {
    handle.addr() as tokentrie_session
}

/// A session, or NULL; tokentrie_last_error() says why. Numbers below 1 take the defaults (threads, layers), and more
/// context than the model was trained on becomes that. Text goes on after a leaf.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_llm_stream_open(
    model_path: In<c_char>,
    context_tokens: i32,
    threads: i32,
    gpu_layers: i32,
) -> *mut c_void {
    let mut handle = null_mut();
    done(|| {
        let path = crate::memory::text(model_path.until_zero("model_path")?, "model_path")?;
        let some = |number: i32| u32::try_from(number).ok().filter(|&number| number > 0);
        let opening = Opening {
            context: ContextOptions::default().with_n_ctx(some(context_tokens)).with_n_threads(some(threads)),
            engine: EngineOptions::default(),
            n_gpu_layers: some(gpu_layers).unwrap_or(0),
            after: After::Free,
            seed: None,
            clamp: true,
        };
        let number = SESSIONS.insert(Arc::new(Session::open(Path::new(path), opening)?))?;
        handle = std::ptr::without_provenance_mut(number as usize);
        Ok(())
    });
    handle
}

/// 1: there are sessions.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_llm_stream_supported() -> i32 {
    1
}

/// The number of tokens taken, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_llm_stream_prefill(handle: *mut c_void, ids: In<i32>, n_ids: i32, slot: i32) -> i32 {
    let mut taken = FAILED;
    done(|| {
        let count = usize::try_from(n_ids).map_err(|_| Error::argument(format!("n_ids is {n_ids}")))?;
        let tokens = super::parts::ids(ids.slice(count, "ids")?, "ids")?;
        taken = SESSIONS.get(number(handle))?.prefill(Prompt::Tokens(tokens), slot)? as i32;
        Ok(())
    });
    taken
}

/// As tokentrie_session_generate; 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_llm_stream_generate(
    handle: *mut c_void,
    max_new_tokens: i32,
    temperature: f32,
    top_p: f32,
    callback: tokentrie_token_callback,
    user: *mut c_void,
) -> i32 {
    let status = done(|| {
        let most = u32::try_from(max_new_tokens).unwrap_or(0);
        generate(number(handle), || Plan::new(most, temperature, top_p), callback, user)
    });
    if status == TOKENTRIE_OK { 0 } else { FAILED }
}

/// The pull form: waits for at least one step, and takes what is there. Begins a greedy generation where none was
/// started (tokentrie_session_start). 0: there is more, 1: that was the last, negative: an error, and a sentence in
/// *out_error unless that is NULL, for eliza_inference_free_string. `text` ends with a zero. Nothing is drafted: both
/// numbers become 0, and may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_llm_stream_next(
    handle: *mut c_void,
    tokens: Out<i32>,
    tokens_capacity: usize,
    n_tokens: Out<usize>,
    text: Out<c_char>,
    text_capacity: usize,
    drafted: Out<i32>,
    accepted: Out<i32>,
    out_error: Out<*mut c_char>,
) -> i32 {
    drafted.put(0);
    accepted.put(0);
    out_error.put(null_mut());
    let status = guarded(|| {
        let session = SESSIONS.get(number(handle))?;
        if !session.is_open() {
            session.start(Plan::new(i32::MAX as u32, 0.0, 1.0)?)?;
        }
        let (ids, said) = (
            Buffer::new(&tokens, tokens_capacity, &n_tokens, "tokens")?,
            Buffer::uncounted(&text, text_capacity, "text")?,
        );
        let (mut pulled, mut written) = (Vec::new(), String::new());
        let mut ended: Option<Option<Error>> = None;
        let mut timeout = None;
        while ended.is_none() && pulled.len() < tokens_capacity {
            let next = session.next(timeout, |event| match event {
                Event::Done(error) => {
                    ended = Some(error.clone());
                    Ok(true)
                }
                Event::Token(token, piece) => {
                    let fits = written.len() + piece.len() < text_capacity;
                    if fits {
                        pulled.push(token.as_i32());
                        written.extend(piece.chars().filter(|&char| char != '\0'));
                    }
                    if fits { Ok(true) } else { Err(too_small(text_capacity, piece.len() + 1)) }
                }
            });
            match next {
                Ok(Some(_)) => timeout = Some(Duration::ZERO),
                Ok(None) => break,
                Err(_) if !pulled.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        written.push('\0');
        ids.fill(&pulled)?;
        said.fill_text(&written)?;
        match ended {
            Some(Some(error)) => Err(error),
            Some(None) => Ok(1),
            None if tokens_capacity == 0 => Err(too_small(0, 1)),
            None => Ok(0),
        }
    });
    if status < 0 && !out_error.is_null() {
        out_error.put(copy_of(&last_sentence()));
    }
    status
}

fn too_small(capacity: usize, need: usize) -> Error {
    Error::new(TOKENTRIE_ERROR_BUFFER, format!("the buffer has room for {capacity}: {need} are needed"))
}

/// Calls tokentrie_session_cancel for the stream.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_llm_stream_cancel(handle: *mut c_void) {
    done(|| {
        SESSIONS.get(number(handle))?.cancel();
        Ok(())
    });
}

/// As tokentrie_session_close; nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_llm_stream_close(handle: *mut c_void) {
    if !handle.is_null() {
        done(|| -> Result<()> { SESSIONS.remove(number(handle), |session| session.close()).map(drop) });
    }
}

/// Calls tokentrie_session_set_token_trie for the stream.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_set_token_trie(
    handle: *mut c_void,
    json: In<c_char>,
    length: usize,
    mode: i32,
) -> tokentrie_status {
    tokentrie_session_set_token_trie(number(handle), json, length, mode)
}

/// Calls tokentrie_session_clear_token_trie for the stream.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_clear_token_trie(handle: *mut c_void) -> tokentrie_status {
    tokentrie_session_clear_token_trie(number(handle))
}

/// Frees a sentence of this library; nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eliza_inference_free_string(text: Out<c_char>) {
    text.free_copy();
}

const _: () = assert!(NO_TOKEN == -1 && size_of::<usize>() == size_of::<tokentrie_session>());
