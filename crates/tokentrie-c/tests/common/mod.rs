//! What tests, the benchmark and the fuzzer share: calls as C makes them.
#![allow(dead_code, unreachable_pub)]

use std::ffi::{CStr, c_char};
use tokentrie_c::abi::tokentrie_last_error;
use tokentrie_c::{In, Out};

pub fn input<T>(items: &[T]) -> In<T> {
    // SAFETY: whoever calls gives the length of these items, and they live during the call.
    unsafe { In::new(items.as_ptr()) }
}

pub fn text(text: &(impl AsRef<[u8]> + ?Sized)) -> In<c_char> {
    // SAFETY: as above.
    unsafe { In::new(text.as_ref().as_ptr().cast()) }
}

pub fn one<T>(item: &T) -> In<T> {
    // SAFETY: as above.
    unsafe { In::new(item) }
}

pub fn output<T>(items: &mut [T]) -> Out<T> {
    // SAFETY: as above, and nobody else uses them.
    unsafe { Out::new(items.as_mut_ptr()) }
}

pub fn put<T>(item: &mut T) -> Out<T> {
    // SAFETY: as above.
    unsafe { Out::new(item) }
}

/// The sentence of this thread's last error.
pub fn said() -> String {
    // SAFETY: it ends with a zero and is valid until the next call that fails.
    unsafe { CStr::from_ptr(tokentrie_last_error()) }.to_str().unwrap().to_owned()
}
