//! A set that changes while others walk it.

use crate::convert::gil::{locked, released};
use crate::convert::ids::{id_array, shown, tokens, type_name};
use crate::errors::{Class, Error, Result};
use crate::exit::items;
use crate::trie::Trie;
use crate::vocab::Vocab;
use numpy::{PyArray1, PyUntypedArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::sync::Mutex;
use trie_core::{Constraint, PatchedTrie, Scratch, TokenId};

/// A set whose values come and go: a catalogue, for one. It is a constraint wherever a Trie is one.
///
/// What is made of it has the values of that moment: a Sampler, a generation that runs. So a change never leads a walk
/// into a dead end. Changes lie over the trie, which may be mapped from a file, until `compact`: a thousand of them in
/// a set of a million take some thousandths of a second. All methods may be called from several threads.
///
/// Leaves of the trie keep their numbers; those that came are numbered after them, anew by every change. `choose` and
/// whatever else lists all values makes a trie of them first: O(leaves), so `compact` before many of these.
///
/// Args:
///     trie: the values to begin with; a tree without weights.
///     vocab: makes tokens of values that are given as text, as `Trie.from_strings(vocab, values)` does. For values
///         that were made with other options give a Trie that was made with the same.
///
/// Raises:
///     TrieError: the trie has weights, or several sequences stand for one leaf.
///
/// Example:
///     >>> live = tokentrie.sets.LiveSet(tokentrie.Trie.from_sequences([[1, 2], [4, 2]]))
///     >>> sampler = tokentrie.Sampler(6, live)
///     >>> live.change(add=[[1, 3]], remove=[[4, 2]])
///     (1, 1)
///     >>> (sampler.allowed().tolist(), tokentrie.Sampler(6, live).allowed().tolist())
///     ([1, 4], [1])
#[pyclass(frozen, module = "tokentrie.sets")]
pub(crate) struct LiveSet {
    now: Mutex<PatchedTrie>,
    vocab: Option<Py<Vocab>>,
}

/// The tokens of a value, and its name where it has one.
type Value = (Option<String>, Vec<TokenId>);

impl LiveSet {
    /// The values of this moment.
    ///
    /// # Errors
    /// An earlier call failed inside.
    pub(crate) fn now(&self, py: Python<'_>) -> Result<PatchedTrie> {
        Ok(locked(py, &self.now)?.clone())
    }

    /// Puts what is made of the values in their place; it is made again where another thread changed them meanwhile.
    fn replace<T>(&self, py: Python<'_>, make: impl Fn(&PatchedTrie) -> Result<(PatchedTrie, T)>) -> Result<T> {
        loop {
            let before = self.now(py)?;
            let (after, told) = make(&before)?;
            let mut now = locked(py, &self.now)?;
            if now.is(&before) {
                *now = after;
                return Ok(told);
            }
        }
    }

    /// Reads the values to add or remove: a Trie, texts, or token sequences.
    fn values(&self, py: Python<'_>, given: &Bound<'_, PyAny>, at: &PatchedTrie) -> Result<Vec<Value>> {
        if let Ok(trie) = given.cast::<Trie>() {
            let trie = trie.get().whole(py)?;
            at.base().check_alike("a change", trie)?;
            return Ok(trie.leaves().map(|leaf| (leaf.name, leaf.tokens)).collect());
        }
        let text = given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>();
        if text || !given.hasattr("__iter__")? {
            let (shown, name) = (shown(given), type_name(given));
            let message =
                format!("values must be a list of texts or token sequences, or a Trie, not {shown} of type {name}");
            return Err(PyTypeError::new_err(message).into());
        }
        let class = py.get_type::<Trie>();
        // All at once: one by one costs twenty times as much.
        let made = if given.is_instance_of::<PyUntypedArray>() {
            class.call_method1("from_sequences", (given,))?
        } else {
            let listed = items(given)?.collect::<PyResult<Vec<_>>>()?;
            match (&self.vocab, listed.iter().all(PyAnyMethods::is_instance_of::<PyString>)) {
                (_, true) if listed.is_empty() => return Ok(Vec::new()),
                (_, false) => class.call_method1("from_sequences", (listed,))?,
                (Some(vocab), true) => class.call_method1("from_strings", (vocab.bind(py), listed))?,
                (None, true) => {
                    let message =
                        "values are given as text and the set has no vocabulary: LiveSet(trie, vocab), or give tokens";
                    return Err(Class::Option.error(message.to_owned()));
                }
            }
        };
        self.values(py, &made, at)
    }

    /// Reads the values to remove: a text is the name of a value, too.
    fn gone(&self, py: Python<'_>, given: &Bound<'_, PyAny>, at: &PatchedTrie) -> Result<Vec<Value>> {
        if !at.base().has_names() || given.is_instance_of::<Trie>() || given.is_instance_of::<PyString>() {
            return self.values(py, given, at);
        }
        let mut found = Vec::new();
        for (entry, value) in items(given)?.enumerate() {
            let value = value?;
            match value.cast::<PyString>() {
                Ok(name) => match at.tokens_by_name(&name.to_string_lossy()) {
                    // What is not there changes nothing, and no value has no tokens.
                    none if none.is_empty() => found.push((None, Vec::new())),
                    named => found.extend(named.into_iter().map(|tokens| (None, tokens))),
                },
                Err(_) => found.push((None, tokens(&value, &format!("entry {entry}, "))?)),
            }
        }
        Ok(found)
    }
}

#[pymethods]
impl LiveSet {
    #[new]
    #[pyo3(signature = (trie, vocab=None))]
    fn new(trie: &Bound<'_, Trie>, vocab: Option<Py<Vocab>>) -> Result<Self> {
        vocab.as_ref().map_or(Ok(()), |vocab| vocab.get().core().check_set(trie.get().core()))?;
        Ok(Self { now: Mutex::new(PatchedTrie::new(trie.get().core().clone())?), vocab })
    }

    /// Lets values go and others come, all at once: whoever looks meanwhile has the values of before.
    ///
    /// Cost: O((c + p) log n) for c changes, after p since `compact`.
    ///
    /// Args:
    ///     add: texts, token sequences, or a Trie.
    ///     remove: the same; a text is the name of values, too. Goes before `add`.
    ///
    /// Returns:
    ///     (int, int): how many came, and how many went. What was there already, or was not there, is not counted.
    ///
    /// Raises:
    ///     TrieError: nothing would be left; some values would have names and others none; a Trie begins elsewhere in
    ///         the prompt or ends with other tokens. Then nothing has changed.
    ///     OptionError: texts without a vocabulary.
    ///     TypeError, ValueError, VocabularyError: a value is none.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[1], [2]], names=["a", "b"])
    ///     >>> live = tokentrie.sets.LiveSet(trie)
    ///     >>> live.change(remove=["a", "c"], add=tokentrie.Trie.from_sequences([[3]], names=["c"]))
    ///     (1, 1)
    #[pyo3(signature = (add=None, remove=None))]
    fn change(
        &self,
        py: Python<'_>,
        add: Option<&Bound<'_, PyAny>>,
        remove: Option<&Bound<'_, PyAny>>,
    ) -> Result<(usize, usize)> {
        let at = |what: &'static str| move |error: Error| error.at(&format!("{what}: "));
        self.replace(py, |before| {
            let add = add.map_or(Ok(Vec::new()), |add| self.values(py, add, before)).map_err(at("add"))?;
            let gone = remove.map_or(Ok(Vec::new()), |gone| self.gone(py, gone, before)).map_err(at("remove"))?;
            let (after, changes) = released(py, || {
                let add: Vec<_> = add.iter().map(|(name, tokens)| (name.as_deref(), &tokens[..])).collect();
                let gone: Vec<_> = gone.iter().map(|(_, tokens)| &tokens[..]).collect();
                before.apply_changes(&gone, &add)
            })?;
            Ok((after, (changes.added, changes.removed)))
        })
    }

    /// Makes one trie of all that is there; what came is numbered anew. Cost: O(leaves).
    ///
    /// Example:
    ///     >>> live = tokentrie.sets.LiveSet(tokentrie.Trie.from_sequences([[1], [2]]))
    ///     >>> live.change(add=[[3]])
    ///     (1, 0)
    ///     >>> live.compact()
    ///     >>> live.patches
    ///     0
    fn compact(&self, py: Python<'_>) -> Result<()> {
        self.replace(py, |before| Ok((released(py, || before.to_trie(usize::MAX).map(PatchedTrie::new))??, ())))
    }

    /// Another set with the values of this moment, which changes apart. Cost: O(1).
    ///
    /// Returns:
    ///     LiveSet.
    ///
    /// Example:
    ///     >>> live = tokentrie.sets.LiveSet(tokentrie.Trie.from_sequences([[1], [2]]))
    ///     >>> live.copy().change(add=[[3]])
    ///     (1, 0)
    ///     >>> len(live)
    ///     2
    fn copy(&self, py: Python<'_>) -> Result<Self> {
        Ok(Self { now: Mutex::new(self.now(py)?), vocab: self.vocab.as_ref().map(|vocab| vocab.clone_ref(py)) })
    }

    /// The values of this moment as a Trie. Cost: O(leaves).
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Example:
    ///     >>> live = tokentrie.sets.LiveSet(tokentrie.Trie.from_sequences([[1], [2]]))
    ///     >>> live.change(remove=[[1]])
    ///     (0, 1)
    ///     >>> len(live.to_trie())
    ///     1
    fn to_trie(&self, py: Python<'_>) -> Result<Trie> {
        let now = self.now(py)?;
        Ok(Trie::new(released(py, || now.to_trie(usize::MAX))?))
    }

    /// Tokens that may follow a prefix. Cost: O(length · log children).
    ///
    /// Args:
    ///     prefix: token ids; the start if None.
    ///
    /// Returns:
    ///     int32 [k], ascending.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the prefix leaves the set.
    ///
    /// Example:
    ///     >>> live = tokentrie.sets.LiveSet(tokentrie.Trie.from_sequences([[1, 2], [4, 2]]))
    ///     >>> live.allowed()
    ///     array([1, 4], dtype=int32)
    #[pyo3(signature = (prefix=None))]
    fn allowed<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        let prefix = prefix.map_or(Ok(Vec::new()), |prefix| tokens(prefix, "prefix, "))?;
        let (now, mut scratch) = (self.now(py)?, Scratch::default());
        let at = now.walk(&prefix)?;
        let legal: Vec<TokenId> = now.next(&at, &mut scratch).tokens.iter().collect();
        Ok(id_array(py, legal.into_iter()))
    }

    /// int: how many values have come or gone since the trie was made, or since `compact`.
    #[getter]
    fn patches(&self, py: Python<'_>) -> Result<usize> {
        Ok(self.now(py)?.patches())
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        Ok(self.now(py)?.len())
    }

    fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> Result<bool> {
        let now = self.now(py)?;
        match value.cast::<PyString>() {
            Ok(name) => Ok(!now.tokens_by_name(&name.to_string_lossy()).is_empty()),
            Err(_) => Ok(now.contains(&tokens(value, "")?)),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        let now = self.now(py)?;
        Ok(format!("<tokentrie.sets.LiveSet: {} leaves, {} patches>", now.len(), now.patches()))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(other, slf.as_any())
    }
}
