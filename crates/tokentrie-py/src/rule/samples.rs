//! What the command line shows of a rule: some of its texts.

use crate::convert::gil::asked;
use crate::errors::{Class, Result};
use crate::rule::{Rule, heard};
use pyo3::prelude::*;
use trie_core::work::Limits;

/// Some texts of a rule, drawn at random: at most `count`, shorter ones first.
///
/// Raises RuleError for bytes that are no text, and what a rule of a user's raises.
#[pyfunction]
#[pyo3(name = "_samples")]
pub(crate) fn samples(rule: &Bound<'_, Rule>, count: usize, seed: u32) -> Result<Vec<String>> {
    let any = Rule::any(rule)?;
    let texts = asked(rule.py(), Limits::default(), || any.samples(count, seed))?;
    heard(&*any)?;
    let text =
        |bytes| String::from_utf8(bytes).map_err(|error| Class::Rule.error(format!("a text is no UTF-8: {error}")));
    texts.into_iter().map(text).collect()
}
