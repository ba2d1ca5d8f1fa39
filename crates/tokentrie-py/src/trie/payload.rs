//! Payloads: text, dictionaries, and what is kept of them; rules over what was given as a constraint.

use crate::convert::gil::{Shared, released};
use crate::convert::ids::type_name;
use crate::convert::strings::meant_as_value;
use crate::errors::{Class, Result, warn};
use crate::exit::{attached_or_fail, called};
use crate::spec::{Around, problem};
use crate::vocab::VocabArg;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::cell::RefCell;
use std::sync::Arc;
use tokentrie::spec::{Over, SpecProblem};
use trie_core::{Constraint, Payload, PayloadError, PayloadReport, SpanRules, TrieCache};

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

impl Cache<'_> {
    /// A payload, read or from the cache.
    ///
    /// # Errors
    /// What the session is locked for; inside, what is wrong with the payload.
    pub(crate) fn read(self, py: Python<'_>, text: &[u8], n_vocab: Option<usize>) -> Result<Read> {
        match self {
            Self::Thread => Ok(THREAD_CACHE.with_borrow_mut(|cache| released(py, || cache.payload(text, n_vocab)))),
            Self::Session(cache) => {
                let mut cache = cache.lock(py)?;
                let cache = &mut *cache;
                Ok(released(py, || cache.payload(text, n_vocab)))
            }
        }
    }

    /// As [`Cache::read`], from work without the GIL.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn payload(self, text: &[u8], n_vocab: Option<usize>) -> std::result::Result<Arc<Payload>, SpecProblem> {
        let read = match self {
            Self::Thread => THREAD_CACHE.with_borrow_mut(|cache| cache.payload(text, n_vocab)),
            Self::Session(_) => attached_or_fail(|py| self.read(py, text, n_vocab)).map_err(problem)?,
        };
        Ok(read?)
    }
}

type Read = std::result::Result<Arc<Payload>, PayloadError>;

/// Runs `use_text` on the JSON text of what is no other constraint.
///
/// # Errors
/// As [`with_text`], and those of `use_text`; a str that is no JSON was meant as a value, which it says.
pub(crate) fn payload_text<R>(
    what: &str,
    given: &Bound<'_, PyAny>,
    use_text: impl FnOnce(&[u8]) -> Result<R>,
) -> Result<R> {
    with_text(given, |text| {
        let begins = text.iter().find(|byte| !byte.is_ascii_whitespace());
        if given.is_instance_of::<PyString>() && begins.is_none_or(|byte| !matches!(byte, b'{' | b'[')) {
            Payload::from_json(text, None)?;
        }
        use_text(text)
    })
    .map_err(|error| meant_as_value(what, given, error))
}

/// Rules over the constraints that were given, each for this vocabulary.
///
/// # Errors
/// Those of [`constraint`](crate::spec::constraint), and `VocabularyError` for a set of another vocabulary.
pub(crate) fn rules_over(
    vocab: &VocabArg<'_>,
    what: &str,
    constraint: &Bound<'_, PyAny>,
    cache: Cache<'_>,
) -> Result<SpanRules> {
    let around = Around { over: Over { n_vocab: vocab.size(), vocab: vocab.core() }, sets: None, cache };
    let rules = SpanRules::new(crate::spec::constraint(what, constraint, &around)?, vocab.size())?;
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
