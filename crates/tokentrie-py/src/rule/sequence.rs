//! Constraints that are no set: everything may come, and one constraint after the other.

use crate::convert::ids::{shown, type_name};
use crate::convert::strings::{is_list, one_text, texts};
use crate::errors::{Error, Result};
use crate::trie::Trie;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use tokentrie::spec::{Object, Spec};
use trie_core::SequenceError;
use trie_text::TextValues;

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
}

/// One constraint after the other: each part begins where a value of the part before ends.
///
/// Where a value ends that longer ones go on from, a token of a longer one is taken as that. `leaf` is the value of the
/// last set, `leaves` those of all sets in their order. Compares by content; can be pickled.
///
/// Args:
///     parts: a Trie; a list of str, which is tokenised alone and needs a Vocab where the sequence is used;
///         Unconstrained, as the last part; or another Sequence, which counts as its parts.
///
/// Raises:
///     OptionError: there is no part, something follows Unconstrained, or a healed Trie is not the first.
///     TypeError: a part is something else, such as a payload: give `Trie.from_payload` of it.
///
/// Example:
///     >>> verbs = tokentrie.Trie.from_sequences([[1], [2]], names=["get", "set"])
///     >>> nouns = tokentrie.Trie.from_sequences([[7], [8, 9]], names=["name", "colour"])
///     >>> sampler = tokentrie.Sampler(10, tokentrie.Sequence(verbs, nouns))
///     >>> sampler.accept([2, 8, 9])
///     >>> [leaf.name for leaf in sampler.leaves]
///     ['set', 'colour']
///     >>> out = tokentrie.Model().generate("The door is ", tokentrie.Sequence(["open", "shut"], [" now", " again"]))
///     >>> out.text == "".join(leaf.name for leaf in out.leaves)
///     True
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Sequence {
    parts: Vec<Part>,
}

enum Part {
    Any,
    Set(Py<Trie>),
    Texts(TextValues),
}

impl Part {
    /// Reads a part, or those of a sequence.
    fn read(number: usize, part: &Bound<'_, PyAny>, into: &mut Vec<Self>) -> Result<()> {
        if part.is_instance_of::<Unconstrained>() {
            into.push(Self::Any);
        } else if let Ok(trie) = part.cast::<Trie>() {
            into.push(Self::Set(trie.clone().unbind()));
        } else if let Ok(sequence) = part.cast::<Sequence>() {
            into.extend(sequence.get().parts.iter().map(|part| part.again(sequence.py())));
        } else if is_list(part) {
            into.push(Self::Texts(texts(part)?));
        } else {
            return Err(refused(number, part));
        }
        Ok(())
    }

    fn again(&self, py: Python<'_>) -> Self {
        match self {
            Self::Any => Self::Any,
            Self::Set(trie) => Self::Set(trie.clone_ref(py)),
            Self::Texts(texts) => Self::Texts(texts.clone()),
        }
    }

    fn heal_bytes(&self) -> usize {
        if let Self::Set(trie) = self { trie.get().core().heal_bytes() } else { 0 }
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, Self::Any) => true,
            (Self::Set(one), Self::Set(other)) => one.get().core() == other.get().core(),
            (Self::Texts(one), Self::Texts(other)) => one == other,
            _ => false,
        }
    }
}

fn refused(number: usize, part: &Bound<'_, PyAny>) -> Error {
    let message = match part.cast::<PyString>() {
        Ok(text) => one_text(&format!("part {number} of a sequence"), text),
        Err(_) => format!(
            "part {number} of a sequence must be a Trie, a list of str, Unconstrained or a Sequence, not {} of type \
             {}; a payload's set is Trie.from_payload(payload), and rules are put together with + or stand in a Form",
            shown(part),
            type_name(part)
        ),
    };
    PyTypeError::new_err(message).into()
}

impl Sequence {
    pub(crate) fn spec(&self, py: Python<'_>) -> Spec {
        let part = |part: &Part| match part {
            Part::Any => Spec::Any,
            Part::Set(trie) => Spec::Object(Object::Set(trie.bind(py).get().core().clone())),
            Part::Texts(texts) => Spec::Choice(texts.clone()),
        };
        Spec::Sequence(self.parts.iter().map(part).collect())
    }
}

#[pymethods]
impl Sequence {
    #[new]
    #[pyo3(signature = (*parts))]
    fn new(parts: &Bound<'_, PyTuple>) -> Result<Self> {
        let mut read = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            Part::read(number, &part, &mut read)?;
        }
        let count = read.len();
        let error = if count == 0 {
            Some(SequenceError::NoParts)
        } else if let Some(part) = read[..count - 1].iter().position(|part| matches!(part, Part::Any)) {
            Some(SequenceError::NeverEnds { part, parts: count })
        } else {
            let healed = read.iter().skip(1).position(|part| part.heal_bytes() > 0);
            healed.map(|part| SequenceError::Healed { part: part + 1 })
        };
        error.map_or(Ok(Self { parts: read }), |error| Err(error.into()))
    }

    /// tuple[Trie | list[str] | Unconstrained, ...]: the parts, those of a Sequence among them one by one.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let part = |part: &Part| -> PyResult<Bound<'py, PyAny>> {
            Ok(match part {
                Part::Any => Bound::new(py, Unconstrained)?.into_any(),
                Part::Set(trie) => trie.bind(py).clone().into_any(),
                Part::Texts(texts) => PyList::new(py, texts.values.iter())?.into_any(),
            })
        };
        PyTuple::new(py, self.parts.iter().map(part).collect::<PyResult<Vec<_>>>()?)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.parts == other.get().parts)
    }

    fn __hash__(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for part in &self.parts {
            match part {
                Part::Any => 0.hash(&mut hash),
                Part::Set(trie) => trie.get().core().len().hash(&mut hash),
                Part::Texts(texts) => texts.values.hash(&mut hash),
            }
        }
        hash.finish()
    }

    fn __repr__(&self) -> String {
        let values = |count| format!("{count} value{}", if count == 1 { "" } else { "s" });
        let part = |part: &Part| match part {
            Part::Any => "anything".to_owned(),
            Part::Set(trie) => values(trie.get().core().len()),
            Part::Texts(texts) => values(texts.values.len()),
        };
        format!("<tokentrie.Sequence: {}>", self.parts.iter().map(part).collect::<Vec<_>>().join(", then "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((py.get_type::<Self>().into_any(), self.parts(py)?))
    }
}
