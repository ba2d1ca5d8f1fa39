//! `a + b`: one constraint after the other. The kind of both says what they become.

use crate::chat::constraint::ChatConstraint;
use crate::convert::strings::is_list;
use crate::errors::Result;
use crate::rule::Rule;
use crate::rule::form::{Form, Slot, Text};
use crate::rule::gate::ThinkGate;
use crate::rule::regular::Concatenation;
use crate::rule::sequence::{Sequence, Unconstrained};
use crate::rule::typed::Typed;
use crate::spec::object::SpecObject;
use crate::trie::Trie;
use crate::trie::filter::FilteredTrie;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// Whether it is an object that is a constraint.
pub(crate) fn is_constraint(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<Trie>()
        || given.is_instance_of::<FilteredTrie>()
        || given.is_instance_of::<Rule>()
        || given.is_instance_of::<Form>()
        || given.is_instance_of::<Sequence>()
        || given.is_instance_of::<ThinkGate>()
        || given.is_instance_of::<ChatConstraint>()
        || given.is_instance_of::<SpecObject>()
        || given.is_instance_of::<Typed>()
        || given.is_instance_of::<Unconstrained>()
}

fn is_of_form(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<Form>() || given.is_instance_of::<Slot>() || given.is_instance_of::<Text>()
}

/// One after the other: rules and texts are a rule, what has parts to fill in and texts are a Form, all other
/// constraints a Sequence. Everything else is left to Python.
pub(crate) fn added<'py>(one: &Bound<'py, PyAny>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let py = one.py();
    let both = |fits: fn(&Bound<'_, PyAny>) -> bool| fits(one) && fits(other);
    if both(|part| part.is_instance_of::<Rule>() || part.is_instance_of::<PyString>()) {
        return Ok(py.get_type::<Concatenation>().call1((one, other))?);
    }
    if both(|part| is_of_form(part) || part.is_instance_of::<PyString>()) {
        return Ok(py.get_type::<Form>().call1((one, other))?);
    }
    let is_part = |part: &Bound<'_, PyAny>| {
        is_constraint(part) || is_list(part) || part.is_instance_of::<PyString>() || part.is_instance_of::<PyDict>()
    };
    if both(is_part) {
        let texts = |part: &Bound<'py, PyAny>| match part.cast::<PyString>() {
            Ok(text) => PyList::new(py, [text]).map(Bound::into_any),
            Err(_) => Ok(part.clone()),
        };
        return Ok(py.get_type::<Sequence>().call1((texts(one)?, texts(other)?))?);
    }
    Ok(py.NotImplemented().into_bound(py))
}
