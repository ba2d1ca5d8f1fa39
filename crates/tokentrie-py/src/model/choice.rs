//! Choices and hypotheses as results.

use crate::convert::results::{plain, result};
use crate::convert::value::Value;
use crate::errors::Result;
use crate::exit::load_numpy;
use crate::model::meaning::value_or_refused;
use crate::trie::leaf::Leaf;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};
use trie_core::LeafId;
use trie_text::ValueSet;

/// Names of larger sets are listed when they are asked for.
const FEW_NAMES: usize = 1024;

/// Returns a choice as a `Choice`, whose value `reader` makes of its name.
///
/// # Errors
/// What Python raises; of a reader that refuses the name only what the name is not to blame for.
pub(crate) fn choice_result<'py>(
    py: Python<'py>,
    choice: &trie_core::Choice,
    set: &ValueSet,
    threshold: Option<f64>,
    reader: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    load_numpy(py)?;
    let best = choice.ranking.first().copied().unwrap_or(LeafId::new(0));
    let by_value = |known: &[f64]| PyArray1::from_vec(py, set.by_value(known));
    let (all, name, mut refused) = (PyDict::new(py), set.trie().name(best), None);
    let value = match (reader, name.as_deref()) {
        (Some(rule), Some(name)) => value_or_refused(py, name, Value::parsed(rule, name.to_owned()), &mut refused)?,
        (_, name) => name.map(|name| Value::Text(name.to_owned())),
    };
    all.set_item("_value", value)?;
    all.set_item("_invalid", refused.map(|refused| refused.reason))?;
    all.set_item("name", name)?;
    all.set_item("index", set.index_of(best))?;
    all.set_item("mass", choice.mass_low)?;
    all.set_item("mass_bounds", (choice.mass_low, choice.mass_high))?;
    all.set_item("certain", choice.is_certain)?;
    all.set_item("threshold", threshold)?;
    all.set_item("logprobs", by_value(&choice.logprobs))?;
    all.set_item("logprobs_high", by_value(choice.logprobs_high.as_ref().unwrap_or(&choice.logprobs)))?;
    all.set_item("_shares", by_value(&choice.probabilities()))?;
    all.set_item("ranking", PyArray1::from_iter(py, choice.ranking.iter().map(|&leaf| set.index_of(leaf) as i64)))?;
    all.set_item("stats", plain(py, &choice.stats)?)?;
    if set.trie().len() <= FEW_NAMES {
        all.set_item("_names", names(set))?;
    } else {
        let set = set.clone();
        all.set_item("_names", PyCFunction::new_closure(py, None, None, move |_, _| names(&set))?)?;
    }
    Ok(result("Choice", all)?)
}

/// Returns a value that a beam search found as a `Hypothesis`.
///
/// # Errors
/// What Python raises.
pub(crate) fn hypothesis_result<'py>(
    py: Python<'py>,
    leaf: trie_core::Leaf,
    tokens: &[trie_core::TokenId],
    logprob: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let all = PyDict::new(py);
    all.set_item("leaf", Leaf::from(leaf))?;
    all.set_item("tokens", tokens.iter().map(|token| token.get()).collect::<Vec<_>>())?;
    all.set_item("logprob", logprob)?;
    result("Hypothesis", all)
}

/// The names of the values in their order; `None` where any has none.
fn names(set: &ValueSet) -> Option<Vec<String>> {
    set.names().into_iter().collect()
}
