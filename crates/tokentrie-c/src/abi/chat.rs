//! Chats of sessions: requests and replies are JSON.

use super::structs::tokentrie_session;
use super::trie::payload_bytes;
use crate::error::done;
use crate::memory::{Buffer, In, Out};
use crate::session::SESSIONS;
use crate::status::*;
use std::ffi::c_char;

/// Sets how the replies of the chats of a session are read and constrained: a response template in JSON, as its author
/// publishes it for transformers, or a `tokenizer_config.json` that has one. With length 0 the model's own format
/// holds again. TOKENTRIE_ERROR_SPEC if it is invalid: the format is as it was.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_set_response_template(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| {
        let json = if length == 0 { None } else { Some(json.text(length, "json")?) };
        SESSIONS.get(session)?.set_response_template(json)
    })
}

/// The prompt of a request, in tokens: the conversation as the model's own template writes it. What messages and tools
/// contain is plain text: a control token's name in it stays text.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_chat_prompt(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let buffer = Buffer::new(&ids, capacity, &count, "ids")?;
        let tokens = SESSIONS.get(session)?.chat_prompt(payload_bytes(&json, length, "json")?)?;
        buffer.fill_with(tokens.len(), tokens.iter().map(|token| token.as_i32()))
    })
}

/// Answers a conversation on a thread of the library: `{"messages": [...], "tools": [...], "tool_choice": "auto"}` and
/// what else docs/c-sessions.md lists. Calls of tools are right by construction. tokentrie_session_next gives the
/// events, each a JSON object as its text, such as `{"kind": "content", "text": "Hel"}`; tokentrie_session_result the
/// whole reply once it is over: `{"message": {"role": "assistant", ...}, "finish": "stop", "warnings": [...], "stats":
/// {...}}`. Its message goes on into the next request. Of a conversation that goes on only new tokens are decoded. The
/// prompt that was taken before is gone.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_chat_start(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.chat_start(payload_bytes(&json, length, "json")?))
}
