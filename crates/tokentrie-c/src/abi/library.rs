//! Properties of the library, and its last error.

use crate::error;
use crate::status::{TOKENTRIE_ABI_VERSION, TOKENTRIE_FEATURE_LLAMA, TOKENTRIE_FEATURE_THIS_CPU, tokentrie_status};
use std::ffi::c_char;

/// Version of the library: compare with TOKENTRIE_ABI_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_abi_version() -> u32 {
    TOKENTRIE_ABI_VERSION
}

/// Returns the features of this build: bits TOKENTRIE_FEATURE_…
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_features() -> u32 {
    let bit = |has, bit| if has { bit } else { 0 };
    bit(cfg!(feature = "llama"), TOKENTRIE_FEATURE_LLAMA) | bit(cfg!(beyond_level), TOKENTRIE_FEATURE_THIS_CPU)
}

/// Returns the message of the last call that failed on this thread; "" if there was none. UTF-8 with a zero at the end,
/// valid until the next call that fails on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_last_error() -> *const c_char {
    error::last()
}

/// The name of a status, such as "TOKENTRIE_ERROR_HANDLE"; "unknown status" for others.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_status_name(status: tokentrie_status) -> *const c_char {
    error::status_name(status).as_ptr()
}
