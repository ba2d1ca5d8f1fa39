//! The token trie sampler for the linked llama.cpp, as a type of the safe crate.

use llama_callbacks::abi::{Callbacks, GraphCallbacks, RawSampler, SamplerData, TokenData, TokenDataArray};
use llama_callbacks::{SamplerInit, TokenTrieSampler};
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_sys_2::{llama_sampler, llama_sampler_data, llama_sampler_i, llama_token_data, llama_token_data_array};
use std::alloc::{Layout, handle_alloc_error};
use std::ffi::c_void;
use std::mem::offset_of;

/// Returns the function that makes samplers of the llama.cpp that is linked in.
pub const fn linked_init() -> SamplerInit {
    // SAFETY: the real function; the layouts are compared below, and what is linked in stays.
    unsafe { SamplerInit::new(init) }
}

unsafe extern "C" fn init(table: *mut Callbacks, ctx: *mut c_void) -> *mut RawSampler {
    // SAFETY: the caller's promise; the table begins as this version's does.
    unsafe { llama_cpp_sys_2::llama_sampler_init(table.cast(), ctx) }.cast()
}

/// Conversion of a [`TokenTrieSampler`] to an ordinary sampler of the llama.cpp that is linked in.
pub trait IntoLlamaSampler {
    /// Returns an ordinary sampler, freed by whoever owns it.
    fn into_llama_sampler(self) -> LlamaSampler;
}

impl IntoLlamaSampler for TokenTrieSampler {
    fn into_llama_sampler(self) -> LlamaSampler {
        // SAFETY: it was made for the llama.cpp that is linked in, and nobody owns it.
        unsafe { owned(self.into_raw(linked_init())) }
    }
}

/// Wraps a new sampler.
///
/// # Safety
/// `raw` is null or a sampler of the llama.cpp that is linked in, and nobody else owns it.
pub(crate) unsafe fn owned(raw: *mut RawSampler) -> LlamaSampler {
    if raw.is_null() {
        handle_alloc_error(Layout::new::<llama_sampler>());
    }
    // SAFETY: `LlamaSampler` has one field, a non-null pointer to a sampler that it owns, so equal size and alignment
    // (asserted below) mean equal layout; `raw` is not null, and the caller gives it up.
    unsafe { std::mem::transmute::<*mut RawSampler, LlamaSampler>(raw) }
}

/// Two structs of one size whose fields lie at the same offsets.
macro_rules! same_layout {
    ($ours:ty, $theirs:ty, $($field:ident),*) => {
        const _: () = {
            assert!(size_of::<$ours>() == size_of::<$theirs>());
            same_layout!(@fields $ours, $theirs, $($field),*);
        };
    };
    (@fields $ours:ty, $theirs:ty, $($field:ident),*) => {
        assert!(align_of::<$ours>() == align_of::<$theirs>());
        $(assert!(offset_of!($ours, $field) == offset_of!($theirs, $field));)*
    };
}

same_layout!(LlamaSampler, *mut RawSampler,);
same_layout!(TokenData, llama_token_data, id, logit, p);
same_layout!(TokenDataArray, llama_token_data_array, data, size, selected, sorted);
same_layout!(RawSampler, llama_sampler, iface, ctx);
same_layout!(SamplerData, llama_sampler_data, logits, probs, sampled, candidates);

const _: () = {
    // Ours is the longer table, with nothing but zeroes behind the twelve that are known.
    same_layout!(@fields Callbacks, llama_sampler_i, name, accept, apply, reset, clone, free);
    macro_rules! same_graph_callbacks {
        ($($field:ident),*) => {
            $(assert!(offset_of!(Callbacks, graph.$field) == offset_of!(llama_sampler_i, $field));)*
        };
    }
    same_graph_callbacks!(backend_init, backend_accept, backend_apply, backend_set_input, backend_reset, copy_state);
    assert!(offset_of!(Callbacks, graph) + size_of::<GraphCallbacks>() == size_of::<llama_sampler_i>());
    assert!(size_of::<Callbacks>() >= size_of::<[llama_sampler_i; 2]>());
};
