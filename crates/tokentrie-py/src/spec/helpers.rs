//! What the classes of Python's ask for: texts out of lists of every kind, grammars that come with the package.

use crate::convert::strings::{is_list, list};
use crate::errors::{Class, Result};
use pyo3::prelude::*;
use tokentrie::spec::GRAMMAR_EXAMPLES;

/// The texts of a list, a tuple, a set, a generator or a column; None for what is no list.
#[pyfunction]
#[pyo3(name = "_listed_texts")]
pub(crate) fn listed_texts(values: &Bound<'_, PyAny>) -> Result<Option<Vec<String>>> {
    is_list(values).then(|| list(values)).transpose()
}

/// Whether texts are given: a list, a tuple, a set, a generator or a column.
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
