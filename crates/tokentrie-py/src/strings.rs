//! Legal values given as text.

use crate::errors::{Class, Error, Result};
use crate::ids::{shown, type_name};
use llama_sampler::{Spelling, TextError, Vocab};
use lru::LruCache;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::Trie;

/// Sets of text that were used last: a loop over prompts tokenizes its choices once.
#[derive(Debug)]
pub(crate) struct Sets(Mutex<LruCache<Texts, TextSet>>);

/// What makes a set of text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Texts {
    pub(crate) values: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) suffix: String,
    /// Whether values are told apart by their place: none may be empty or repeat another.
    pub(crate) distinct: bool,
}

/// A trie of texts, and the place of each leaf among them.
#[derive(Debug, Clone)]
pub(crate) struct TextSet {
    pub(crate) trie: Trie,
    pub(crate) order: Arc<[usize]>,
}

impl Default for Sets {
    fn default() -> Self {
        const ENTRIES: NonZeroUsize = NonZeroUsize::new(16).unwrap();
        Self(Mutex::new(LruCache::new(ENTRIES)))
    }
}

impl Sets {
    /// The set, made by [`trie`] if it is not there.
    ///
    /// # Errors
    /// As [`trie`], and `TrieError` for a value that is empty or repeated, by number, where values must be distinct.
    pub(crate) fn get(&self, vocab: &Vocab, texts: Texts) -> Result<TextSet> {
        if let Some(set) = self.sets().get(&texts) {
            return Ok(set.clone());
        }
        if texts.distinct {
            distinct(&texts.values)?;
        }
        let trie = trie(vocab, &texts.values, &texts.prefix, &texts.suffix)?;
        let order: Arc<[usize]> = trie.leaves().filter_map(|leaf| trie.input_row(leaf.index)).collect();
        if texts.distinct && order.len() < texts.values.len() {
            // Different texts, the same tokens: a tokenizer that normalises.
            return Err(Class::Vocabulary.error("two values have the same tokens"));
        }
        let set = TextSet { trie, order };
        self.sets().put(texts, set.clone());
        Ok(set)
    }

    /// Only whole entries are behind this lock, which no panic can leave half changed.
    fn sets(&self) -> MutexGuard<'_, LruCache<Texts, TextSet>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list of str.
///
/// # Errors
/// `TypeError` for an item of another type, by number.
pub(crate) fn list(values: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    let text = |(row, value): (usize, PyResult<Bound<'_, PyAny>>)| -> Result<String> {
        let value = value?;
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(text.to_str()?.to_owned());
        }
        let (shown, name) = (shown(&value), type_name(&value));
        Err(PyTypeError::new_err(format!("value {row} must be a str, not {shown} of type {name}")).into())
    };
    values.try_iter()?.enumerate().map(text).collect()
}

/// A trie of these values as the tokenizer writes them; see [`Texts::trie`](llama_sampler::Texts::trie).
///
/// # Errors
/// A vocabulary without a tokenizer, no value, an empty one, one whose tokens spell something else, or one whose first
/// token begins in the prefix.
pub(crate) fn trie(vocab: &Vocab, values: &[String], prefix: &str, suffix: &str) -> Result<Trie> {
    let texts = llama_sampler::Texts { prefix, suffix, ..llama_sampler::Texts::default() };
    Ok(texts.trie(vocab, values)?.trie)
}

/// Which sequences `from_strings` is asked for.
///
/// # Errors
/// `OptionError` for a name that is not known, or for open ends in every spelling.
pub(crate) fn spelling(name: &str, open_end: bool) -> Result<Spelling> {
    match (name, open_end) {
        ("canonical", false) => Ok(Spelling::Canonical),
        ("canonical", true) => Ok(Spelling::OpenEnd),
        ("all", false) => Ok(Spelling::All),
        ("all", true) => Err(Class::Option.error("open_end goes with tokenization=\"canonical\", not with \"all\"")),
        _ => {
            let message = format!("tokenization is {name:?}: it must be \"canonical\" or \"all\"");
            Err(Class::Option.error(message))
        }
    }
}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        let class = match error {
            TextError::Runtime(error) => return error.into(),
            TextError::Build(error) => return error.into(),
            TextError::Empty { .. } => Class::Trie,
            TextError::NoRoundTrip { .. } | TextError::Unspellable { .. } | TextError::Straddles { .. } => {
                Class::Vocabulary
            }
        };
        class.error(error.to_string())
    }
}

fn distinct(values: &[String]) -> Result<()> {
    let mut seen = HashMap::new();
    for (row, value) in values.iter().enumerate() {
        if value.is_empty() {
            return Err(Class::Trie.error(format!("value {row} is empty")));
        }
        if let Some(first) = seen.insert(value, row) {
            return Err(Class::Trie.error(format!("value {row}, {value:?}, repeats value {first}")));
        }
    }
    Ok(())
}
