//! The nodes of a sampler in the compute graph of the llama.cpp that is linked in.
//!
//! `ids` and `bias` are inputs. The graph gathers the logits of the ids, adds the bias, and hands both on:
//!
//! ```text
//! logits [V] → get_rows(ids [k]) → + bias [k] → logits [k]
//! ids [k] ─────────────────────────────────────→ candidates [k]
//! ```

use crate::linked::linked_init;
use llama_callbacks::abi::{BufferType, GraphContext, SamplerData};
use llama_callbacks::{GraphFunctions, GraphInputs};
use llama_cpp_sys_2::{
    GGML_TYPE_F32, GGML_TYPE_I32, ggml_add, ggml_backend_buft_get_device, ggml_backend_dev_supports_op,
    ggml_backend_tensor_set, ggml_context, ggml_free, ggml_get_rows, ggml_init, ggml_init_params, ggml_nelements,
    ggml_new_tensor_1d, ggml_new_tensor_2d, ggml_reshape_2d, ggml_set_input, ggml_set_output, ggml_tensor,
    ggml_tensor_overhead,
};
use std::ptr::null_mut;

/// Returns the functions that build and fill the nodes of samplers in graphs of the llama.cpp that is linked in.
pub const fn linked_graph() -> GraphFunctions {
    // SAFETY: they do what is asked for, of the llama.cpp whose table is compared in `linked.rs`; none unwinds, because
    // none calls anything but ggml.
    unsafe { GraphFunctions::new(linked_init(), supports, gather, fill) }
}

/// Tensors of one sampler, with room to spare.
const TENSORS: usize = 16;
/// Length of the row with which a device is asked.
const ROW: i64 = 128 * 1024;
/// Length of the selection with which a device is asked.
const SELECTION: usize = 1024;

unsafe fn supports(buffers: *mut BufferType) -> bool {
    // SAFETY: the caller's buffer type.
    let device = unsafe { ggml_backend_buft_get_device(buffers.cast()) };
    if device.is_null() {
        // The CPU computes all of them.
        return true;
    }
    // SAFETY: it reads a constant.
    let mem_size = TENSORS * unsafe { ggml_tensor_overhead() };
    let params = ggml_init_params { mem_size, mem_buffer: null_mut(), no_alloc: true };
    // SAFETY: a new context of tensors without data, which is freed below.
    let nodes = unsafe { ggml_init(params) };
    if nodes.is_null() {
        return false;
    }
    // SAFETY: a tensor of the new context.
    let logits: *mut ggml_tensor = unsafe { ggml_new_tensor_1d(nodes, GGML_TYPE_F32, ROW) };
    // SAFETY: as before; `TENSORS` of them fit.
    let built = unsafe { build(nodes, logits, SELECTION) };
    // SAFETY: the nodes are alive, and so is the device.
    let supported = built.operations().into_iter().all(|node| unsafe { ggml_backend_dev_supports_op(device, node) });
    // SAFETY: it came from `ggml_init`, and nothing keeps its tensors.
    unsafe { ggml_free(nodes) };
    supported
}

/// The tensors of one sampler.
struct Nodes {
    ids: *mut ggml_tensor,
    bias: *mut ggml_tensor,
    gathered: *mut ggml_tensor,
    logits: *mut ggml_tensor,
}

impl Nodes {
    /// The tensors that the device computes.
    fn operations(&self) -> [*mut ggml_tensor; 2] {
        [self.gathered, self.logits]
    }
}

/// Creates an input of this shape, which stays readable after the graph has run.
///
/// # Safety
/// `nodes` is a context with room for one more tensor.
unsafe fn input(nodes: *mut ggml_context, kind: u32, (columns, rows): (i64, i64)) -> *mut ggml_tensor {
    // SAFETY: the caller's promise.
    let tensor = unsafe { ggml_new_tensor_2d(nodes, kind, columns, rows) };
    // SAFETY: a tensor that was made just now.
    unsafe { ggml_set_input(tensor) };
    // Otherwise ggml gives its memory to a later node, and llama.cpp copies what that wrote.
    // SAFETY: as before.
    unsafe { ggml_set_output(tensor) };
    tensor
}

/// # Safety
/// `nodes` is a context with room for [`TENSORS`] more tensors; `logits` is one of f32, and contiguous.
unsafe fn build(nodes: *mut ggml_context, logits: *mut ggml_tensor, most: usize) -> Nodes {
    let most = most as i64;
    // SAFETY: the caller's promise.
    let ids = unsafe { input(nodes, GGML_TYPE_I32, (most, 1)) };
    // SAFETY: the same.
    let bias = unsafe { input(nodes, GGML_TYPE_F32, (1, most)) };
    // SAFETY: the same.
    let width = unsafe { ggml_nelements(logits) };
    // SAFETY: the same; it is contiguous, so it can be a column.
    let column = unsafe { ggml_reshape_2d(nodes, logits, 1, width) };
    // SAFETY: the same; rows of one number, and a vector of ids.
    let gathered = unsafe { ggml_get_rows(nodes, column, ids) };
    // SAFETY: the same; two columns of one length.
    let logits = unsafe { ggml_add(nodes, gathered, bias) };
    Nodes { ids, bias, gathered, logits }
}

unsafe fn gather(nodes: *mut GraphContext, data: &mut SamplerData, most: usize) -> GraphInputs {
    let nodes: *mut ggml_context = nodes.cast();
    let row: *mut ggml_tensor = data.logits.cast();
    // SAFETY: the tensor of a row that llama.cpp lends.
    let width = usize::try_from(unsafe { ggml_nelements(row) }).unwrap_or(0);
    // llama.cpp has room for no more candidates than tokens.
    let length = most.min(width);
    // SAFETY: llama.cpp's graph has room for the tensors that it counted when the sampler was attached, and a row is a
    // contiguous vector of f32.
    let Nodes { ids, bias, logits, .. } = unsafe { build(nodes, row, length) };
    // A sampler before this one left candidates, whose places are not ids: nothing of the row is used.
    let is_row = data.candidates.is_null();
    data.logits = if is_row { logits.cast() } else { bias.cast() };
    data.candidates = ids.cast();
    GraphInputs { ids: ids.cast(), bias: bias.cast(), length, width: if is_row { width } else { 0 } }
}

unsafe fn fill(GraphInputs { ids, bias, .. }: GraphInputs, id_data: &[i32], bias_data: &[f32]) {
    // SAFETY: `gather` made the tensor with the length of the slice, and llama.cpp has given it memory.
    unsafe { ggml_backend_tensor_set(ids.cast(), id_data.as_ptr().cast(), 0, size_of_val(id_data)) };
    // SAFETY: the same.
    unsafe { ggml_backend_tensor_set(bias.cast(), bias_data.as_ptr().cast(), 0, size_of_val(bias_data)) };
}
