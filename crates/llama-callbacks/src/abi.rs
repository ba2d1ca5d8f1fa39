//! llama.cpp's types as its C header lays them out, written by hand so that none of its code is needed. Nothing here
//! runs.
//!
//! The table of callbacks has only grown at its end so far. The headers compared are:
//!
//! | llama.cpp | its table |
//! | --- | --- |
//! | the one in llama-cpp-python 0.3.16 (August 2025) | 6 fields: `name` to `free` |
//! | the one in llama-cpp-python 0.3.20 | 10 fields: `backend_init` to `backend_set_input` more |
//! | 0.5.0, the one in llama-cpp-python 0.3.36 | 12 fields: `backend_reset` and `copy_state` more |
//! | 0.6.0, the one in `llama-cpp-sys-2` 0.1.160 | the same 12 |
//!
//! The candidate, the candidate array and the sampler have the same layout in all of them. An older llama.cpp that does
//! not export `llama_sampler_init` (the one in llama-cpp-python 0.3.7) cannot take this sampler.

use std::ffi::{c_char, c_void};

/// `llama_token`: signed, and negative where there is none.
pub type Token = i32;

/// Mirror of `llama_token_data`: a candidate.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenData {
    /// Id of the token.
    pub id: Token,
    /// Logit of the token.
    pub logit: f32,
    /// Its probability, once a sampler has computed it.
    pub p: f32,
}

/// `llama_token_data_array`: the candidates that a chain hands from sampler to sampler.
#[repr(C)]
#[derive(Debug)]
pub struct TokenDataArray {
    /// Pointer to the first candidate.
    pub data: *mut TokenData,
    /// Number of the candidates.
    pub size: usize,
    /// Index of the chosen one, or −1.
    pub selected: i64,
    /// True if logits descend.
    pub sorted: bool,
}

/// `llama_sampler`: a table of callbacks and their context. Only `llama_sampler_init` makes one, because a sampler may
/// be freed only by the library that made it.
#[repr(C)]
#[derive(Debug)]
pub struct RawSampler {
    /// Table of the callbacks.
    pub iface: *mut Callbacks,
    /// Context of the sampler; null once it was freed.
    pub ctx: *mut c_void,
}

/// `llama_sampler_i`: the table of callbacks, longer than that of any version. An older version does not read the
/// fields that it does not know. A newer version finds null in the fields that it has added.
#[repr(C)]
#[derive(Debug)]
#[non_exhaustive]
pub struct Callbacks {
    /// Returns the sampler's name.
    pub name: Option<unsafe extern "C" fn(*const RawSampler) -> *const c_char>,
    /// Accepts a token of the chain.
    pub accept: Option<unsafe extern "C" fn(*mut RawSampler, Token)>,
    /// Filters or changes the candidates.
    pub apply: Option<unsafe extern "C" fn(*mut RawSampler, *mut TokenDataArray)>,
    /// Resets the sampler to its beginning.
    pub reset: Option<unsafe extern "C" fn(*mut RawSampler)>,
    /// Returns a copy with a state of its own.
    pub clone: Option<unsafe extern "C" fn(*const RawSampler) -> *mut RawSampler>,
    /// Frees what `ctx` points to, not the sampler.
    pub free: Option<unsafe extern "C" fn(*mut RawSampler)>,
    /// Callbacks of a sampler in the compute graph; all null in a sampler of the host.
    pub graph: GraphCallbacks,
    /// Fields that later versions may add. All are null.
    pub later: [usize; LATER],
}

/// The callbacks of `llama_sampler_i` that put a sampler into the compute graph, as the versions with 12 fields have
/// them. Versions with 10 fields call the first with another signature, so only a host that knows its version sets
/// them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct GraphCallbacks {
    /// Returns whether the device can do it, for this many rows of a sequence in one pass.
    pub backend_init: Option<unsafe extern "C" fn(*mut RawSampler, *mut BufferType, u32) -> bool>,
    /// Accepts the token that the graph selected. llama.cpp does not call it yet.
    pub backend_accept: Option<unsafe extern "C" fn(*mut RawSampler, *mut GraphContext, *mut Graph, *mut Tensor)>,
    /// Adds the nodes of the sampler to a graph.
    pub backend_apply: Option<unsafe extern "C" fn(*mut RawSampler, *mut GraphContext, *mut Graph, *mut SamplerData)>,
    /// Fills the inputs of the nodes, before the graph runs.
    pub backend_set_input: Option<unsafe extern "C" fn(*mut RawSampler)>,
    /// Forgets the nodes, before a graph is built anew.
    pub backend_reset: Option<unsafe extern "C" fn(*mut RawSampler)>,
    /// Copies the state of a sampler into another that stays in its graph.
    pub copy_state: Option<unsafe extern "C" fn(*const RawSampler, *mut RawSampler)>,
}

/// Declares types of ggml that only pointers name.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name([u8; 0]);
    )*};
}

opaque! {
    /// Where a device keeps tensors: `ggml_backend_buffer_type`.
    BufferType,
    /// The tensors of a graph: `ggml_context`.
    GraphContext,
    /// The order in which tensors are computed: `ggml_cgraph`.
    Graph,
    /// An array of numbers, and its origin: `ggml_tensor`.
    Tensor
}

/// `llama_sampler_data`: the tensors that samplers of a graph hand on.
#[repr(C)]
#[derive(Debug)]
pub struct SamplerData {
    /// Logits of the candidates.
    pub logits: *mut Tensor,
    /// Probabilities of the candidates, or null.
    pub probs: *mut Tensor,
    /// The selected token, or null.
    pub sampled: *mut Tensor,
    /// Ids of the candidates; null while candidate `n` is token `n`.
    pub candidates: *mut Tensor,
}

/// Number of reserve fields behind the twelve that are known.
pub(super) const LATER: usize = 20;

/// Signature of the function `llama_sampler_init` of llama.cpp.
pub type InitFn = unsafe extern "C" fn(iface: *mut Callbacks, ctx: *mut c_void) -> *mut RawSampler;
