//! Choices of sessions: texts in the tokens of the model, and the probability of each.

use super::parts::{ids, items};
use super::structs::{tokentrie_choice, tokentrie_session, tokentrie_trie};
use super::trie::{TRIES, payload_bytes, payload_of};
use crate::error::{Error, Result, done};
use crate::memory::{Buffer, In, Out, text};
use crate::session::SESSIONS;
use crate::status::*;
use std::ffi::c_char;
use std::sync::Arc;

/// Texts by their ends.
fn texts<'a>(bytes: &'a In<c_char>, n_bytes: usize, ends: &In<u64>, n_texts: usize) -> Result<Vec<&'a str>> {
    let (bytes, ends) = (bytes.bytes(n_bytes, "texts")?, ends.slice(n_texts, "ends")?);
    let range = items(bytes.len(), ends, "texts")?.enumerate();
    range.map(|(at, range)| text(&bytes[range], &format!("texts[{at}]"))).collect()
}

/// A trie of texts in the tokens of this model, named by themselves: each follows `prefix`, which the prompt ends with,
/// and ends with `suffix`; both may be empty. Where a token crosses the boundary to the prefix the trie begins before
/// that token, and sessions take it off the prompt.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_texts(
    session: tokentrie_session,
    texts: In<c_char>,
    n_bytes: usize,
    ends: In<u64>,
    n_texts: usize,
    prefix: In<c_char>,
    n_prefix: usize,
    suffix: In<c_char>,
    n_suffix: usize,
    trie: Out<tokentrie_trie>,
) -> tokentrie_status {
    done(|| {
        trie.check("trie")?;
        let texts = self::texts(&texts, n_bytes, &ends, n_texts)?;
        let (prefix, suffix) = (prefix.text(n_prefix, "prefix")?, suffix.text(n_suffix, "suffix")?);
        let made = SESSIONS.get(session)?.texts(&texts, prefix, suffix)?;
        trie.put(TRIES.insert(Arc::new(payload_of(String::new(), made)))?);
        Ok(())
    })
}

/// Probabilities for the caller.
fn put_choice(
    chosen: &(Vec<f64>, tokentrie_choice),
    probabilities: &Out<f64>,
    capacity: usize,
    choice: &Out<tokentrie_choice>,
) -> Result<()> {
    // The caller knows how many values it gave, and `choice` says it too.
    Buffer::uncounted(probabilities, capacity, "probabilities")?.fill(&chosen.0)?;
    if choice.is_null() { Ok(()) } else { choice.put_fields(&chosen.1, "choice") }
}

/// That there is room for as many probabilities, before a model is asked.
fn room(capacity: usize, values: usize, choice: &Out<tokentrie_choice>) -> Result<()> {
    if !choice.is_null() {
        choice.check_fields("choice")?;
    }
    if capacity >= values {
        return Ok(());
    }
    let message = format!("probabilities has room for {capacity}: {values} are needed");
    Err(Error::new(TOKENTRIE_ERROR_BUFFER, message))
}

/// The probability of each of these texts as the continuation of the prompt, in their order; together they are 1. The
/// prompt is text with the names of control tokens in it, as a chat template writes it. `choice` may be NULL; else the
/// caller sets choice->size. `probabilities` has room for n_texts.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_choose(
    session: tokentrie_session,
    prompt: In<c_char>,
    n_prompt: usize,
    texts: In<c_char>,
    n_bytes: usize,
    ends: In<u64>,
    n_texts: usize,
    probabilities: Out<f64>,
    capacity: usize,
    choice: Out<tokentrie_choice>,
) -> tokentrie_status {
    done(|| {
        room(capacity, n_texts, &choice)?;
        let texts = self::texts(&texts, n_bytes, &ends, n_texts)?;
        let chosen = SESSIONS.get(session)?.choose_texts(prompt.text(n_prompt, "prompt")?, &texts)?;
        put_choice(&chosen, &probabilities, capacity, &choice)
    })
}

/// The same for a prompt of tokens and the leaves of a trie, in their order.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_choose_leaves(
    session: tokentrie_session,
    ids: In<i32>,
    n_ids: usize,
    trie: tokentrie_trie,
    probabilities: Out<f64>,
    capacity: usize,
    choice: Out<tokentrie_choice>,
) -> tokentrie_status {
    done(|| {
        let trie = TRIES.get(trie)?.trie(None)?.clone();
        room(capacity, trie.len(), &choice)?;
        let prompt = self::ids(ids.slice(n_ids, "ids")?, "ids")?;
        let chosen = SESSIONS.get(session)?.choose_leaves(&prompt, trie)?;
        put_choice(&chosen, &probabilities, capacity, &choice)
    })
}

/// The probability of each value, as a request in JSON says it: `{"prompt": "Is it on? ", "choices": ["yes", "no"],
/// "top": 1}`; choices are texts or a spec with values that can be listed. Without them the values are those of what
/// was set, without a prompt it is asked after what was taken and generated before. tokentrie_session_result has what
/// came of it.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_choose_json(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.choose_json(payload_bytes(&json, length, "json")?))
}

/// Answers typed questions about a state, as a request in JSON says them: `{"state": "...", "questions": {"team":
/// {"type": "choice", "options": ["billing", "access"]}}, "permute": 2}`; `"states"` are several. The state is decoded
/// once for all questions. tokentrie_session_result has the answers, an array with one object for each state.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_decide_json(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.decide_json(payload_bytes(&json, length, "json")?))
}
