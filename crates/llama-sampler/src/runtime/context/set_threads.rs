//! Changes the number of threads of a context between two passes, for which the safe crate has no method. `SetThreads`
//! has the name and the signature of llama.cpp's own call, so that a method of the safe crate can replace it.
//!
//! The safe crate, whose version is fixed in the manifest, does not expose its pointer. Only its `Debug` output shows
//! it. The alternatives are worse. A context made without the safe crate would need all other calls written anew, and a
//! new context for each number of threads would lose the contents of the old one.

use llama_cpp_2::context::LlamaContext;
use llama_cpp_sys_2::{llama_context, llama_set_n_threads};
use std::ptr::with_exposed_provenance_mut;

/// Function that the safe crate lacks.
pub(super) trait SetThreads {
    /// Sets the number of threads of the next passes: for those of one token and for those of several. Returns `false`
    /// if that is not possible; then nothing has changed.
    fn set_n_threads(&mut self, n_threads: u32, n_threads_batch: u32) -> bool;
}

impl SetThreads for LlamaContext<'_> {
    fn set_n_threads(&mut self, n_threads: u32, n_threads_batch: u32) -> bool {
        let Some(address) = address(self) else { return false };
        let raw: *mut llama_context = with_exposed_provenance_mut(address);
        // SAFETY: the address is that of a live context (see `address`), which nothing else uses while it is borrowed
        // here.
        unsafe { llama_set_n_threads(raw, n_threads as i32, n_threads_batch as i32) };
        true
    }
}

/// The address of llama.cpp's own context, as `LlamaContext { context: 0x… }`. A test compares what lies there.
pub(in crate::runtime) fn address(context: &LlamaContext<'_>) -> Option<usize> {
    let text = format!("{context:?}");
    let digits = text.strip_prefix("LlamaContext { context: 0x")?.strip_suffix(" }")?;
    usize::from_str_radix(digits, 16).ok().filter(|&address| address != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::context::{ContextOptions, Model, ModelOptions};
    use llama_cpp_sys_2::{llama_n_ctx, llama_n_threads, llama_n_threads_batch};

    #[test]
    fn the_address_is_that_of_the_context() {
        let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tokentrie/models/tiny.gguf");
        let model = Model::load(tiny, ModelOptions::default()).unwrap();
        let mut context = model.context(ContextOptions::default().with_n_ctx(512)).unwrap();
        context.cell.with_dependent_mut(|_, context| {
            let raw: *mut llama_context = with_exposed_provenance_mut(address(context).unwrap());
            // SAFETY: as in `set_n_threads`; it only reads.
            assert_eq!(unsafe { llama_n_ctx(raw) }, 512);
            for threads in [2, 1, 3] {
                assert!(context.set_n_threads(threads, threads));
                // SAFETY: as before.
                assert_eq!(threads as i32, unsafe { llama_n_threads(raw) });
                // SAFETY: as before.
                assert_eq!(threads as i32, unsafe { llama_n_threads_batch(raw) });
            }
        });
    }
}
