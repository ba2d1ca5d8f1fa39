//! Generations and their steps as results.

use crate::convert::results::{self, fields, plain};
use crate::exit::load_numpy;
use crate::model::meaning::Meaning;
use crate::trie::leaf::Leaf;
use llama_sampler::{Generated, Step};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes};
use tokentrie::call::{GenerateResult, GenerationFields};

/// Returns a generation as a `Generated`: what its text means, and why there is no value.
///
/// # Errors
/// What Python raises.
pub(crate) fn generated_result(
    py: Python<'_>,
    result: GenerateResult,
    meaning: Meaning,
    invalid: Option<String>,
) -> PyResult<Bound<'_, PyAny>> {
    load_numpy(py)?;
    let GenerateResult { generated, receipt } = result;
    let all = fields(py, &GenerationFields::new(&generated))?;
    let Generated { leaf, leaves, partial_token, fields, .. } = generated;
    let (value, values, leaf, leaves) = match meaning {
        Meaning::Value(value) => (value, Vec::new(), leaf, leaves),
        Meaning::Form(values) => (None, values, None, Vec::new()),
    };
    let scored = fields.into_iter().filter_map(|field| Some((field.name, field.probabilities?)));
    let scored = scored.map(|(name, shares)| Ok((name, shares.into_py_dict(py)?))).collect::<PyResult<Vec<_>>>()?;
    all.set_item("leaf", leaf.map(Leaf::from))?;
    all.set_item("leaves", leaves.into_iter().map(Leaf::from).collect::<Vec<_>>())?;
    all.set_item("value", value)?;
    all.set_item("invalid", invalid)?;
    all.set_item("partial_token", PyBytes::new(py, &partial_token))?;
    all.set_item("values", values.into_py_dict(py)?)?;
    all.set_item("probabilities", scored.into_py_dict(py)?)?;
    all.set_item("receipt", receipt.map(|receipt| plain(py, &receipt)).transpose()?)?;
    results::result("Generated", all)
}

/// Returns a step of a generation as a `Step`.
///
/// # Errors
/// What Python raises.
pub(crate) fn step_result<'py>(py: Python<'py>, step: &Step) -> PyResult<Bound<'py, PyAny>> {
    load_numpy(py)?;
    let Step { index, depth, allowed, token, forced, text, logprob, .. } = step;
    let all = pyo3::types::PyDict::new(py);
    all.set_item("index", index)?;
    all.set_item("depth", depth)?;
    all.set_item("token", token.get())?;
    all.set_item("forced", forced)?;
    all.set_item("text", text)?;
    all.set_item("logprob", logprob.as_ref().map(|known| plain(py, known)).transpose()?)?;
    all.set_item("allowed", PyArray1::from_iter(py, allowed.iter().map(|&(token, _)| token.get() as i32)))?;
    all.set_item("probabilities", PyArray1::from_iter(py, allowed.iter().map(|&(_, share)| share)))?;
    results::result("Step", all)
}
