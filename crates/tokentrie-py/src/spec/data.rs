//! What Python's classes say, as data.

use crate::chat::constraint::ChatConstraint;
use crate::convert::strings::{is_list, list};
use crate::errors::Result;
use crate::rule::date::Date;
use crate::rule::form::{Form, Slot, Text};
use crate::rule::gate::ThinkGate;
use crate::rule::grammar::{Gbnf, Grammar, WasmRule};
use crate::rule::number::Number;
use crate::rule::regex::Regex;
use crate::rule::regular::{Concatenation, Integer, OneOf, Repeat, StringRule};
use crate::rule::schema::{JsonSchema, Lark};
use crate::rule::sequence::Sequence;
use crate::rule::time::{DateTime, Time};
use crate::rule::typed::{Typed, is_type, of_type};
use crate::spec::depth::Inside;
use crate::spec::object::SpecObject;
use crate::spec::spec_of;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::sync::Arc;
use tokentrie::spec::{Part, Piece, RepeatSpec, Spec, StringSpec};

/// The spec of an object, as data as far as it is that: a Trie or a rule of a user's stays an object in it.
///
/// # Errors
/// As [`spec_of`].
pub(crate) fn data_of(what: &str, given: &Bound<'_, PyAny>) -> Result<Spec> {
    let py = given.py();
    let _inside = Inside::one_more()?;
    if let Ok(spec) = given.cast::<SpecObject>() {
        return Ok(spec.get().given().clone());
    }
    if let Ok(typed) = given.cast::<Typed>() {
        return data_of(what, typed.get().held(py));
    }
    if is_type(given) {
        return data_of(what, &of_type(given)?);
    }
    if let Ok(rule) = given.cast::<Regex>() {
        return Ok(rule.get().spec());
    }
    if let Ok(rule) = given.cast::<Integer>() {
        let (min, max) = rule.get().bounds();
        return Ok(Spec::Integer { min, max });
    }
    if let Ok(rule) = given.cast::<Number>() {
        return Ok(Spec::Number(rule.get().spec().clone()));
    }
    if let Ok(rule) = given.cast::<Date>() {
        return Ok(Spec::Moment(rule.get().spec().clone()));
    }
    if let Ok(rule) = given.cast::<Time>() {
        return Ok(Spec::Moment(rule.get().spec().clone()));
    }
    if let Ok(rule) = given.cast::<DateTime>() {
        return Ok(Spec::Moment(rule.get().spec().clone()));
    }
    if let Ok(rule) = given.cast::<StringRule>() {
        let (min_chars, max_chars, quotes) = rule.get().settings();
        return Ok(Spec::String(StringSpec { min_chars, max_chars, quotes }));
    }
    if let Ok(rule) = given.cast::<OneOf>() {
        return pieces(rule.get().choices(py)).map(Spec::OneOf);
    }
    if let Ok(rule) = given.cast::<Concatenation>() {
        return pieces(rule.get().parts(py)).map(Spec::Then);
    }
    if let Ok(rule) = given.cast::<Repeat>() {
        let (rule, min, max, separator) = rule.get().parts(py);
        return Ok(RepeatSpec { rule: piece(rule)?, min, max, separator: separator.into() }.into());
    }
    if let Ok(rule) = given.cast::<Grammar>() {
        return Ok(rule.get().spec());
    }
    if let Ok(rule) = given.cast::<Gbnf>() {
        return Ok(rule.get().spec());
    }
    if let Ok(rule) = given.cast::<WasmRule>() {
        return Ok(rule.get().spec());
    }
    if let Ok(rule) = given.cast::<Lark>() {
        return Ok(rule.get().spec());
    }
    if let Ok(rule) = given.cast::<JsonSchema>() {
        return Ok(rule.get().spec());
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

/// Of a rule that is put together.
fn pieces(parts: &Bound<'_, PyTuple>) -> Result<Vec<Piece>> {
    parts.iter().map(|part| piece(&part)).collect()
}

fn piece(part: &Bound<'_, PyAny>) -> Result<Piece> {
    match part.cast::<PyString>() {
        Ok(text) => Ok(Piece::Text(text.to_str()?.into())),
        Err(_) if is_list(part) => Ok(Piece::Spec(Spec::choice(list(part)?))),
        Err(_) => data_of("part", part).map(Piece::Spec),
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
