//! A sampler inside the chain of a llama.cpp that another Python package has loaded. The `unsafe` is one promise, which
//! `tokentrie.integrations.llama_cpp` keeps: it compares that library's types with ours before it hands its address
//! over.

use crate::convert::gil::released;
use crate::convert::words::Mode;
use crate::errors::{Class, Result};
use crate::rows::sampler::Sampler;
use crate::trie::leaf::Leaf;
use llama_callbacks::{SamplerHandle, SamplerInit, TokenTrieSampler};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;

/// The owner's end of a sampler that a chain has taken.
///
/// Callbacks hold its lock while they work, on threads that may not have the GIL: so it is waited for without the GIL.
#[pyclass(frozen, name = "_InChain", module = "tokentrie._native")]
pub(crate) struct InChain(SamplerHandle);

#[pymethods]
impl InChain {
    #[getter]
    fn state(&self, py: Python<'_>) -> &'static str {
        released(py, || self.0.state()).as_str()
    }

    #[getter]
    fn leaf(&self, py: Python<'_>) -> Option<Leaf> {
        released(py, || self.0.leaf()).map(Leaf::from)
    }

    #[getter]
    fn leaves(&self, py: Python<'_>) -> Vec<Leaf> {
        released(py, || self.0.span().leaves()).into_iter().map(Leaf::from).collect()
    }

    #[getter]
    fn depth(&self, py: Python<'_>) -> usize {
        released(py, || self.0.span().depth())
    }

    /// Returns whether a chain still owns it, which frees it.
    #[getter]
    fn is_in_chain(&self) -> bool {
        self.0.holders() > 1
    }

    /// Returns the event counts, by name; the last two are 0 or 1.
    #[getter]
    fn counts(&self, py: Python<'_>) -> HashMap<&'static str, u64> {
        let status = released(py, || self.0.status());
        let counts = status.counts;
        HashMap::from([
            ("applied", counts.applied),
            ("accepted", counts.accepted),
            ("ignored", counts.ignored),
            ("turned_off", counts.turned_off),
            ("starved", counts.starved),
            ("poisoned", u64::from(status.poisoned)),
            ("damaged", u64::from(status.damaged)),
        ])
    }
}

/// A `llama_sampler *` that begins where `sampler` stands, made by the `llama_sampler_init` at this address, and its
/// handle. The caller owns the pointer: `llama_sampler_chain_add` of the same library takes it over.
///
/// Raises `OptionError` for address 0, `ModelError` where that library made no sampler.
#[pyfunction]
#[pyo3(name = "_into_chain")]
pub(crate) fn into_chain(sampler: &Bound<'_, Sampler>, mode: Mode, init: usize) -> Result<(usize, InChain)> {
    let Some(address) = NonNull::new(init as *mut c_void) else {
        return Err(Class::Option.error("the address of llama_sampler_init is 0".to_owned()));
    };
    let ours = TokenTrieSampler::from_span(sampler.get().span(sampler.py())?, mode.0);
    let handle = ours.handle();
    // SAFETY: the caller is `tokentrie.integrations.llama_cpp` alone. It takes the address of that name from a library
    // that ctypes keeps loaded for the life of the process, after it has found the candidates, the array and the table
    // of callbacks laid out as ours.
    let init = unsafe { SamplerInit::from_address(address) };
    let raw = ours.into_raw(init);
    if raw.is_null() {
        return Err(Class::Model.error("llama_sampler_init made no sampler: is there no memory left?".to_owned()));
    }
    Ok((raw as usize, InChain(handle)))
}
