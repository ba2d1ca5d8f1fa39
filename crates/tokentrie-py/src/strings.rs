//! Legal values given as text.

use crate::errors::{Class, Error, Result};
use crate::gil::released;
use crate::payload::Spans;
use crate::stream::text;
use crate::vocab::VocabArg;
use lru::LruCache;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::{TokenId, Trie};
use trie_text::{Tokenization, Vocab};

/// Sets of text that were used last: a loop over prompts tokenizes its choices once.
#[derive(Debug)]
pub(crate) struct Sets(Mutex<LruCache<Texts, TextSet>>);

/// What makes a set of text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Texts {
    pub(crate) values: Arc<[String]>,
    pub(crate) prefix: String,
    pub(crate) suffix: String,
    /// Whether values are told apart by their place: none may be empty or repeat another.
    pub(crate) distinct: bool,
    pub(crate) tokenization: Tokenization,
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
    /// The set after a prompt that was given as text: values are tokenised together with the end of it, and may begin
    /// inside its last tokens.
    ///
    /// # Errors
    /// As [`Sets::get`].
    pub(crate) fn after(&self, vocab: &Vocab, texts: &Texts, prompt: &[TokenId]) -> Result<TextSet> {
        let prefix = vocab.prompt_end(prompt, &texts.values);
        let some = !texts.suffix.is_empty() || texts.values.iter().all(|value| !value.is_empty());
        if some && !prefix.is_empty() {
            // A prompt with odd ends, or of which nothing would be left, stays as it is: then the values stand alone.
            if let Ok(set) = self.get(vocab, &Texts { prefix, ..texts.clone() })
                && vocab.before_set(prompt, &set.trie).is_ok()
            {
                return Ok(set);
            }
        }
        self.get(vocab, texts)
    }

    /// The set, made if it is not there. Where a token crosses the boundary to the prefix, it begins before that token.
    ///
    /// # Errors
    /// As [`set`].
    pub(crate) fn get(&self, vocab: &Vocab, texts: &Texts) -> Result<TextSet> {
        if let Some(set) = self.sets().get(texts) {
            return Ok(set.clone());
        }
        let set = set(vocab, texts)?;
        self.sets().put(texts.clone(), set.clone());
        Ok(set)
    }

    /// Only whole entries are behind this lock, which no panic can leave half changed.
    fn sets(&self) -> MutexGuard<'_, LruCache<Texts, TextSet>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Texts {
    /// A list or tuple of str with nothing around them.
    pub(crate) fn alone(values: &Bound<'_, PyAny>) -> Result<Self> {
        let (values, nothing) = (list(values)?.into(), String::new);
        Ok(Self {
            values,
            prefix: nothing(),
            suffix: nothing(),
            distinct: false,
            tokenization: Tokenization::Canonical,
        })
    }
}

/// The set that texts stand for: the one place that says so. Where a token crosses the boundary to the prefix, the set
/// begins before that token.
///
/// # Errors
/// A vocabulary without a tokenizer, no value, an empty one, one whose tokens spell something else; and `TrieError` for
/// a value that is empty or repeated, by number, where values must be distinct.
fn set(vocab: &Vocab, texts: &Texts) -> Result<TextSet> {
    if texts.distinct {
        distinct(&texts.values)?;
    }
    let around = trie_text::Texts::default().with_prefix(&texts.prefix).with_suffix(&texts.suffix);
    let around = around.with_tokenization(texts.tokenization).with_healing(true);
    let trie = around.trie(vocab, &texts.values)?.trie;
    let order: Arc<[usize]> = trie.leaves().filter_map(|leaf| trie.input_row(leaf.index)).collect();
    if texts.distinct && order.len() < texts.values.len() {
        // Different texts, the same tokens: a tokenizer that normalises.
        return Err(Class::Vocabulary.error("two values have the same tokens"));
    }
    Ok(TextSet { trie, order })
}

/// The span of a list of str where a constraint is taken.
///
/// # Errors
/// `TypeError` for a vocabulary that is only a size; otherwise as [`set`].
pub(crate) fn span_of_texts(vocab: &VocabArg<'_>, values: &Bound<'_, PyAny>) -> Result<Spans> {
    let vocab = match vocab {
        VocabArg::Vocab(vocab) => vocab.get().core(),
        VocabArg::Size(size) => {
            let message = format!("a list of str needs a Vocab that can tokenize, not only the size {size} of one");
            return Err(PyTypeError::new_err(message).into());
        }
    };
    let texts = Texts::alone(values)?;
    let set = released(values.py(), || set(vocab, &texts))?;
    Ok(Arc::new([(String::new(), set.trie.into())]))
}

/// What to say to one str where a list of them is wanted.
pub(crate) fn one_text(what: &str, text: &Bound<'_, PyString>) -> String {
    const SHOWN: usize = 60;
    let text = text.to_string_lossy();
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{what} must be a list of str, not one str: give [{shown:?}{more}]")
}

/// A str that is no payload and does not begin like one was meant as a value: says so.
pub(crate) fn meant_as_value(what: &str, given: &Bound<'_, PyAny>, error: Error) -> Error {
    let Ok(text) = given.cast::<PyString>() else { return error };
    let begins = text.to_str().ok().and_then(|text| text.trim_start().chars().next());
    match error {
        Error::Ours(Class::Payload, reason) if begins.is_some_and(|begins| !matches!(begins, '{' | '[')) => {
            Class::Payload.error(format!("{}, or the JSON of a payload ({reason})", one_text(what, text)))
        }
        error => error,
    }
}

/// Whether texts are given, and no payload or trie.
pub(crate) fn is_list(values: &Bound<'_, PyAny>) -> bool {
    values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>()
}

/// A list of str.
///
/// # Errors
/// `TypeError` for an item of another type, by number.
pub(crate) fn list(values: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    values.try_iter()?.enumerate().map(|(row, value)| text(&value?, || format!("value {row}"))).collect()
}

/// Which sequences `from_strings` is asked for.
///
/// # Errors
/// `OptionError` for a name that is not known, or for open ends in every spelling.
pub(crate) fn tokenization(name: &str, open_end: bool) -> Result<Tokenization> {
    match (name, open_end) {
        ("canonical", false) => Ok(Tokenization::Canonical),
        ("canonical", true) => Ok(Tokenization::OpenEnd),
        ("all", false) => Ok(Tokenization::All),
        ("all", true) => Err(Class::Option.error("open_end goes with tokenization=\"canonical\", not with \"all\"")),
        _ => {
            let message = format!("tokenization is {name:?}: it must be \"canonical\" or \"all\"");
            Err(Class::Option.error(message))
        }
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
