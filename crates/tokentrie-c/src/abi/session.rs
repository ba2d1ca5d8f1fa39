//! Sessions: models on the llama.cpp that is linked in.

use super::structs::{
    tokentrie_engine_info, tokentrie_session, tokentrie_session_info, tokentrie_session_options, tokentrie_trie,
    tokentrie_vocab,
};
use super::trie::payload_bytes;
use super::vocab::VOCABS;
use crate::error::{Result, done, guarded, panicked};
use crate::memory::{Buffer, In, Out};
use crate::session::{Event, OWN_SLOT, Opening, Plan, SESSIONS, Session};
use crate::status::*;
use bytemuck::Zeroable;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokentrie::call::PrefillRequest;
use trie_core::TokenId;

/// Called for every token, in order, on the thread that generates. `text` is UTF-8 with a zero at the end: whole
/// characters that the token completes, often none; it lives until the callback returns. The last call has is_done 1,
/// token -1 and empty text. It comes exactly once for each call of a function that generates, also where that fails
/// before it begins, and after cancel; the generation is over by then, and the session free for another. In the calls
/// before, what would change the session gives TOKENTRIE_ERROR_BUSY; _cancel, _get_info, _result, _vocab and
/// _tokenize work. It must return: no exception, no longjmp.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct tokentrie_token_callback(
    Option<unsafe extern "C" fn(token: i32, text: *const c_char, is_done: i32, user: *mut c_void)>,
);

/// Loads a GGUF; sessions of one file share its weights. `options` may be NULL. `path` is UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_open(
    path: In<c_char>,
    length: usize,
    options: In<tokentrie_session_options>,
    session: Out<tokentrie_session>,
) -> tokentrie_status {
    done(|| {
        session.check("session")?;
        let options = options.fields("options")?.unwrap_or_else(Zeroable::zeroed);
        let opened = Session::open(Path::new(path.text(length, "path")?), Opening::of(&options)?)?;
        session.put(SESSIONS.insert(Arc::new(opened))?);
        Ok(())
    })
}

/// Takes a prompt in place of the one before, as a request in JSON says it: `{"prompt": "The sky is ", "slot": 3}`, and
/// computes what the cache does not hold of it. A prompt is token ids, or text, in which names of control tokens become
/// those tokens. A constraint of tokentrie_constraint_from_json that the next generation follows is tokenised together
/// with the end of a text (token healing): the first tokens may spell the end of the prompt again, which is not part of
/// the text that comes. A slot from 0 to 63 names a cache that sessions of the same file and options share, one call at
/// a time; without it the session has its own. `taken` becomes the number of tokens, and may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_prefill(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
    taken: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let PrefillRequest { prompt, slot } = PrefillRequest::from_json(payload_bytes(&json, length, "json")?)?;
        taken.put(SESSIONS.get(session)?.prefill(prompt, slot.map_or(OWN_SLOT, i32::from))?);
        Ok(())
    })
}

/// Writes what the cache holds of the prompt that was taken to a file, which appears when it is whole: for
/// tokentrie_session_load_prefix in another process. `path` is UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_save_prefix(
    session: tokentrie_session,
    path: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.save_prefix(Path::new(path.text(length, "path")?)))
}

/// Takes what such a file holds as the prompt, without computing it. TOKENTRIE_ERROR_FILE for a file that is damaged,
/// of another model or of another llama.cpp. Load files that you trust, as models are. `taken` becomes the number of
/// tokens, and may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_load_prefix(
    session: tokentrie_session,
    path: In<c_char>,
    length: usize,
    taken: Out<usize>,
) -> tokentrie_status {
    done(|| {
        taken.put(SESSIONS.get(session)?.load_prefix(Path::new(path.text(length, "path")?))?);
        Ok(())
    })
}

impl tokentrie_token_callback {
    /// A callback as C gives it.
    ///
    /// # Safety
    /// It does what the header says, for any token and text and for the pointer that is given beside it.
    pub const unsafe fn new(
        function: Option<unsafe extern "C" fn(token: i32, text: *const c_char, is_done: i32, user: *mut c_void)>,
    ) -> Self {
        Self(function)
    }

    /// Calls it; the text without the zeros in it.
    fn call(self, token: i32, text: &str, is_done: bool, user: *mut c_void) {
        let Some(function) = self.0 else { return };
        let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
        let text = CString::new(bytes).unwrap_or_default();
        // SAFETY: Header, see `memory.rs`: C gave the function and the pointer in one call, or `new` was promised it.
        unsafe { function(token, text.as_ptr(), is_done.into(), user) };
    }
}

/// Generates with a callback: what all names of the function do.
pub(super) fn generate(
    session: tokentrie_session,
    plan: impl FnOnce() -> Result<Plan>,
    callback: tokentrie_token_callback,
    user: *mut c_void,
) -> Result<()> {
    let mut tell = |token: TokenId, text: &str| callback.call(token.as_i32(), text, false, user);
    let work = || SESSIONS.get(session)?.generate(plan()?, &mut tell);
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)));
    callback.call(NO_TOKEN, "", true, user);
    result
}

pub(super) const NO_TOKEN: i32 = -1;

/// Generates on the calling thread, as a request in JSON says it, and returns at the end: `{"prompt": "The sky is ",
/// "constraint": {"choice": ["blue", "red"]}, "sampling": {"temperature": 0.7, "seed": 1}, "max_tokens": 64,
/// "timeout": 2.5}` and what docs/c-sessions.md lists. Without a prompt it goes on after what was taken and generated
/// before; without a constraint inside what was set, in the mode of that unless the request has `sampling`.
/// tokentrie_session_result has what came of it. `callback` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_generate(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
    callback: tokentrie_token_callback,
    user: *mut c_void,
) -> tokentrie_status {
    done(|| generate(session, || Plan::from_json(payload_bytes(&json, length, "json")?), callback, user))
}

/// The same on a thread of the library; tokentrie_session_next takes its tokens.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_start(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.start(Plan::from_json(payload_bytes(&json, length, "json")?)?))
}

/// Returns the result of the last call, as JSON: of a generation text, tokens, finish, leaf, values and its cost; of a
/// choice the probability of each value; of a probability the estimate and its bounds; of a decision the answers; of a
/// chat that is over, cancelled or not, the reply. docs/c-sessions.md lists the fields. TOKENTRIE_NONE if there is
/// nothing.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_result(
    session: tokentrie_session,
    json: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let buffer = Buffer::new(&json, capacity, &count, "json")?;
        let Some(result) = SESSIONS.get(session)?.result() else { return Ok(TOKENTRIE_NONE) };
        buffer.fill_text(&result).map(|()| TOKENTRIE_OK)
    })
}

/// The next token of a generation that was started: waits up to timeout_ms (0: not at all, -1: as long as it takes),
/// else gives TOKENTRIE_NONE. After the last token is_done becomes 1, token -1, without text, once; if the generation
/// failed, its status is returned then. A text buffer that is too small leaves the token for the next call.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_next(
    session: tokentrie_session,
    timeout_ms: i32,
    token: Out<i32>,
    text: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
    is_done: Out<i32>,
) -> tokentrie_status {
    guarded(|| {
        token.check("token")?;
        is_done.check("is_done")?;
        let buffer = Buffer::new(&text, capacity, &count, "text")?;
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        is_done.put(0);
        let ended = SESSIONS.get(session)?.next(timeout, |event| match event {
            Event::Token(next, said) => {
                buffer.fill_text(said)?;
                token.put(next.as_i32());
                Ok(None)
            }
            Event::Done(error) => {
                buffer.fill(&[])?;
                token.put(NO_TOKEN);
                is_done.put(1);
                Ok(error.clone())
            }
        })?;
        match ended {
            Some(Some(error)) => Err(error),
            Some(None) => Ok(TOKENTRIE_OK),
            None => Ok(TOKENTRIE_NONE),
        }
    })
}

/// Ends a generation, a prefill, a choice or a probability as soon as the forward pass that runs is over; nothing if
/// none runs. From any thread, and from inside the callback.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_cancel(session: tokentrie_session) -> tokentrie_status {
    done(|| {
        SESSIONS.get(session)?.cancel();
        Ok(())
    })
}

/// Sets the source of drafts: tokens that are guessed ahead, so that one forward pass verifies several. Outputs stay
/// the same. "prompt" guesses from the text of each generation, "ngram" from all texts of this session since it was
/// set, and the path of a GGUF with the same vocabulary by that model. With length 0 there are none again.
/// TOKENTRIE_ERROR_ARGUMENT if the model or the session cannot have this source: the one before holds.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_set_draft(
    session: tokentrie_session,
    source: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| {
        let source = if length == 0 { None } else { Some(Path::new(source.text(length, "source")?)) };
        SESSIONS.get(session)?.set_draft(source)
    })
}

/// Frees the session. TOKENTRIE_ERROR_BUSY while a call runs: cancel it, wait for is_done, and close again.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_close(session: tokentrie_session) -> tokentrie_status {
    done(|| SESSIONS.remove(session, |session| session.close()).map(drop))
}

/// The tries that the next generations follow, in place of those before: armed at the start of each generation, until
/// they are cleared. If the payload is refused, those before are gone too; after a generation that failed they are gone
/// as well. Then every generation is refused until tries are set or cleared. Leaves that the vocabulary does not have
/// are left out: tokentrie_session_get_info counts them.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_set_token_trie(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
    mode: i32,
) -> tokentrie_status {
    done(|| {
        let session = SESSIONS.get(session)?;
        let json = payload_bytes(&json, length, "json").inspect_err(|error| session.refuse_token_trie(error))?;
        session.set_token_trie(json, mode)
    })
}

/// The same with tries or a constraint that were made before.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_set_trie(
    session: tokentrie_session,
    trie: tokentrie_trie,
    mode: i32,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.set_trie(trie, mode))
}

/// Follows nothing any more; as often as you like.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_clear_token_trie(session: tokentrie_session) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.clear_token_trie())
}

/// Returns the state of the session, at any time. The caller sets info->size.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_get_info(
    session: tokentrie_session,
    info: Out<tokentrie_session_info>,
) -> tokentrie_status {
    done(|| {
        info.check_fields("info")?;
        info.put_fields(&SESSIONS.get(session)?.info(), "info")
    })
}

/// Returns the load of the engine of a session that was opened with slots; TOKENTRIE_NONE without an engine. At any
/// time. The caller sets info->size.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_engine(
    session: tokentrie_session,
    info: Out<tokentrie_engine_info>,
) -> tokentrie_status {
    guarded(|| {
        info.check_fields("info")?;
        let Some(engine) = SESSIONS.get(session)?.engine_info() else { return Ok(TOKENTRIE_NONE) };
        info.put_fields(&engine, "info").map(|()| TOKENTRIE_OK)
    })
}

/// The vocabulary of the model, as a handle of its own.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_vocab(session: tokentrie_session, vocab: Out<tokentrie_vocab>) -> tokentrie_status {
    done(|| {
        vocab.check("vocab")?;
        vocab.put(VOCABS.insert(SESSIONS.get(session)?.model().vocab())?);
        Ok(())
    })
}

/// The tokens of a text. `add_special`: with those that begin a text; `parse_special`: names of control tokens become
/// those tokens, only for text that is trusted.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_tokenize(
    session: tokentrie_session,
    text: In<c_char>,
    length: usize,
    add_special: i32,
    parse_special: i32,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let buffer = Buffer::new(&ids, capacity, &count, "ids")?;
        let session = SESSIONS.get(session)?;
        let tokens = session.tokenize(text.text(length, "text")?, add_special != 0, parse_special != 0)?;
        buffer.fill_with(tokens.len(), tokens.iter().map(|token| token.as_i32()))
    })
}

const _: () = assert!(OWN_SLOT == -1, "as the header says");
