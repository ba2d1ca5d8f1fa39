//! What Python's classes say, as data.

use crate::chat::constraint::ChatConstraint;
use crate::errors::Result;
use crate::rule::form::{Form, Slot, Text};
use crate::rule::gate::ThinkGate;
use crate::rule::sequence::Sequence;
use crate::rule::typed::{Typed, is_type, of_type};
use crate::spec::depth::Inside;
use crate::spec::object::Constraint;
use crate::spec::spec_of;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::Arc;
use tokentrie::spec::{Part, Spec};

/// The spec of an object, as data as far as it is that: a Trie or a rule of a user's stays an object in it.
///
/// # Errors
/// As [`spec_of`].
pub(crate) fn data_of(what: &str, given: &Bound<'_, PyAny>) -> Result<Spec> {
    let py = given.py();
    let _inside = Inside::one_more()?;
    if let Some(compiled) = given.cast::<Constraint>().ok().and_then(|given| given.get().compiled()) {
        return Ok(compiled.written().clone());
    }
    if let Ok(typed) = given.cast::<Typed>() {
        return data_of(what, typed.get().held(py));
    }
    if is_type(given) {
        return data_of(what, &of_type(given)?);
    }
    if let Ok(gate) = given.cast::<ThinkGate>() {
        return gate.get().data(py);
    }
    if let Ok(reply) = given.cast::<ChatConstraint>() {
        return Ok(reply.get().spec(py));
    }
    if let Ok(sequence) = given.cast::<Sequence>() {
        return sequence.get().data(py);
    }
    if let Ok(form) = given.cast::<Form>() {
        return form.get().parts(py).iter().map(|part| form_part(&part)).collect::<Result<_>>().map(Spec::Form);
    }
    match spec_of(what, given, None)? {
        Spec::Payload { text, path: None } => Ok(Spec::payload(&text)?),
        other => Ok(other),
    }
}

fn form_part(part: &Bound<'_, PyAny>) -> Result<Part> {
    let py = part.py();
    if let Ok(slot) = part.cast::<Slot>() {
        let (name, given) = slot.get().given(py);
        return Ok(Part::Slot { name: name.into(), value: data_of("values", given)? });
    }
    if let Ok(text) = part.cast::<Text>() {
        return text.get().data(py);
    }
    Ok(Part::Literal(Arc::from(part.cast::<PyString>().map_err(PyErr::from)?.to_str()?)))
}
