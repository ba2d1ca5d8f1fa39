//! Statuses and the other named numbers of the header.

use std::ffi::CStr;

/// Version of this header. A library fits if tokentrie_abi_version() has the same upper 16 bits and lower 16 bits that
/// are no smaller.
pub const TOKENTRIE_ABI_VERSION: u32 = 0x0001_0000;
/// The most bytes of a payload in JSON or RTKT.
pub const TOKENTRIE_MAX_PAYLOAD: usize = 268_435_456;
/// A bit of tokentrie_features(): the library has sessions.
pub const TOKENTRIE_FEATURE_LLAMA: u32 = 1;
/// A bit of tokentrie_features(): the library was compiled for more than x86-64-v3 or plain aarch64, such as for the
/// processor of the machine that built it. Others may not run it.
pub const TOKENTRIE_FEATURE_THIS_CPU: u32 = 2;

/// Status returned by a function: TOKENTRIE_OK, a positive status that is not an error, or a negative error.
pub type tokentrie_status = i32;

/// The call has succeeded.
pub const TOKENTRIE_OK: tokentrie_status = 0;
/// There is none (yet): no leaf is complete, no token came in time.
pub const TOKENTRIE_NONE: tokentrie_status = 1;
/// 0, freed, or a handle of another kind.
pub const TOKENTRIE_ERROR_HANDLE: tokentrie_status = -1;
/// NULL where none may be, a number out of range, lengths that contradict each other.
pub const TOKENTRIE_ERROR_ARGUMENT: tokentrie_status = -2;
/// A buffer is too small: the count says what is needed.
pub const TOKENTRIE_ERROR_BUFFER: tokentrie_status = -3;
/// Bytes that are no UTF-8.
pub const TOKENTRIE_ERROR_TEXT: tokentrie_status = -4;
/// A payload (JSON or RTKT) that is malformed or has no usable leaf.
pub const TOKENTRIE_ERROR_PAYLOAD: tokentrie_status = -5;
/// Sequences or texts that make no trie.
pub const TOKENTRIE_ERROR_SET: tokentrie_status = -6;
/// A .ttrie file that cannot be read or written.
pub const TOKENTRIE_ERROR_FILE: tokentrie_status = -7;
/// A token id that the vocabulary does not have, or a set for another vocabulary.
pub const TOKENTRIE_ERROR_VOCAB: tokentrie_status = -8;
/// A token that may not come here, or a request that does not fit the state.
pub const TOKENTRIE_ERROR_NOT_ALLOWED: tokentrie_status = -9;
/// A row of logits or a mask that is shorter than the vocabulary.
pub const TOKENTRIE_ERROR_ROW: tokentrie_status = -10;
/// A set from a damaged file: nothing may come.
pub const TOKENTRIE_ERROR_DAMAGED: tokentrie_status = -11;
/// In use by another call: a generation that runs, another thread, or the callback that is calling.
pub const TOKENTRIE_ERROR_BUSY: tokentrie_status = -12;
/// No llama.cpp in the process, one whose table of callbacks is unknown, or a library without llama.cpp.
pub const TOKENTRIE_ERROR_LLAMA: tokentrie_status = -13;
/// A model that cannot be loaded, a prompt that does not fit it, or a forward pass that failed.
pub const TOKENTRIE_ERROR_MODEL: tokentrie_status = -14;
/// The call was ended by tokentrie_session_cancel.
pub const TOKENTRIE_ERROR_CANCELLED: tokentrie_status = -15;
/// Larger than a documented limit.
pub const TOKENTRIE_ERROR_LIMIT: tokentrie_status = -16;
/// A fault of the library; what was being changed is closed.
pub const TOKENTRIE_ERROR_PANIC: tokentrie_status = -17;
/// A spec that cannot be read or used: the message has the place.
pub const TOKENTRIE_ERROR_SPEC: tokentrie_status = -18;

/// A mode: the highest logit, ties to the lowest id.
pub const TOKENTRIE_MODE_GREEDY: i32 = 0;
/// A mode: temperature, top-k, top-p, min-p and a seeded draw over the allowed tokens.
pub const TOKENTRIE_MODE_SAMPLED: i32 = 1;

/// After a complete leaf anything may follow.
pub const TOKENTRIE_AFTER_FREE: i32 = 0;
/// After a complete leaf only end of generation may follow; a session ends there.
pub const TOKENTRIE_AFTER_STOP: i32 = 1;

/// A state: the constraint is active.
pub const TOKENTRIE_STATE_ACTIVE: i32 = 0;
/// A state: the leaf is known.
pub const TOKENTRIE_STATE_COMPLETE: i32 = 1;
/// A state: switched off until a path is activated.
pub const TOKENTRIE_STATE_IDLE: i32 = 2;
/// A state: switched off by something that was not allowed.
pub const TOKENTRIE_STATE_OFF: i32 = 3;

/// The listed tokens alone may come.
pub const TOKENTRIE_ALLOWED_ONLY: i32 = 0;
/// Everything may come; the listed tokens go on, all others end the leaf that ends here.
pub const TOKENTRIE_ALLOWED_OPEN: i32 = 1;
/// Everything may come; none is listed.
pub const TOKENTRIE_ALLOWED_ALL: i32 = 2;

/// Contents of a forward pass of an engine: tokens of every call that runs.
pub const TOKENTRIE_BATCHING_FREE: i32 = 0;
/// Tokens of one call, which gets the same logits whatever runs beside it, bit for bit.
pub const TOKENTRIE_BATCHING_FIXED: i32 = 1;

/// A kind of token: text.
pub const TOKENTRIE_TOKEN_NORMAL: u8 = 0;
/// A kind of token: control, no text.
pub const TOKENTRIE_TOKEN_CONTROL: u8 = 1;
/// A kind of token: it ends the output.
pub const TOKENTRIE_TOKEN_END_OF_GENERATION: u8 = 2;

/// Why a generation ended: none has ended yet.
pub const TOKENTRIE_FINISH_NONE: i32 = 0;
/// The span is over: its value is complete, and nothing shall follow it.
pub const TOKENTRIE_FINISH_SPAN: i32 = 1;
/// The model ended its output.
pub const TOKENTRIE_FINISH_END_OF_GENERATION: i32 = 2;
/// The limit was reached.
pub const TOKENTRIE_FINISH_MAX_TOKENS: i32 = 3;
/// The context was full.
pub const TOKENTRIE_FINISH_CONTEXT_FULL: i32 = 4;
/// A finish: tokentrie_session_cancel was called.
pub const TOKENTRIE_FINISH_CANCELLED: i32 = 5;
/// It failed: the status of the call says how.
pub const TOKENTRIE_FINISH_ERROR: i32 = 6;
/// The time of its request was over.
pub const TOKENTRIE_FINISH_TIMED_OUT: i32 = 7;
/// A stop text of its request was written.
pub const TOKENTRIE_FINISH_STOP_TEXT: i32 = 8;
/// The reply of a chat calls tools.
pub const TOKENTRIE_FINISH_TOOL_CALLS: i32 = 9;

/// The name of a status.
pub(crate) fn name_of(status: tokentrie_status) -> &'static CStr {
    match status {
        TOKENTRIE_OK => c"TOKENTRIE_OK",
        TOKENTRIE_NONE => c"TOKENTRIE_NONE",
        TOKENTRIE_ERROR_HANDLE => c"TOKENTRIE_ERROR_HANDLE",
        TOKENTRIE_ERROR_ARGUMENT => c"TOKENTRIE_ERROR_ARGUMENT",
        TOKENTRIE_ERROR_BUFFER => c"TOKENTRIE_ERROR_BUFFER",
        TOKENTRIE_ERROR_TEXT => c"TOKENTRIE_ERROR_TEXT",
        TOKENTRIE_ERROR_PAYLOAD => c"TOKENTRIE_ERROR_PAYLOAD",
        TOKENTRIE_ERROR_SET => c"TOKENTRIE_ERROR_SET",
        TOKENTRIE_ERROR_FILE => c"TOKENTRIE_ERROR_FILE",
        TOKENTRIE_ERROR_VOCAB => c"TOKENTRIE_ERROR_VOCAB",
        TOKENTRIE_ERROR_NOT_ALLOWED => c"TOKENTRIE_ERROR_NOT_ALLOWED",
        TOKENTRIE_ERROR_ROW => c"TOKENTRIE_ERROR_ROW",
        TOKENTRIE_ERROR_DAMAGED => c"TOKENTRIE_ERROR_DAMAGED",
        TOKENTRIE_ERROR_BUSY => c"TOKENTRIE_ERROR_BUSY",
        TOKENTRIE_ERROR_LLAMA => c"TOKENTRIE_ERROR_LLAMA",
        TOKENTRIE_ERROR_MODEL => c"TOKENTRIE_ERROR_MODEL",
        TOKENTRIE_ERROR_CANCELLED => c"TOKENTRIE_ERROR_CANCELLED",
        TOKENTRIE_ERROR_LIMIT => c"TOKENTRIE_ERROR_LIMIT",
        TOKENTRIE_ERROR_PANIC => c"TOKENTRIE_ERROR_PANIC",
        TOKENTRIE_ERROR_SPEC => c"TOKENTRIE_ERROR_SPEC",
        _ => c"unknown status",
    }
}
