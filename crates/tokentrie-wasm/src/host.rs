//! Memory for calls, and what the module asks its host for.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char};
use std::sync::Once;
use std::time::Duration;
use tokentrie_c::more::{panicked, report};

// SAFETY: `hosts/typescript/src/ffi/wasm.ts` gives these, and they do what is said here.
#[cfg_attr(target_family = "wasm", link(wasm_import_module = "tokentrie"))]
unsafe extern "C" {
    /// Milliseconds of a clock that only goes forward.
    safe fn now() -> f64;
    /// Milliseconds since 1970 as the local time shows them.
    #[cfg(feature = "chat")]
    safe fn local_time() -> f64;
    /// Has a tokenizer of the host make tokens of a text: how many there are, or -1 where it failed.
    fn tokenize(tokenizer: i32, text: *const u8, length: usize) -> i32;
    /// Copies the tokens of the host.
    fn take_tokens(to: *mut i32);
}

/// Has the host's tokenizer make tokens of a text. `None` where it failed; the host knows why.
pub(crate) fn tokenize_on_host(tokenizer: i32, text: &str) -> Option<Vec<i32>> {
    // SAFETY: the host reads so many bytes there, during the call.
    let count = unsafe { tokenize(tokenizer, text.as_ptr(), text.len()) };
    let mut tokens = vec![0; usize::try_from(count).ok()?];
    // SAFETY: the host writes as many tokens as it has said.
    unsafe { take_tokens(tokens.as_mut_ptr()) };
    Some(tokens)
}

/// Words of call memory that are kept.
const KEPT: usize = 1 << 17;

thread_local! {
    /// Memory for calls, in units of 128 bits, so that everything in it is aligned.
    static MEMORY: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
    static RESULT: RefCell<CString> = RefCell::new(CString::default());
    static IS_READY: Cell<bool> = const { Cell::new(false) };
}

/// Memory with room for so many bytes, until this is called again; 0 where there is none left. The host asks for it
/// before every call, and copies into it what it lends.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_wasm_memory(bytes: usize) -> *mut u8 {
    make_ready();
    let words = bytes.div_ceil(size_of::<u128>()).max(1);
    MEMORY.with_borrow_mut(|memory| {
        if memory.len() < words || (memory.len() > KEPT && words <= KEPT) {
            *memory = Vec::new();
            let wanted = words.max(KEPT.min(2 * words));
            if memory.try_reserve_exact(wanted).is_err() {
                return std::ptr::null_mut();
            }
            memory.resize(wanted, 0);
        }
        memory.as_mut_ptr().cast()
    })
}

/// The text that the last function made which makes one; UTF-8 with a zero at the end, valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_wasm_result() -> *const c_char {
    RESULT.with_borrow(|result| result.as_ptr())
}

/// Keeps a text in JSON for the host.
pub(crate) fn put_result(json: &serde_json::Value) {
    // JSON has no zeros.
    let text = CString::new(json.to_string()).unwrap_or_default();
    RESULT.with_borrow_mut(|result| *result = text);
}

/// Initialises the module once, before anything else.
fn make_ready() {
    static READY: Once = Once::new();
    if IS_READY.replace(true) {
        return;
    }
    READY.call_once(|| {
        // A panic stops the module: its sentence stays where those of errors are.
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(|at| format!(" at {at}")).unwrap_or_default();
            let mut error = panicked(panic.payload());
            error.message.push_str(&place);
            report(&error);
        }));
        trie_core::work::lend_clock(|| Duration::try_from_secs_f64(now() / 1000.0).unwrap_or_default());
        #[cfg(feature = "chat")]
        chat_format::Clock::lend(clock);
    });
}

/// The local time of the host.
#[cfg(feature = "chat")]
fn clock() -> chat_format::Clock {
    let milliseconds = local_time();
    chat_format::Clock::at_milliseconds(milliseconds as i64).unwrap_or_default()
}
