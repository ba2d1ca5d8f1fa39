//! Helpers for the Python classes: texts from lists of every kind, grammars that come with the package.

use crate::convert::strings::{is_list, list};
use crate::errors::{Class, Result};
use crate::spec::object::ANY_VOCABULARY;
use crate::spec::{as_object, spec_of, with_host};
use pyo3::prelude::*;
use tokentrie::constraint::GRAMMAR_EXAMPLES;
use trie_text::SlotValues;

/// The texts of a list, a tuple, a set, a generator or a column; None for anything that is not a list.
#[pyfunction]
#[pyo3(name = "_listed_texts")]
pub(crate) fn listed_texts(values: &Bound<'_, PyAny>) -> Result<Option<Vec<String>>> {
    is_list(values).then(|| list(values)).transpose()
}

/// Returns whether the argument is a collection of texts: a list, a tuple, a set, a generator or a column.
#[pyfunction]
#[pyo3(name = "_is_list")]
pub(crate) fn is_text_list(values: &Bound<'_, PyAny>) -> bool {
    is_list(values)
}

/// The text of a grammar that comes with the package.
///
/// Raises OptionError: there is none of that name.
#[pyfunction]
#[pyo3(name = "_grammar_example")]
pub(crate) fn grammar_example(name: &str) -> Result<&'static str> {
    let found = GRAMMAR_EXAMPLES.iter().find(|(known, _)| *known == name);
    found.map(|(_, example)| example.text()).ok_or_else(|| {
        let known: Vec<String> = GRAMMAR_EXAMPLES.iter().map(|(known, _)| format!("{known:?}")).collect();
        Class::Option.error(format!("name is {name:?}: it must be one of {}", known.join(", ")))
    })
}

/// A dictionary that is a spec, or a type, as an object; everything else as it is.
#[pyfunction]
#[pyo3(name = "_read_constraint")]
pub(crate) fn read_constraint<'py>(given: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    as_object(given)
}

/// Returns the number of values allowed in a slot of this name; None for a rule, and for a constraint without a number
/// of values.
///
/// Raises what making the slot fails with.
#[pyfunction]
#[pyo3(name = "_slot_size")]
pub(crate) fn slot_size(name: &str, values: &Bound<'_, PyAny>) -> Result<Option<usize>> {
    let spec = spec_of("values", values, None)?;
    let values = with_host(values.py(), &ANY_VOCABULARY, |over, host| spec.slot(name, over, host))?;
    Ok(match values {
        SlotValues::Texts(values) => Some(values.len()),
        SlotValues::Tokens(constraint) => constraint.as_trie().map(trie_core::Trie::len),
        SlotValues::Rule(_) => None,
    })
}
