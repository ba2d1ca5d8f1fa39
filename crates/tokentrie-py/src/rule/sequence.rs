//! Constraints that are no set: everything may come, and one constraint after the other, which is what `a + b` makes
//! unless both are rules, or parts of a form.

use crate::chat::constraint::ChatConstraint;
use crate::convert::ids::{shown, type_name};
use crate::convert::strings::{is_list, list, one_text};
use crate::errors::{Error, Result};
use crate::rule::form::Form;
use crate::rule::gate::ThinkGate;
use crate::rule::typed::Typed;
use crate::spec::data::data_of;
use crate::spec::object::{Constraint, added};
use crate::spec::{as_object, spec_of};
use crate::trie::Trie;
use crate::trie::filter::FilteredTrie;
use crate::trie::live::LiveSet;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::sync::Arc;
use tokentrie::spec::Spec;
use trie_core::SequenceError;
use trie_text::Vocab;

/// No constraint: every token may come.
///
/// Given where a constraint is wanted, it leaves the output free; as the last part of a Sequence it is the free text
/// after a value. It never completes: `Sampler.state` stays "active" until an end token comes, if there are any.
///
/// Example:
///     >>> sampler = tokentrie.Sampler(4, tokentrie.rules.Unconstrained())
///     >>> sampler.sample(np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32))
///     3
///     >>> tokentrie.rules.Unconstrained() == tokentrie.rules.Unconstrained()
///     True
#[pyclass(frozen, eq, hash, module = "tokentrie.rules")]
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unconstrained;

#[pymethods]
#[allow(clippy::unused_self, reason = "methods of Python have an object")]
impl Unconstrained {
    #[new]
    fn new() -> Self {
        Self
    }

    fn __repr__(&self) -> &'static str {
        "tokentrie.rules.Unconstrained()"
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Bound<'py, PyTuple>) {
        (py.get_type::<Self>().into_any(), PyTuple::empty(py))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(other, slf.as_any())
    }
}

/// One constraint after the other: each part begins where a value of the part before ends.
///
/// `a + b` of two constraints is one too. Where a value ends that longer ones go on from, a token of a longer one is
/// taken as that. Each part has tokens of its own; in rules put together with `+`, and in a Form, tokens may cross from
/// one into the next. `leaf` is the value of the last set, `leaves` those of all sets in their order. Compares by
/// content; can be pickled.
///
/// Args:
///     parts: constraints of any kind but payloads: a Trie, a Rule, a Form, a ThinkGate, a ChatConstraint, a spec; a
///         list of str, which is tokenised alone and needs a Vocab where the sequence is used; Unconstrained, as the
///         last part; or another Sequence, which counts as its parts.
///
/// Raises:
///     OptionError: there is no part, something follows Unconstrained, or a healed Trie is not the first.
///     TypeError: a part is something else, such as a payload: give `Trie.from_payload` of it.
///
/// Example:
///     >>> verbs = tokentrie.Trie.from_sequences([[1], [2]], names=["get", "set"])
///     >>> nouns = tokentrie.Trie.from_sequences([[7], [8, 9]], names=["name", "colour"])
///     >>> sampler = tokentrie.Sampler(10, verbs + nouns)
///     >>> sampler.accept([2, 8, 9])
///     >>> [leaf.name for leaf in sampler.leaves]
///     ['set', 'colour']
///     >>> door = tokentrie.Sequence(["open", "shut"], tokentrie.Regex(" (now|at [0-9]{2}:00)"))
///     >>> tokentrie.Model().generate("The door is ", door).text[:4] in ("open", "shut")
///     True
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Sequence {
    /// As they were given; of an iterable its list, of a dict its Spec.
    parts: Py<PyTuple>,
}

/// Reads a part, or those of a sequence.
fn read<'py>(number: usize, part: &Bound<'py, PyAny>, into: &mut Vec<Bound<'py, PyAny>>) -> Result<()> {
    let py = part.py();
    let part = as_object(part)?;
    if let Ok(sequence) = part.cast::<Sequence>() {
        into.extend(sequence.get().parts.bind(py));
    } else if is_constraint(&part) {
        into.push(part);
    } else if is_list(&part) {
        into.push(PyList::new(py, list(&part)?)?.into_any());
    } else {
        return Err(refused(number, &part));
    }
    Ok(())
}

fn refused(number: usize, part: &Bound<'_, PyAny>) -> Error {
    let message = match part.cast::<PyString>() {
        Ok(text) => one_text(&format!("part {number} of a sequence"), text),
        Err(_) => format!(
            "part {number} of a sequence must be a constraint or a list of str, not {} of type {}; a payload's set is \
             Trie.from_payload(payload)",
            shown(part),
            type_name(part)
        ),
    };
    PyTypeError::new_err(message).into()
}

impl Sequence {
    pub(crate) fn spec(&self, py: Python<'_>, vocab: Option<&Arc<Vocab>>) -> Result<Spec> {
        self.specs(py, |part| spec_of("part", part, vocab))
    }

    /// As data.
    pub(crate) fn data(&self, py: Python<'_>) -> Result<Spec> {
        self.specs(py, |part| data_of("part", part))
    }

    fn specs(&self, py: Python<'_>, spec: impl Fn(&Bound<'_, PyAny>) -> Result<Spec>) -> Result<Spec> {
        self.parts.bind(py).iter().map(|part| spec(&part)).collect::<Result<_>>().map(Spec::Sequence)
    }
}

#[pymethods]
impl Sequence {
    #[new]
    #[pyo3(signature = (*parts))]
    fn new(parts: &Bound<'_, PyTuple>) -> Result<Self> {
        let mut all = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            read(number, &part, &mut all)?;
        }
        let healed = |part: &Bound<'_, PyAny>| part.cast::<Trie>().is_ok_and(|trie| trie.get().core().heal_bytes() > 0);
        let count = all.len();
        let error = if count == 0 {
            Some(SequenceError::NoParts)
        } else if let Some(part) = all[..count - 1].iter().position(PyAnyMethods::is_instance_of::<Unconstrained>) {
            Some(SequenceError::NeverEnds { part, parts: count })
        } else {
            all.iter().skip(1).position(healed).map(|part| SequenceError::Healed { part: part + 1 })
        };
        error.map_or_else(|| Ok(Self { parts: PyTuple::new(parts.py(), all)?.unbind() }), |error| Err(error.into()))
    }

    /// tuple[Constraint, ...]: the parts, those of a Sequence among them one by one.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> Bound<'py, PyTuple> {
        self.parts.bind(py).clone()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        self.parts.bind(other.py()).eq(&other.get().parts)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let hashable = |part: Bound<'_, PyAny>| match part.cast::<PyList>() {
            Ok(list) => list.to_tuple().hash(),
            Err(_) => part.hash(),
        };
        PyTuple::new(py, self.parts.bind(py).iter().map(hashable).collect::<PyResult<Vec<_>>>()?)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let values = |count| format!("{count} value{}", if count == 1 { "" } else { "s" });
        let part = |part: Bound<'_, PyAny>| {
            if part.is_instance_of::<Unconstrained>() {
                return Ok("anything".to_owned());
            }
            if let Ok(trie) = part.cast::<Trie>() {
                return Ok(values(trie.get().core().len()));
            }
            if let Ok(list) = part.cast::<PyList>() {
                return Ok(values(list.len()));
            }
            Ok(part.repr()?.to_string())
        };
        let parts = self.parts.bind(py).iter().map(part).collect::<PyResult<Vec<_>>>()?;
        Ok(format!("<tokentrie.Sequence: {}>", parts.join(", then ")))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Bound<'py, PyTuple>) {
        (py.get_type::<Self>().into_any(), self.parts(py))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(other, slf.as_any())
    }
}

/// Whether it is an object that is a constraint.
pub(crate) fn is_constraint(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<Trie>()
        || given.is_instance_of::<FilteredTrie>()
        || given.is_instance_of::<LiveSet>()
        || given.is_instance_of::<Form>()
        || given.is_instance_of::<Sequence>()
        || given.is_instance_of::<ThinkGate>()
        || given.is_instance_of::<ChatConstraint>()
        || given.is_instance_of::<Constraint>()
        || given.is_instance_of::<Typed>()
        || given.is_instance_of::<Unconstrained>()
}
