//! llama.cpp's process-wide part: started once, never stopped, and quiet.
//!
//! llama.cpp's error messages are kept, because its calls only return null. The errors of this crate quote them.

use crate::runtime::error::RuntimeError;
use llama_cpp_2::LlamaCppError;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_sys_2::{GGML_LOG_LEVEL_ERROR, ggml_log_level, llama_log_set};
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::Duration;

/// Set to see on standard error what llama.cpp logs.
const LOG_VARIABLE: &str = "TOKENTRIE_LLAMA_LOG";

/// Bytes of error text that are kept.
const KEPT: usize = 1024;

/// Errors that llama.cpp logged since they were last asked for.
static SAID: Mutex<String> = Mutex::new(String::new());

/// llama.cpp's backend, which the first call starts.
///
/// # Errors
/// llama.cpp did not start.
pub(super) fn backend() -> Result<&'static LlamaBackend, RuntimeError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let started = BACKEND.get_or_init(|| match LlamaBackend::init() {
        Ok(backend) => {
            listen();
            Ok(backend)
        }
        // The program uses llama.cpp by itself and started it before us: its logs stay its own.
        Err(LlamaCppError::BackendAlreadyInitialized) => Ok(LlamaBackend {}),
        Err(error) => Err(error.to_string()),
    });
    started.as_ref().map_err(|reason| RuntimeError::Backend { reason: reason.clone() })
}

/// Returns whether this build supports a graphics card, and finds one.
///
/// # Errors
/// llama.cpp did not start.
pub fn supports_graphics_cards() -> Result<bool, RuntimeError> {
    Ok(backend()?.supports_gpu_offload())
}

/// Sequences that this build of llama.cpp can keep apart in one context: at least two, 256 by default.
pub(super) fn max_sequences() -> u32 {
    // SAFETY: it takes nothing, returns a constant of the build and may be called at any time.
    let most = unsafe { llama_cpp_sys_2::llama_max_parallel_sequences() };
    u32::try_from(most).unwrap_or(u32::MAX).max(2)
}

/// Runs a call that reports failure by null only, and returns llama.cpp's messages if it fails. No other such call runs
/// in the process meanwhile.
///
/// Otherwise the messages of two calls would mix, and making two contexts of one model at once would be a data race
/// (`llama_init_from_model` writes to the model).
pub(super) fn run_with_log<T, E: std::fmt::Display>(call: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    static ALONE: Mutex<()> = Mutex::new(());
    /// The process of the thread that last held the lock.
    static INSIDE: AtomicU32 = AtomicU32::new(0);
    /// Number of checks, a millisecond apart. A thread that takes the lock stores its process a moment later.
    const LOOKS: usize = 100;
    let here = std::process::id();
    let mut looks = 0;
    let _alone = loop {
        match ALONE.try_lock() {
            Ok(alone) => break alone,
            Err(TryLockError::Poisoned(alone)) => break alone.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let inside = INSIDE.load(Ordering::SeqCst);
                // That thread is not in this process, and will never come out.
                looks = if inside != here && inside != 0 { looks + 1 } else { 0 };
                if looks > LOOKS {
                    let what = "this process was forked while another thread was loading a model or making a context";
                    return Err(format!("{what}: fork when none does, or start a new process"));
                }
                sleep(Duration::from_millis(1));
            }
        }
    };
    INSIDE.store(here, Ordering::SeqCst);
    lock_messages().clear();
    call().map_err(|error| {
        let said = std::mem::take(&mut *lock_messages());
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() { error.to_string() } else { lines.join("; ") }
    })
}

fn lock_messages() -> MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen() {
    let echo: *mut c_void = match std::env::var_os(LOG_VARIABLE) {
        Some(_) => std::ptr::from_ref(&SAID).cast_mut().cast(),
        None => std::ptr::null_mut(),
    };
    // SAFETY: the callback is a function of this program, and `echo` is only compared with null.
    unsafe { llama_log_set(Some(hear), echo) };
}

unsafe extern "C" fn hear(level: ggml_log_level, text: *const c_char, echo: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: llama.cpp passes a string that ends with a zero and lives during the call.
    let text = unsafe { CStr::from_ptr(text) };
    // No panic may cross the C boundary; a lost log line is not a loss.
    let _ = std::panic::catch_unwind(|| {
        let text = text.to_string_lossy();
        if !echo.is_null() {
            eprint!("{text}");
        }
        let mut said = lock_messages();
        if level == GGML_LOG_LEVEL_ERROR && said.len() + text.len() <= KEPT {
            said.push_str(&text);
        }
    });
}

/// Loads a file whose header was checked.
pub(super) fn load(path: &Path, params: &LlamaModelParams) -> Result<Arc<LlamaModel>, RuntimeError> {
    let backend = backend()?;
    let text = path.to_str().ok_or(RuntimeError::Path { path: path.to_owned(), what: "its name is not UTF-8" })?;
    let loaded = run_with_log(|| LlamaModel::load_from_file(backend, text, params));
    loaded.map(Arc::new).map_err(|reason| RuntimeError::Load { path: path.to_owned(), reason })
}
