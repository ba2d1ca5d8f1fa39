//! The set of legal values.

use crate::errors::{Class, Error, Result};
use crate::gil::{interruptible, locked, released};
use crate::ids::{Table, tokens};
use crate::leaf::Leaf;
use crate::payload::{warn_dropped, with_text};
use crate::stream::{self, Target};
use crate::strings;
use crate::trie_file::Origin;
use crate::vocab::{Vocab, VocabArg};
use llama_sampler::{Spelling, TextReport, Texts};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use trie_core::{FileOptions, LeafId, Payload, TokenId, VocabularyId};

/// The immutable set of token sequences that one span may produce. Cheap to share, also between threads.
///
/// Leaves are numbered by the order of their token sequences, so the same set gives the same trie whatever the order of
/// the input. Made by `from_payload`, `from_sequences`, `from_numpy`, `from_strings` or `open`, or from other tries by `|`, `&`, `-`, `^`,
/// `filter` and `sample`. `==` compares sequences and names; `<=` and the like compare the sequences. Can be pickled: an open file by
/// its path, anything else whole.
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Trie(trie_core::Trie, Option<TextReport>, Option<Origin>);

impl Trie {
    pub(crate) fn new(trie: trie_core::Trie) -> Self {
        Self(trie, None, None)
    }

    pub(crate) fn of_file((trie, origin): (trie_core::Trie, Option<Origin>)) -> Self {
        Self(trie, None, origin)
    }

    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.2.as_ref()
    }

    pub(crate) fn core(&self) -> &trie_core::Trie {
        &self.0
    }
}

/// An int32 array of these ids.
pub(crate) fn id_array(py: Python<'_>, ids: impl Iterator<Item = TokenId>) -> Bound<'_, PyArray1<i32>> {
    PyArray1::from_vec(py, ids.map(TokenId::as_i32).collect())
}

pub(crate) fn vocabulary_id<'v>(py: Python<'_>, vocab: &'v VocabArg<'_>) -> VocabularyId<'v> {
    let fingerprint = match vocab {
        VocabArg::Size(_) => None,
        VocabArg::Vocab(vocab) => {
            let vocab = vocab.get().core();
            Some(released(py, || vocab.fingerprint()))
        }
    };
    VocabularyId { size: vocab.size(), fingerprint }
}

#[pymethods]
impl Trie {
    /// Reads one descriptor of a payload.
    ///
    /// Args:
    ///     payload: JSON text (str or bytes) or the same as a dict.
    ///     path: the descriptor to take; the first one with a usable leaf if None.
    ///     vocab: a Vocab or a vocabulary size; leaves with ids outside it are dropped with a TokenTrieWarning.
    ///
    /// Raises PayloadError for bad JSON (with line, column and field) or if no leaf is usable, OptionError for an unknown
    /// path. One pass over the text and one sort of the leaves.
    #[staticmethod]
    #[pyo3(signature = (payload, path=None, *, vocab=None))]
    fn from_payload(payload: &Bound<'_, PyAny>, path: Option<&str>, vocab: Option<VocabArg<'_>>) -> Result<Self> {
        let py = payload.py();
        let n_vocab = vocab.as_ref().map(VocabArg::size);
        let read = with_text(payload, |text| Ok(released(py, || Payload::from_json(text, n_vocab))?))?;
        warn_dropped(py, &read.report, n_vocab.unwrap_or_default())?;
        let found = read.spans.iter().find(|(known, _)| path.is_none_or(|path| path == known));
        let (_, trie) = found.ok_or_else(|| {
            let known: Vec<&str> = read.spans.iter().map(|(known, _)| known.as_str()).collect();
            Class::Option.error(format!("no trie has the path {:?}; there are {known:?}", path.unwrap_or_default()))
        })?;
        Ok(Self::new(trie.clone()))
    }

    /// Builds a trie from token sequences.
    ///
    /// Args:
    ///     sequences: lists of int, or an integer array of shape [rows, length]; an int32 array in C order is read fastest. Or an
    ///         iterator of either, which is read as it goes: its items are dropped one after the other. Equal rows become one leaf.
    ///     names: one str a row, as a list or an iterator, or None. Of equal rows the smallest name stays, by code point.
    ///     vocab: a Vocab or a vocabulary size to check the ids against.
    ///     memory: bytes of rows to hold at once; what is above that is sorted in temporary files, in the folder that the variable
    ///         TMPDIR names. The trie comes on top of it, unless it goes to `path`. None: all rows.
    ///     path: write the trie there, as `save` would, and open it. With `memory` it is never held as a whole.
    ///
    /// Raises TrieError for no rows, an empty row (by number) or names that do not match; VocabularyError for an id out of
    /// range, naming row, position and id; TypeError for what are no integers; OSError for what the operating system says of a
    /// file: then nothing is left behind, and `path` is as it was. O(n log n).
    #[staticmethod]
    #[pyo3(signature = (sequences, names=None, vocab=None, *, memory=None, path=None))]
    fn from_sequences(
        sequences: &Bound<'_, PyAny>,
        names: Option<&Bound<'_, PyAny>>,
        vocab: Option<VocabArg<'_>>,
        memory: Option<usize>,
        path: Option<PathBuf>,
    ) -> Result<Self> {
        let py = sequences.py();
        let vocabulary = vocab.as_ref().map(|vocab| vocabulary_id(py, vocab));
        let n_vocab = vocabulary.map(|vocabulary| vocabulary.size);
        let target = Target { memory, path, vocabulary };
        if names.is_none()
            && target.is_plain()
            && let Some(table) = Table::read(sequences)
        {
            table.check_inside(n_vocab.unwrap_or(usize::MAX))?;
            return Ok(Self::new(released(py, || table.build())?));
        }
        Ok(Self::of_file(stream::sequences(sequences, names, n_vocab, target)?))
    }

    /// Builds a trie from texts; they become the names.
    ///
    /// Args:
    ///     vocab: a Vocab; with a tokenizer unless every spelling is wanted and nothing healed.
    ///     values: one str each, as a list or an iterator; an iterator is read as it goes (canonical, not healed). Equal ones become one leaf, one may be a prefix of another, and an empty one needs a suffix.
    ///         Any character may stand in them; different Unicode forms of a letter are different values.
    ///     prefix, suffix: the text around them; the prefix is the prompt, or its end from where a token begins.
    ///     tokenization: "canonical", the one sequence that the tokenizer writes for prefix + value + suffix, as plain text, with the
    ///         tokens of the prefix taken off (where nothing comes before, a space that the tokenizer puts before a text stays). Or
    ///         "all", every sequence of text tokens that spells the same bytes. That is a graph over the places between bytes: 12 bytes a
    ///         place and 8 for each token that can begin there, leaves in the order of their bytes. `forced` gives the canonical tokens
    ///         of text that must come, and `Model.choose` the probability of the text, in whatever tokens.
    ///     open_end: with "canonical", a token that spells the last of value + suffix and goes on is legal there as well, and ends
    ///         the value: `yes.` for "yes", or `",` where the suffix is `"`. `Model.generate` gives what is beyond as `overrun`.
    ///         8 bytes for each such token at each place, so values should end with a suffix that few tokens begin with.
    ///     heal: where a token spans the border between prefix and value, begin the set before that token: every leaf spells
    ///         the last `trie.heal_bytes` bytes of the prompt again, which `Model` takes off the prompt by itself.
    ///     memory, path: as in `from_sequences`; canonical, not healed and without open ends.
    ///
    /// Raises VocabularyError, naming the value, if its tokens do not spell it (a tokenizer that normalises) or, canonical and not
    /// healed, if one spans the border; TrieError for no value, an empty one, or more than 32 bits count; OptionError for
    /// another tokenization. Uses all cores; a part of a text that comes again is tokenised once.
    #[staticmethod]
    #[pyo3(signature = (vocab, values, prefix="", suffix="", tokenization="canonical", open_end=false, heal=false, *, memory=None, path=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn from_strings(
        py: Python<'_>,
        vocab: PyRef<'_, Vocab>,
        values: &Bound<'_, PyAny>,
        prefix: &str,
        suffix: &str,
        tokenization: &str,
        open_end: bool,
        heal: bool,
        memory: Option<usize>,
        path: Option<PathBuf>,
    ) -> Result<Self> {
        let texts = Texts { prefix, suffix, spelling: strings::spelling(tokenization, open_end)?, heal };
        if values.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("values must be a list of str, not one str").into());
        }
        let plain = texts.spelling == Spelling::Canonical && !heal;
        let vocab = vocab.core();
        let fingerprint = || Some(released(py, || vocab.fingerprint()));
        let vocabulary = path.is_some().then(|| VocabularyId { size: vocab.len(), fingerprint: fingerprint() });
        let target = Target { memory, path, vocabulary };
        if !plain && !target.is_plain() {
            let message = "memory and path go with tokenization=\"canonical\", without open_end and heal";
            return Err(Class::Option.error(message));
        }
        if plain && !(target.is_plain() && values.hasattr("__len__")?) {
            let ((trie, origin), report) = stream::texts(vocab, values, &texts, target)?;
            return Ok(Self(trie, Some(report), origin));
        }
        let values = strings::list(values)?;
        let made = if texts.spelling == Spelling::Canonical {
            released(py, || texts.trie(vocab, &values))?
        } else {
            interruptible(py, |stop| texts.trie_unless(vocab, &values, stop))??
        };
        Ok(Self(made.trie, Some(made.report), None))
    }

    /// int: bytes at the end of the prompt that every leaf spells again; 0 unless made with `heal=True`. `Model` takes them off the
    /// prompt by itself; with a Sampler in a loop of your own, do so. Where a tokenizer puts a space before a text, that space counts
    /// as well if nothing of the prefix is kept. Files, pickles, `filter` and `|` keep it.
    #[getter]
    fn heal_bytes(&self) -> usize {
        self.0.heal_bytes()
    }

    /// dict or None: what `from_strings` found: "values", their number; "straddling", how many have a token that begins in the
    /// prefix; "first_straddling", the rows of the first eight of them.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let dict = |report: &TextReport| {
            let dict = PyDict::new(py);
            dict.set_item("values", report.values)?;
            dict.set_item("straddling", report.straddling)?;
            dict.set_item("first_straddling", &report.first_straddling)?;
            Ok(dict)
        };
        self.1.as_ref().map(dict).transpose()
    }

    /// Saves the trie as a .ttrie file, for `open`.
    ///
    /// Args:
    ///     vocab: a Vocab or a vocabulary size that the ids must fit; the file remembers a Vocab's fingerprint.
    ///
    /// At every moment the path names the old file or the whole new one. `input_rows` are not saved. Raises VocabularyError
    /// for ids that the vocabulary does not have, OSError for what the operating system says; the old file is as it was then.
    /// O(bytes).
    #[pyo3(signature = (path, vocab=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, vocab: Option<VocabArg<'_>>) -> Result<()> {
        let vocabulary = vocab.as_ref().map(|vocab| vocabulary_id(py, vocab));
        Ok(released(py, || self.0.save(path, vocabulary))?)
    }

    /// Opens a .ttrie file by mapping it: nothing is copied, and processes share its pages.
    ///
    /// Args:
    ///     vocab: a Vocab or a vocabulary size that the ids must fit; a Vocab must be the one that the file was saved for.
    ///     verify: read all of it and check every checksum and array. Without it, damage gives wrong sets but no crash.
    ///
    /// While it is open the file may be replaced or removed, but not changed in place. Raises TrieError for a file that is
    /// damaged, cut off, of another version or no .ttrie; VocabularyError for another vocabulary; OSError for what the
    /// operating system says. O(children of the root), with verify O(bytes).
    #[staticmethod]
    #[pyo3(signature = (path, *, vocab=None, verify=false))]
    fn open(py: Python<'_>, path: PathBuf, vocab: Option<VocabArg<'_>>, verify: bool) -> Result<Self> {
        let options = FileOptions::default()
            .with_vocabulary(vocab.as_ref().map(|vocab| vocabulary_id(py, vocab)))
            .with_verify(verify);
        Ok(Self::of_file(released(py, || Origin::open(&path, options))?))
    }

    /// Number of leaves, at least 1.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// str | None: `Vocab.fingerprint` of the vocabulary that the ids are of, where the trie is from a file that was saved for one.
    /// It is refused with another vocabulary.
    #[getter]
    fn fingerprint(&self) -> Option<&str> {
        self.core().fingerprint()
    }

    /// bool: whether one token sequence stands for each leaf. Not after `from_strings` with `tokenization="all"` or `open_end=True`:
    /// then the tokens of a leaf are the canonical ones, `in` and `find` know the others too, and `|`, `filter` and the like raise.
    #[getter]
    fn is_tree(&self) -> bool {
        self.0.is_tree()
    }

    /// int: number of nodes, the root included.
    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// int: bytes held, names included.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    /// numpy.ndarray: int64 [leaves], the first input row that gave each leaf; -1 where the trie came from a file.
    #[getter]
    fn input_rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let row = |leaf| self.0.input_row(leaf);
        let row = |leaf| row(LeafId::new(leaf)).map_or(-1, |row| row as i64);
        PyArray1::from_vec(py, (0..self.0.len() as u32).map(row).collect())
    }

    /// Whether these tokens are a leaf. O(length · log children).
    fn __contains__(&self, tokens: &Bound<'_, PyAny>) -> Result<bool> {
        self.find(tokens).map(|found| found.is_some())
    }

    /// The number of the leaf with these tokens, or None. O(length · log children).
    ///
    /// Raises TypeError for what are no integers, VocabularyError for integers that are no token id.
    fn find(&self, tokens: &Bound<'_, PyAny>) -> Result<Option<usize>> {
        Ok(self.0.find(&crate::ids::tokens(tokens, "")?).map(LeafId::index))
    }

    /// The leaf with this number, or None if there is none.
    fn leaf(&self, index: i64) -> Option<Leaf> {
        let index = u32::try_from(index).ok()?;
        self.0.leaf(LeafId::new(index)).map(Leaf::from)
    }

    /// Tokens that may follow a prefix: int32, ascending; empty at the end of a leaf that is no prefix of another.
    ///
    /// Raises TokenNotAllowedError if the prefix leaves the trie. O(length · log children).
    #[pyo3(signature = (prefix=None))]
    fn allowed<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        Ok(id_array(py, self.0.children(self.walk(prefix)?).iter().copied()))
    }

    /// Tokens that must follow a prefix whatever the model says, up to the next choice or the end of a leaf: int32.
    ///
    /// Raises TokenNotAllowedError if the prefix leaves the trie. O(length · log children).
    #[pyo3(signature = (prefix=None))]
    fn forced<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        Ok(id_array(py, self.0.forced(self.walk(prefix)?)))
    }

    /// All leaves in order.
    fn __iter__(&self) -> LeafIterator {
        LeafIterator::new(self.0.clone(), 0..self.0.len() as u32)
    }

    /// Equal tries have equal counts and leaves; a few leaves tell most others apart, more are not worth a pass over all.
    fn __hash__(&self) -> u64 {
        const LOOKED_AT: usize = 8;
        let mut hash = DefaultHasher::new();
        (self.0.len(), self.0.nodes(), self.0.max_token()).hash(&mut hash);
        for nth in 0..LOOKED_AT {
            self.0.leaf(LeafId::new((self.0.len() * nth / LOOKED_AT) as u32)).hash(&mut hash);
        }
        hash.finish()
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Trie: {} leaves, {} nodes, {} bytes>", self.0.len(), self.0.nodes(), self.0.nbytes())
    }
}

impl Trie {
    pub(crate) fn walk(&self, prefix: Option<&Bound<'_, PyAny>>) -> Result<trie_core::Cursor> {
        let prefix = prefix.map_or(Ok(Vec::new()), |prefix| tokens(prefix, ""))?;
        self.0.walk(&prefix).map_err(Error::from)
    }
}

/// Iterates over the leaves of a trie.
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct LeafIterator {
    trie: trie_core::Trie,
    left: Mutex<Range<u32>>,
}

impl LeafIterator {
    pub(crate) fn new(trie: trie_core::Trie, leaves: Range<u32>) -> Self {
        Self { trie, left: Mutex::new(leaves) }
    }
}

#[pymethods]
impl LeafIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Leaf>> {
        let next = locked(py, &self.left)?.next();
        Ok(next.and_then(|leaf| self.trie.leaf(LeafId::new(leaf))).map(Leaf::from))
    }

    fn __length_hint__(&self, py: Python<'_>) -> Result<usize> {
        Ok(locked(py, &self.left)?.len())
    }
}
