//! Samplers without a state that stand between others in a graph. On the host they do nothing.

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_sys_2::{
    ggml_backend_buffer_type_t, ggml_cgraph, ggml_context, ggml_nelements, ggml_reshape_1d, llama_sampler,
    llama_sampler_data, llama_sampler_i, llama_sampler_init, llama_token_data_array,
};
use std::ffi::c_char;
use std::ptr::null_mut;

/// Callback that adds nodes to a graph.
type Apply = unsafe extern "C" fn(*mut llama_sampler, *mut ggml_context, *mut ggml_cgraph, *mut llama_sampler_data);

/// Table of callbacks of [`flat`] samplers.
static FLAT: llama_sampler_i = table(flat_name, flatten);
/// Table of callbacks of [`token_alone`] samplers.
static TOKEN_ALONE: llama_sampler_i = table(token_alone_name, drop_rest);

const fn table(name: unsafe extern "C" fn(*const llama_sampler) -> *const c_char, apply: Apply) -> llama_sampler_i {
    llama_sampler_i {
        name: Some(name),
        accept: None,
        apply: Some(apply_on_host),
        reset: None,
        clone: None,
        free: None,
        backend_init: Some(init),
        backend_accept: None,
        backend_apply: Some(apply),
        backend_set_input: None,
        backend_reset: None,
        copy_state: None,
    }
}

/// A sampler that makes the candidates one row again. llama.cpp's `top-k` and `top-p` leave a column, and its `top-p`
/// aborts where it finds one.
pub(super) fn flat() -> LlamaSampler {
    sampler(&FLAT)
}

/// A sampler that ends a chain in the graph: the selected token is kept, and what llama.cpp would copy beside it is
/// dropped.
pub(super) fn token_alone() -> LlamaSampler {
    sampler(&TOKEN_ALONE)
}

fn sampler(table: &'static llama_sampler_i) -> LlamaSampler {
    // SAFETY: llama.cpp only reads the table, which lives for ever and needs no context.
    let raw = unsafe { llama_sampler_init(std::ptr::from_ref(table).cast_mut(), null_mut()) };
    // SAFETY: it was made just now, and nobody owns it.
    unsafe { crate::linked::owned(raw.cast()) }
}

unsafe extern "C" fn flat_name(_: *const llama_sampler) -> *const c_char {
    c"flat".as_ptr()
}

unsafe extern "C" fn token_alone_name(_: *const llama_sampler) -> *const c_char {
    c"token-alone".as_ptr()
}

unsafe extern "C" fn apply_on_host(_: *mut llama_sampler, _: *mut llama_token_data_array) {}

unsafe extern "C" fn init(_: *mut llama_sampler, _: ggml_backend_buffer_type_t, _: u32) -> bool {
    true
}

unsafe extern "C" fn flatten(
    _: *mut llama_sampler,
    nodes: *mut ggml_context,
    _: *mut ggml_cgraph,
    data: *mut llama_sampler_data,
) {
    // SAFETY: llama.cpp lends the tensors of one row for the call.
    let Some(data) = (unsafe { data.as_mut() }) else { return };
    if data.candidates.is_null() {
        return;
    }
    // SAFETY: a tensor of the graph that is built.
    let length = unsafe { ggml_nelements(data.candidates) };
    // SAFETY: the same; candidates are contiguous, and llama.cpp counted this node when the chain was attached.
    data.candidates = unsafe { ggml_reshape_1d(nodes, data.candidates, length) };
}

unsafe extern "C" fn drop_rest(
    _: *mut llama_sampler,
    _: *mut ggml_context,
    _: *mut ggml_cgraph,
    data: *mut llama_sampler_data,
) {
    // SAFETY: llama.cpp lends the tensors of one row for the call.
    if let Some(data) = unsafe { data.as_mut() }
        && !data.sampled.is_null()
    {
        (data.logits, data.probs, data.candidates) = (null_mut(), null_mut(), null_mut());
    }
}
