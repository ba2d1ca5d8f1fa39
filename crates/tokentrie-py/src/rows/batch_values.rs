//! The values that rows of a batch have written, as their constraints read them.

use crate::convert::value::Value;
use crate::errors::Result;
use crate::model::meaning::{Meaning, Written, meaning};
use crate::rows::batch::Batch;
use crate::trie::leaf::fields_of;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use trie_core::{Leaf, TokenId};
use trie_text::FormConstraint;

#[pymethods]
impl Batch {
    /// The value of a row, once complete, as its constraint reads it.
    ///
    /// Args:
    ///     row: its number; a negative one counts from the end.
    ///
    /// Returns:
    ///     Of a set the name of the leaf, of a Rule or a type what its `parse` makes of the text, of a Form a dict of
    ///     such values by name. None where there is none: in rows that are not finished, in free ones, and for names
    ///     that there are not.
    ///
    /// Raises:
    ///     IndexError: there is no such row.
    ///     InvalidValueError: the class of a JsonSchema refuses the value; `error.text` is what was written.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Vocab.from_tokens([b"1", b"2", b"<end>"], eog=[2])
    ///     >>> rows = tokentrie.Batch([tokentrie.rules.Integer(0, 99), None], vocab=vocab)
    ///     >>> rows.accept([1, 1])
    ///     >>> rows.accept([0, 2])
    ///     >>> rows.value(0)
    ///     21
    fn value<'py>(&self, py: Python<'py>, row: i64) -> Result<Bound<'py, PyAny>> {
        let row = self.row(py, row)?;
        self.value_of(py, row)
    }

    /// list: `value` of each row.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
    ///     >>> rows = tokentrie.Batch(trie, rows=2, vocab=10)
    ///     >>> rows.accept([5, 2])
    ///     >>> rows.values
    ///     [None, 'stop']
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let values = (0..self.count(py)?).map(|row| self.value_of(py, row)).collect::<Result<Vec<_>>>()?;
        Ok(PyList::new(py, values)?)
    }
}

/// Contents of a row.
struct Found {
    leaves: Vec<Leaf>,
    /// Tokens of a value that is text.
    tokens: Option<Vec<TokenId>>,
    is_form: bool,
    given: Option<Py<PyAny>>,
}

impl Batch {
    fn value_of<'py>(&self, py: Python<'py>, row: usize) -> Result<Bound<'py, PyAny>> {
        let found = self.with(py, |held| {
            let (batch, rules) = (&held.batch, held.batch.rules(row)?);
            if batch.leaf(row)?.is_none() && batch.value_tokens(row)?.is_none() {
                return Ok(None);
            }
            let first = rules.constraints().first();
            let is_form = first.is_some_and(|(_, constraint)| constraint.downcast_ref::<FormConstraint>().is_some());
            let (leaves, tokens) = (batch.leaves(row)?, batch.value_tokens(row)?);
            Ok(Some((Found { leaves, tokens, is_form, given: None }, rules.clone())))
        })?;
        let Some((mut found, rules)) = found else { return Ok(py.None().into_bound(py)) };
        found.given = self.given(py, &rules)?.map(Bound::unbind);
        let Found { leaves, tokens, is_form, given } = found;
        let spelled = |tokens: &Vec<TokenId>| {
            let vocab = self.common.vocabulary()?;
            let bytes = vocab.bind(py).get().core().join(tokens).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = tokens.as_ref().and_then(spelled);
        let fields = is_form.then(|| fields_of(&leaves));
        let text = text.as_deref().or(leaves.last().and_then(|leaf| leaf.name.as_deref()));
        let given = given.as_ref().map(|given| given.bind(py));
        match meaning(py, Written { fields, leaves: &leaves, text }, given)? {
            (_, Some(refused)) => Err(refused.error),
            (Meaning::Value(value), None) => match value {
                Some(value) => {
                    let Ok(value) = value.into_pyobject(py);
                    Ok(value)
                }
                None => Ok(py.None().into_bound(py)),
            },
            (Meaning::Form(values), None) => {
                let filled = PyDict::new(py);
                values.into_iter().try_for_each(|(name, value): (String, Value)| filled.set_item(name, value))?;
                Ok(filled.into_any())
            }
        }
    }
}
