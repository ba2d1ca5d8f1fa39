//! What a caller may hand over as a constraint: payload text, a payload as a dictionary, or another kind.

use crate::chat_constraint::ChatConstraint;
use crate::constraint::{ReadFor, tokenized};
use crate::errors::{Class, Result, warn};
use crate::exit::called;
use crate::gate::ThinkGate;
use crate::gil::{Shared, released};
use crate::ids::type_name;
use crate::rule::{Rule, spelled_for};
use crate::strings::meant_as_value;
use crate::vocab::VocabArg;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::cell::RefCell;
use std::sync::Arc;
use trie_core::{AnyConstraint, Constraint, PayloadReport, SpanRules, TrieCache};

/// Constraints by path.
pub(crate) type Spans = Arc<[(String, AnyConstraint)]>;

/// Where payloads are looked up.
#[derive(Clone, Copy)]
pub(crate) enum Cache<'c> {
    /// The cache of the calling thread.
    Thread,
    /// A session's own.
    Session(&'c Shared<TrieCache>),
}

thread_local! {
    static THREAD_CACHE: RefCell<TrieCache> = RefCell::default();
}

/// Runs `use_text` on the JSON text of a payload.
///
/// # Errors
/// `TypeError` for other types, `PayloadError` for a dictionary that is no JSON; and those of `use_text`.
pub(crate) fn with_text<R>(payload: &Bound<'_, PyAny>, use_text: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    if let Ok(text) = payload.cast::<PyString>() {
        let text =
            text.to_str().map_err(|error| Class::Payload.error(format!("payload: not valid Unicode: {error}")))?;
        return use_text(text.as_bytes());
    }
    if let Ok(bytes) = payload.cast::<PyBytes>() {
        return use_text(bytes.as_bytes());
    }
    if payload.is_instance_of::<PyDict>() {
        let dumps = payload.py().import("json")?.getattr("dumps")?;
        let text = called(&dumps, &(payload,).into_pyobject(payload.py())?, None).map_err(|error| {
            if error.is_instance_of::<PyException>(payload.py()) {
                return Class::Payload.error(format!("payload: the dictionary is no JSON: {error}"));
            }
            error.into() // Ctrl-C, for one
        })?;
        return use_text(text.cast::<PyString>().map_err(PyErr::from)?.to_str()?.as_bytes());
    }
    let message =
        format!("a payload must be JSON text (str or bytes) or a dict, or give a Trie, not {}", type_name(payload));
    Err(PyTypeError::new_err(message).into())
}

/// The constraints that were given for a vocabulary of this size. Warns of leaves that it cannot spell. `what` is the
/// argument's name.
///
/// # Errors
/// As [`with_text`], `PayloadError` for a payload that cannot be used, those of tokenising, and of gates.
pub(crate) fn spans(what: &str, constraint: &Bound<'_, PyAny>, around: ReadFor<'_>, cache: Cache<'_>) -> Result<Spans> {
    let ReadFor { tokenizing, n_vocab, .. } = around;
    if let Ok(gate) = constraint.cast::<ThinkGate>() {
        return gate.get().spans(constraint.py(), around, cache);
    }
    if let Ok(rule) = constraint.cast::<Rule>() {
        return Ok(Arc::new([(String::new(), spelled_for(rule, around.vocab, n_vocab)?.constraint())]));
    }
    if let Ok(reply) = constraint.cast::<ChatConstraint>() {
        return Ok(Arc::new([(String::new(), ChatConstraint::over(reply, around.vocab, n_vocab)?)]));
    }
    if let Some(constraint) = crate::constraint::read(constraint, tokenizing)? {
        return Ok(Arc::new([(String::new(), constraint)]));
    }
    let py = constraint.py();
    let payload = with_text(constraint, |text| match cache {
        Cache::Session(cache) => {
            let mut cache = cache.lock(py)?;
            let cache = &mut *cache;
            Ok(released(py, || cache.payload(text, Some(n_vocab)))?)
        }
        Cache::Thread => THREAD_CACHE.with_borrow_mut(|cache| Ok(released(py, || cache.payload(text, Some(n_vocab)))?)),
    })
    .map_err(|error| meant_as_value(what, constraint, error))?;
    warn_dropped(constraint.py(), &payload.report, n_vocab)?;
    Ok(payload.constraints.clone())
}

/// Rules over the constraints that were given, each for this vocabulary.
///
/// # Errors
/// Those of [`spans`], and `VocabularyError` for a set of another vocabulary.
pub(crate) fn rules_over(
    vocab: &VocabArg<'_>,
    what: &str,
    constraint: &Bound<'_, PyAny>,
    cache: Cache<'_>,
) -> Result<SpanRules> {
    let n_vocab = vocab.size();
    let tokenizing = |texts| tokenized(constraint.py(), vocab, &texts);
    let around = ReadFor { tokenizing: &tokenizing, n_vocab, vocab: vocab.core() };
    let rules = SpanRules::new(spans(what, constraint, around, cache)?, n_vocab)?;
    if let VocabArg::Vocab(vocab) = vocab {
        let mut sets = rules.constraints().iter().flat_map(|(_, constraint)| constraint.sets());
        sets.try_for_each(|set| vocab.get().core().check_set(set))?;
    }
    Ok(rules)
}

/// Says what a vocabulary made unusable.
pub(crate) fn warn_dropped(py: Python<'_>, report: &PayloadReport, n_vocab: usize) -> Result<()> {
    let Some(first) = report.dropped.first() else { return Ok(()) };
    let trie_core::DroppedLeaf { path, name, token } = first;
    let dropped = report.out_of_vocabulary;
    let leaves = if dropped == 1 { "leaf" } else { "leaves" };
    let message = format!(
        "payload: dropped {dropped} {leaves} with ids outside the vocabulary of {n_vocab} tokens; the first is \
         {name:?} of {path:?} with id {token}",
    );
    Ok(warn(py, &message)?)
}
