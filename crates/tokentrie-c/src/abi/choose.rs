//! Choices, probabilities and decisions of sessions: requests and results are JSON.

use super::structs::tokentrie_session;
use super::trie::payload_bytes;
use crate::error::done;
use crate::memory::In;
use crate::session::SESSIONS;
use crate::status::*;
use std::ffi::c_char;

/// The probability of each value, as a request in JSON says it: `{"prompt": "Is it on? ", "choices": ["yes", "no"],
/// "top": 1}`; choices are texts or a spec with values that can be listed. Without them the values are those of what
/// was set, without a prompt it is asked after what was taken and generated before. Together the probabilities are 1.
/// tokentrie_session_result has what came of it.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_choose(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.choose(payload_bytes(&json, length, "json")?))
}

/// The probability that the model writes any text of a constraint, as a request in JSON says it: `{"prompt": "Room ",
/// "constraint": {"regex": "[0-9]+"}, "tolerance": 0.001}` and what docs/c-sessions.md lists. Without a constraint it
/// is that of what was set, without a prompt it is asked after what was taken and generated before.
/// tokentrie_session_result has the estimate and its bounds, also where the time was over first.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_probability(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.probability(payload_bytes(&json, length, "json")?))
}

/// Answers typed questions about a state, as a request in JSON says them: `{"state": "...", "questions": {"team":
/// {"type": "choice", "options": ["billing", "access"]}}, "permute": 2}`; `"states"` are several. The state is decoded
/// once for all questions. tokentrie_session_result has the answers, an array with one object for each state.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_session_decide(
    session: tokentrie_session,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| SESSIONS.get(session)?.decide(payload_bytes(&json, length, "json")?))
}
