//! The one function of llama.cpp that a sampler needs, handed in by its address.

use super::abi::{Callbacks, InitFn, RawSampler};
use std::ffi::c_void;
use std::ptr::NonNull;

/// `llama_sampler_init` of one loaded llama.cpp. Samplers made through it belong to that library.
#[derive(Debug, Clone, Copy)]
pub struct SamplerInit(InitFn);

impl SamplerInit {
    /// That function.
    ///
    /// # Safety
    /// - It is `llama_sampler_init` of a llama.cpp, or behaves like it: it returns a new [`RawSampler`] with this table
    ///   and this `ctx`, or null, and never throws.
    /// - That library is laid out as the module [`abi`](super::abi) says, and calls the table as its own header says:
    ///   with samplers that are alive, `free` once and last, an array of candidates that nobody else touches during the
    ///   call.
    /// - It stays loaded for as long as any sampler made through it, or a clone of one, is alive.
    pub const unsafe fn new(init: InitFn) -> Self {
        Self(init)
    }

    /// The function at this address, as `dlsym` or Python's `ctypes` give it.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub const unsafe fn from_address(address: NonNull<c_void>) -> Self {
        // SAFETY: the caller says that a function of this type lies there.
        Self(unsafe { std::mem::transmute::<*mut c_void, InitFn>(address.as_ptr()) })
    }

    pub(super) fn call(self, table: *mut Callbacks, ctx: *mut c_void) -> *mut RawSampler {
        // SAFETY: whoever made `self` has promised that this is `llama_sampler_init`, which takes any table and
        // context.
        unsafe { (self.0)(table, ctx) }
    }
}
