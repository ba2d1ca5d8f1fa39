//! A llama.cpp in Rust: what the C++ functions of these names do with a sampler, and nothing else. So the callbacks run
//! under tools that cannot see into C++, and against tables of every length. Included by path; `abi` lies beside it.
#![allow(dead_code, unreachable_pub)]

use super::abi::{Callbacks, InitFn, RawSampler, Token, TokenData, TokenDataArray};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

/// `LATER` of the versions: fields of the table behind the first six. The last is yet to come.
pub const SIX: usize = 0;
pub const TEN: usize = 4;
pub const TWELVE: usize = 6;
pub const THIRTY: usize = 24;

thread_local! {
    /// Samplers that this thread's llama.cpp made and did not delete, with the version that made them.
    static ALIVE: RefCell<BTreeMap<usize, usize>> = const { RefCell::new(BTreeMap::new()) };
}

pub fn alive() -> usize {
    ALIVE.with_borrow(BTreeMap::len)
}

/// The table as this version's header has it: nothing behind it is ever read.
#[repr(C)]
struct Table<const LATER: usize> {
    name: Option<unsafe extern "C" fn(*const RawSampler) -> *const std::ffi::c_char>,
    accept: Option<unsafe extern "C" fn(*mut RawSampler, Token)>,
    apply: Option<unsafe extern "C" fn(*mut RawSampler, *mut TokenDataArray)>,
    reset: Option<unsafe extern "C" fn(*mut RawSampler)>,
    clone: Option<unsafe extern "C" fn(*const RawSampler) -> *mut RawSampler>,
    free: Option<unsafe extern "C" fn(*mut RawSampler)>,
    later: [Option<unsafe extern "C" fn()>; LATER],
}

/// `llama_sampler_init`.
pub unsafe extern "C" fn init<const LATER: usize>(iface: *mut Callbacks, ctx: *mut c_void) -> *mut RawSampler {
    let raw = Box::into_raw(Box::new(RawSampler { iface, ctx }));
    ALIVE.with_borrow_mut(|alive| alive.insert(raw.addr(), LATER));
    raw
}

/// A library that is out of memory.
pub unsafe extern "C" fn init_nothing(_: *mut Callbacks, _: *mut c_void) -> *mut RawSampler {
    null_mut()
}

/// `delete`, by the library that made it.
fn delete<const LATER: usize>(raw: *mut RawSampler) {
    let made_by = ALIVE.with_borrow_mut(|alive| alive.remove(&raw.addr()));
    assert_eq!(made_by, Some(LATER), "deleted twice, or by another library");
    // SAFETY: it came from `Box::into_raw` in `init`, and was removed from the living just now.
    drop(unsafe { Box::from_raw(raw) });
}

/// A `llama_sampler *` that this library owns.
#[derive(Debug)]
pub struct Sampler<const LATER: usize>(pub *mut RawSampler);

impl<const LATER: usize> Sampler<LATER> {
    pub const INIT: InitFn = init::<LATER>;

    /// The table, read as C reads it: through the sampler's pointer.
    fn table(&self) -> &Table<LATER> {
        // SAFETY: alive until this is dropped; nobody writes to it during the read.
        let iface = unsafe { (*self.0).iface };
        // SAFETY: a static table, at least as long as this version's.
        unsafe { &*iface.cast_const().cast::<Table<LATER>>() }
    }

    /// `llama_sampler_name`.
    pub fn name(&self) -> &CStr {
        let name = self.table().name.unwrap();
        // SAFETY: a callback on its own sampler.
        let name = unsafe { name(self.0) };
        // SAFETY: it answers with a static string.
        unsafe { CStr::from_ptr(name) }
    }

    /// `llama_sampler_accept`.
    pub fn accept(&mut self, token: Token) {
        if let Some(accept) = self.table().accept {
            // SAFETY: a callback on its own sampler.
            unsafe { accept(self.0, token) };
        }
    }

    /// `llama_sampler_apply`; as in a chain, on the host where no device-side callback is set.
    pub fn apply(&mut self, array: *mut TokenDataArray) {
        let table = self.table();
        assert!(table.later.iter().all(Option::is_none), "the device would be asked");
        // SAFETY: a callback on its own sampler, and an array that nobody else uses now.
        unsafe { table.apply.unwrap()(self.0, array) };
    }

    /// `llama_sampler_reset`.
    pub fn reset(&mut self) {
        if let Some(reset) = self.table().reset {
            // SAFETY: a callback on its own sampler.
            unsafe { reset(self.0) };
        }
    }

    /// The callback `free` alone, without deleting the sampler: half of `llama_sampler_copy`.
    pub fn free_state(&mut self) {
        if let Some(free) = self.table().free {
            // SAFETY: a callback on its own sampler.
            unsafe { free(self.0) };
        }
    }

    /// `llama_sampler_clone`, which may be null.
    pub fn try_clone(&self) -> Option<Self> {
        // SAFETY: a callback on its own sampler.
        let raw = unsafe { self.table().clone.expect("it has a context")(self.0) };
        (!raw.is_null()).then(|| Self(raw))
    }

    /// `llama_sampler_copy`.
    pub fn copy_to(&self, other: &mut Self) {
        assert!(std::ptr::eq(self.table(), other.table()), "cannot copy between different sampler types");
        let copy = self.try_clone().unwrap();
        other.free_state();
        // SAFETY: alive, and nobody else uses it.
        let ctx = unsafe { (*copy.0).ctx };
        // SAFETY: as before.
        unsafe { (*other.0).ctx = ctx };
        delete::<LATER>(copy.0);
        std::mem::forget(copy);
    }

    /// The candidates after `apply`, and what is left of `array`.
    pub fn apply_to(&mut self, data: &mut [TokenData], sorted: bool) -> TokenDataArray {
        let mut array = TokenDataArray { data: data.as_mut_ptr(), size: data.len(), selected: -1, sorted };
        self.apply(&raw mut array);
        array
    }
}

impl<const LATER: usize> Clone for Sampler<LATER> {
    fn clone(&self) -> Self {
        self.try_clone().expect("a chain that asks for a clone crashes on null")
    }
}

/// `llama_sampler_free`.
impl<const LATER: usize> Drop for Sampler<LATER> {
    fn drop(&mut self) {
        self.free_state();
        delete::<LATER>(self.0);
    }
}
