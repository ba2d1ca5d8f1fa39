//! The set of legal values.

pub(crate) mod arrays;
pub(crate) mod cache;
pub(crate) mod export;
pub(crate) mod file;
pub(crate) mod filter;
pub(crate) mod leaf;
pub(crate) mod live;
pub(crate) mod payload;
pub(crate) mod prefix_table;
pub(crate) mod rendered;
pub(crate) mod sets;
pub(crate) mod shape;
pub(crate) mod stream;

use crate::convert::gil::{apart, asked, interruptible, locked, released};
use crate::convert::ids::{Table, id_array, tokens};
use crate::convert::strings;
use crate::convert::words::unsigned;
use crate::errors::{Class, Error, Result};
use crate::trie::file::Origin;
use crate::trie::leaf::Leaf;
use crate::trie::payload::{warn_dropped, with_text};
use crate::trie::stream::Target;
use crate::vocab::{Vocab, VocabArg};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use trie_core::work::{Limits, spend};
use trie_core::{LeafId, VocabularyId};
use trie_formats::{FileOptions, Payload, PrefixTable, PrefixTableReport, TrieFile as _};
use trie_text::{TextReport, Texts, Tokenization};

/// An immutable set of values, each a token sequence with or without a name.
///
/// Made by `from_payload`, `from_sequences`, `from_strings`, `from_prefix_table`, `from_numpy` or `open`, or
/// from other tries by `|`, `&`, `-`, `^`, `filter` and `sample`. `len` counts its leaves, `in` asks for a
/// token sequence or a name, and a loop gives each Leaf. Leaves are numbered by the order of their token sequences, so
/// the same set gives the same trie whatever the order of the input. `==` compares sequences, names, end tokens
/// and weights; `<=` and the like compare the sequences. Cheap to share, also between threads. Can be pickled:
/// an open file by its path, anything else whole.
///
/// Example:
///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
///     >>> (len(trie), [5, 6] in trie, [5] in trie)
///     (2, True, False)
///     >>> [leaf.name for leaf in trie]
///     ['stop', 'think']
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Trie(trie_core::Trie, Option<Report>, Option<Origin>);

/// Report on the making of a set.
#[derive(Clone)]
pub(crate) enum Report {
    Texts(TextReport),
    Table(Box<PrefixTableReport>),
}

impl Trie {
    pub(crate) fn new(trie: trie_core::Trie) -> Self {
        Self(trie, None, None)
    }

    pub(crate) fn of_table(PrefixTable { trie, report }: PrefixTable) -> Self {
        Self(trie, Some(Report::Table(Box::new(report))), None)
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

    /// The trie, for calls that look at all of it: a file that nobody verified is read whole the first time.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn whole(&self, py: Python<'_>) -> Result<&trie_core::Trie> {
        released(py, || self.0.verify())?;
        Ok(&self.0)
    }
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
    /// Reads one descriptor of a payload. Cost: one pass over the text and one sort of the leaves.
    ///
    /// Args:
    ///     payload: JSON text (str or bytes), or the same as a dict.
    ///     path: the descriptor to take; the first one with a usable leaf if None.
    ///     vocab: a Vocab or a vocabulary size; leaves with ids outside it are dropped.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     PayloadError: the JSON is bad (it says line, column and field), or no leaf is usable.
    ///     OptionError: there is no such path; it names those there are.
    ///
    /// Warns:
    ///     TokenTrieWarning: leaves were dropped.
    ///
    /// Example:
    ///     >>> leaves = [{"name": "THINK", "tokens": [5, 6]}, {"name": "STOP", "tokens": [2]}]
    ///     >>> payload = {"descriptors": [{"path": "action", "leaves": leaves}]}
    ///     >>> tokentrie.Trie.from_payload(payload).names
    ///     ['STOP', 'THINK']
    #[staticmethod]
    #[pyo3(signature = (payload, path=None, *, vocab=None))]
    fn from_payload(payload: &Bound<'_, PyAny>, path: Option<&str>, vocab: Option<VocabArg<'_>>) -> Result<Self> {
        let py = payload.py();
        let vocabulary = vocab.as_ref().map(|vocab| vocabulary_id(py, vocab));
        let n_vocab = vocab.as_ref().map(VocabArg::size);
        let read = with_text(payload, |text| Ok(released(py, || Payload::from_json(text, n_vocab))?))?;
        warn_dropped(py, &read.report, n_vocab.unwrap_or_default())?;
        Ok(Self::new(read.trie(path)?.clone().with_vocabulary(vocabulary)))
    }

    /// Builds a trie from token sequences. Cost: O(n log n).
    ///
    /// Args:
    ///     sequences: lists of int, or an integer array of shape [rows, length]; an int32 array in C order is read
    ///         fastest. Or an iterator of either, which is read as it goes: its items are dropped one after the
    ///         other. Equal rows become one leaf.
    ///     names: one str a row, as a list or an iterator, or None. Of equal rows the smallest name stays, by code
    ///         point.
    ///     vocab: a Vocab or a vocabulary size to check the ids against.
    ///     memory: bytes of rows to hold at once; what is above that is sorted in temporary files, in the folder
    ///         that the variable TMPDIR names. The trie comes on top of it, unless it goes to `path`. None: all
    ///         rows.
    ///     path: write the trie there, as `save` would, and open it. With `memory` it is never held as a whole.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: there are no rows, one is empty (it says which), or the names do not match.
    ///     VocabularyError: an id is out of range; it says row, position and id.
    ///     TypeError: something is not an integer.
    ///     OSError: what the operating system says of a file. Then nothing is left behind, and `path` is as it was.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences(np.array([[7, 8], [7, 9], [1, 2]]))
    ///     >>> trie.allowed([7])
    ///     array([8, 9], dtype=int32)
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
        crate::exit::load_numpy(py)?;
        let vocabulary = vocab.as_ref().map(|vocab| vocabulary_id(py, vocab));
        let n_vocab = vocabulary.map(|vocabulary| vocabulary.size);
        let target = Target { memory, path, vocabulary };
        if names.is_none()
            && target.is_plain()
            && let Some(table) = Table::read(sequences)
        {
            table.check_inside(n_vocab.unwrap_or(usize::MAX))?;
            let trie = apart(py, move || table.build())??;
            return Ok(Self::new(trie.with_vocabulary(vocabulary)));
        }
        let (trie, origin) = stream::sequences(sequences, names, n_vocab, target)?;
        Ok(Self::of_file((trie.with_vocabulary(vocabulary), origin)))
    }

    /// Builds a trie from texts; they become the names.
    ///
    /// Uses all cores; a part of a text that comes again is tokenised once.
    ///
    /// Args:
    ///     vocab: a Vocab that can tokenise; any Vocab with tokenization="all" and without heal.
    ///     values: one str each, as a list or an iterator; an iterator is read as it goes (canonical, not healed).
    ///         Equal values become one leaf, one may be a prefix of another, and an empty one needs a suffix. Any
    ///         character may stand in them; different Unicode forms of a letter are different values.
    ///     prefix, suffix: the text around them. The prefix is the prompt, or its end from where a token begins.
    ///     tokenization: "canonical": the tokens that the tokenizer writes for prefix + value + suffix as plain
    ///         text, without those of the prefix. Where nothing comes before, a space that the tokenizer puts
    ///         before a text stays. Or "all": every sequence of text tokens with the same bytes. That is a graph
    ///         over the positions between bytes: 12 bytes a position and 8 for each token that can begin there,
    ///         with leaves in the order of their bytes. `forced` then gives the canonical tokens of text that must
    ///         come, and `Model.choose` the probability of the text, in whatever tokens.
    ///     open_end: with "canonical", also allow a token that holds the last bytes of value + suffix and goes on;
    ///         it ends the value: `yes.` for "yes", or `",` where the suffix is `"`. `Model.generate` gives what is
    ///         beyond as `partial_token`. 8 bytes for each such token at each position, so values should end with a
    ///         suffix that few tokens begin with.
    ///     heal: token healing: where a token crosses the boundary between prefix and value, begin the set before
    ///         that token. Every leaf then begins with the last `trie.heal_bytes` bytes of the prompt, which
    ///         `Model` takes off the prompt by itself.
    ///     memory, path: as in `from_sequences`; canonical, not healed and without open ends.
    ///
    /// Returns:
    ///     Trie. Its `report` says how many values have a token that crosses the boundary.
    ///
    /// Raises:
    ///     VocabularyError: the tokens of a value do not give its text back (a tokenizer that normalises), or,
    ///         canonical and not healed, one crosses the boundary. It names the value.
    ///     TrieError: there is no value, one is empty (it says which), or the set is too large.
    ///     OptionError: the tokenization is another, or arguments do not go together.
    ///     TypeError: a value is not a str, or `values` is one str.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Model().vocab
    ///     >>> trie = tokentrie.Trie.from_strings(vocab, ["yes", "no"], suffix="\n")
    ///     >>> sorted(vocab.detokenize(leaf.tokens) for leaf in trie)
    ///     ['no\n', 'yes\n']
    #[staticmethod]
    #[pyo3(signature = (
        vocab, values, prefix="", suffix="", tokenization="canonical", open_end=false, heal=false, *, memory=None,
        path=None
    ))]
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
        let texts = Texts::default().with_prefix(prefix).with_suffix(suffix).with_healing(heal);
        let texts = texts.with_tokenization(strings::tokenization(tokenization, open_end)?);
        if let Ok(text) = values.cast::<PyString>() {
            return Err(PyTypeError::new_err(strings::one_text("values", text)).into());
        }
        let kind = texts.tokenization;
        let plain = kind == Tokenization::Canonical && !heal;
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
            return Ok(Self(trie.with_vocabulary(Some(vocab.id())), Some(Report::Texts(report)), origin));
        }
        let values = strings::list(values)?;
        let made = if kind == Tokenization::Canonical {
            let (vocab, prefix, suffix) = (Arc::clone(vocab), prefix.to_owned(), suffix.to_owned());
            apart(py, move || {
                let texts = Texts::default().with_prefix(&prefix).with_suffix(&suffix).with_healing(heal);
                texts.with_tokenization(kind).trie(&vocab, &values)
            })??
        } else {
            interruptible(py, |stop| texts.trie_unless(vocab, &values, stop))??
        };
        Ok(Self(made.trie, Some(Report::Texts(made.report)), None))
    }

    /// int: bytes at the end of the prompt with which every leaf begins; 0 unless made with `heal=True`. `Model`
    /// takes them off the prompt by itself; with a Sampler in a loop of your own, do so. Where a tokenizer puts a
    /// space before a text, that space counts as well if nothing of the prefix is kept. Files, pickles, `filter`
    /// and `|` keep it.
    #[getter]
    fn heal_bytes(&self) -> usize {
        self.0.heal_bytes()
    }

    /// numpy.ndarray: int32 [k], ids that end a value where `Sampler` and `Model.generate` are given no others,
    /// ascending; empty unless set by `with_end_tokens`.
    #[getter]
    fn end_tokens<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        id_array(py, self.0.end_tokens().iter().copied())
    }

    /// The same values, ended by these tokens where their user names no others. Cost: O(1).
    ///
    /// Pickles keep them. Of a mapped file the result is pickled whole.
    ///
    /// Args:
    ///     ids: token ids; none takes them away.
    ///
    /// Returns:
    ///     Trie. It is equal only to tries with the same end tokens.
    ///
    /// Raises:
    ///     TypeError: something is not an integer.
    ///     VocabularyError: an integer is not a token id (0 to 2**31 - 1).
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5], [5, 6]]).with_end_tokens([9])
    ///     >>> sampler = tokentrie.Sampler(10, trie)
    ///     >>> sampler.accept(5)
    ///     >>> sampler.allowed()
    ///     array([6, 9], dtype=int32)
    fn with_end_tokens(&self, ids: &Bound<'_, PyAny>) -> Result<Self> {
        let ends = tokens(ids, "ids, ")?;
        Ok(Self(self.0.clone().with_end_tokens(ends), self.1.clone(), None))
    }

    /// dict | None: what `from_strings` found: "values", their number; "crossing", how many have a token that
    /// crosses the boundary to the prefix; "first_crossing", the rows of the first eight of them. What
    /// `from_prefix_table` found: "keys"; "weighted"; "derived_root"; how many entries were left out, by reason:
    /// "bad_keys", "bad_ids", "duplicate_keys", "two_weights", "unreachable", "empty_values"; "dead_ends", keys of
    /// whose tokens none can be used; "after_end", keys of what comes after the end; "ignored_keys", those of
    /// `prefix_dict` where there are weights; and "skipped", the first few in words.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let dict = |report: &Report| {
            let report = match report {
                Report::Texts(report) => report,
                Report::Table(report) => return prefix_table::report(py, report),
            };
            let dict = PyDict::new(py);
            dict.set_item("values", report.values)?;
            dict.set_item("crossing", report.crossing)?;
            dict.set_item("first_crossing", &report.first_crossing)?;
            Ok(dict)
        };
        self.1.as_ref().map(dict).transpose()
    }

    /// Saves the trie as a .ttrie file, for `open`. Cost: O(bytes).
    ///
    /// At every moment the path names the old file or the whole new one. `input_rows` are not saved.
    ///
    /// Args:
    ///     path: the file.
    ///     vocab: a Vocab or a vocabulary size that the ids must fit; the file remembers a Vocab's fingerprint.
    ///
    /// Raises:
    ///     VocabularyError: the vocabulary does not have an id.
    ///     OSError: what the operating system says. The old file is as it was.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]])
    ///     >>> trie.save("set.ttrie", vocab=10)
    ///     >>> tokentrie.Trie.open("set.ttrie") == trie
    ///     True
    #[pyo3(signature = (path, vocab=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, vocab: Option<VocabArg<'_>>) -> Result<()> {
        let vocabulary = vocab.as_ref().map(|vocab| vocabulary_id(py, vocab));
        Ok(released(py, || self.0.save(path, vocabulary))?)
    }

    /// Opens a .ttrie file by mapping it: nothing is copied, and processes share its pages.
    ///
    /// While it is open the file may be replaced or removed, but not changed in place. Cost: O(children of the
    /// root), with `verify` O(bytes).
    ///
    /// Args:
    ///     path: the file.
    ///     vocab: a Vocab or a vocabulary size that the ids must fit; a Vocab must be the one that the file was
    ///         saved for.
    ///     verify: read all of it and check every checksum and array. Without it, calls that look at the whole set
    ///         (set operations, exports, drawings, `save`, `sample`, `filter`) do so when they are first made, and
    ///         raise TrieError for damage; walks, which read what they pass alone, then follow a wrong set.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: the file is damaged, cut off, of another version or no .ttrie.
    ///     VocabularyError: it is for another vocabulary.
    ///     OSError: what the operating system says.
    ///
    /// Example:
    ///     >>> tokentrie.Trie.from_sequences([[5, 6], [2]]).save("set.ttrie")
    ///     >>> len(tokentrie.Trie.open("set.ttrie", vocab=10, verify=True))
    ///     2
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

    /// str | None: `Vocab.fingerprint` of the vocabulary that the ids are of, where the trie was made for a Vocab or
    /// is from a file that was saved for one; None for bare ids. It is refused with another vocabulary. Files, pickles
    /// and set operations keep it.
    #[getter]
    fn fingerprint(&self) -> Option<&str> {
        self.core().fingerprint()
    }

    /// bool: whether one token sequence stands for each leaf. Not after `from_strings` with `tokenization="all"` or
    /// `open_end=True`: then the tokens of a leaf are the canonical ones, `in` and `find` know the others too, and
    /// `|`, `filter` and the like raise.
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

    /// numpy.ndarray: int64 [leaves], the first input row that gave each leaf; -1 where it came from a file.
    #[getter]
    fn input_rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let row = |leaf| self.0.input_row(leaf);
        let row = |leaf| row(LeafId::new(leaf)).map_or(-1, |row| row as i64);
        PyArray1::from_vec(py, (0..self.0.len() as u32).map(row).collect())
    }

    /// Returns whether a leaf has these tokens, in O(length · log children), or this name, as for `find`.
    fn __contains__(&self, leaf: &Bound<'_, PyAny>) -> Result<bool> {
        self.find(leaf, None).map(|found| found.is_some())
    }

    /// The number of the leaf with these tokens, or of this text.
    ///
    /// Cost: O(length · log children); of a name O(leaves · log leaves) the first time, for an index of eight bytes a
    /// leaf, then O(log leaves).
    ///
    /// Args:
    ///     tokens: a list of token ids, or an integer array of one dimension. Or a text, as str or its bytes in UTF-8:
    ///         the leaf of this name, of several the first one.
    ///     vocab: compare a text with the bytes of the leaves' tokens instead, as `complete` does.
    ///
    /// Returns:
    ///     int, or None if there is no such leaf.
    ///
    /// Raises:
    ///     TypeError: something is not an integer.
    ///     TrieError: a text is looked up in a set without names, and no `vocab` is given.
    ///     VocabularyError: an integer is not a token id (0 to 2**31 - 1), or the trie is for another vocabulary.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
    ///     >>> trie.find([5, 6]), trie.find("think"), "stop" in trie
    ///     (1, 1, True)
    ///     >>> trie.find([5]) is None and trie.find("thi") is None
    ///     True
    #[pyo3(signature = (tokens, *, vocab=None))]
    fn find(&self, tokens: &Bound<'_, PyAny>, vocab: Option<&Bound<'_, Vocab>>) -> Result<Option<usize>> {
        let Some(text) = text_of(tokens)? else {
            if vocab.is_some() {
                return Err(Class::Option.error("vocab goes with a text: token ids are looked up as they are"));
            }
            return Ok(self.0.find(&crate::convert::ids::tokens(tokens, "")?).map(LeafId::index));
        };
        let found = if let Some(vocab) = vocab {
            let vocab = vocab.get().core();
            asked(tokens.py(), Limits::NONE, || vocab.leaf_spelling(&self.0, &text))??
        } else {
            self.check_names()?;
            let name = std::str::from_utf8(&text).ok();
            name.and_then(|name| released(tokens.py(), || self.0.leaves_named(name).next()))
        };
        Ok(found.map(LeafId::index))
    }

    /// The leaves that a text begins, whatever their tokens are: `leaves` finds what begins with whole tokens alone.
    ///
    /// To rank them by a model: `model.beam(prompt, trie.filtered(allow=trie.complete("Red St", k=None)))`.
    ///
    /// Cost: of names O(leaves · log leaves) the first time, for an index of four bytes a leaf, then O(log leaves + k);
    /// with `vocab` the children of the nodes on the way, and all leaves that are found.
    ///
    /// Args:
    ///     text: the beginning, as str, or as bytes that may end inside a character; "" begins all.
    ///     k: how many to return at most, at least 1. None: all.
    ///     vocab: a Vocab: compare with the bytes of the leaves' tokens, with what stands around a value and without
    ///         the bytes that a healed set has again of the prompt (`heal_bytes`). None: compare with their names.
    ///
    /// Returns:
    ///     list[Leaf], each once, in the order of the bytes that were compared, of equal ones by number.
    ///
    /// Raises:
    ///     TrieError: the leaves have no names, and no `vocab` is given; or the file is damaged.
    ///     OptionError: `k` is out of range.
    ///     VocabularyError: the trie is for another vocabulary.
    ///     TypeError: `text` is neither str nor bytes.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Model().vocab
    ///     >>> trie = tokentrie.Trie.from_strings(vocab, ["Red Star", "Red Sky", "Redwood", "Blue"])
    ///     >>> [leaf.name for leaf in trie.complete("Red S")]
    ///     ['Red Sky', 'Red Star']
    ///     >>> [leaf.name for leaf in trie.complete("Re", k=2, vocab=vocab)]
    ///     ['Red Sky', 'Red Star']
    #[pyo3(signature = (text, k=Some(10), *, vocab=None), text_signature = "($self, text, k=10, *, vocab=None)")]
    fn complete(&self, text: &Bound<'_, PyAny>, k: Option<i64>, vocab: Option<&Bound<'_, Vocab>>) -> Result<Vec<Leaf>> {
        let begins = text_of(text)?.ok_or_else(|| {
            let name = crate::convert::ids::type_name(text);
            PyTypeError::new_err(format!("text must be a str or bytes, not of type {name}: tokens go to `leaves`"))
        })?;
        let most = k.map(|k| unsigned("k", k)).transpose()?.map_or(usize::MAX, |k| k as usize);
        if most == 0 {
            return Err(Class::Option.error(format!("k is 0: it must be from 1 to {}, or None for all", u32::MAX)));
        }
        let vocab = vocab.map(|vocab| vocab.get().core());
        if vocab.is_none() {
            self.check_names()?;
        }
        self.whole(text.py())?;
        asked(text.py(), Limits::NONE, || {
            let found: Vec<LeafId> = match vocab {
                Some(vocab) => vocab.leaves_starting_with(&self.0, &begins)?,
                None => self.0.named_starting_with(&begins).take(most).collect(),
            };
            let mut leaves = Vec::with_capacity(found.len().min(most));
            for leaf in found.into_iter().take(most) {
                spend(8).map_err(|over| Class::Cancelled.error(over.to_string()))?;
                leaves.extend(self.0.leaf(leaf).map(Leaf::from));
            }
            Ok(leaves)
        })?
    }

    /// The leaf with this number. Cost: O(depth · log nodes).
    ///
    /// Args:
    ///     index: its number, from 0.
    ///
    /// Returns:
    ///     Leaf, or None if there is none.
    ///
    /// Example:
    ///     >>> tokentrie.Trie.from_sequences([[5, 6], [2]]).leaf(1).tokens
    ///     [5, 6]
    fn leaf(&self, index: i64) -> Option<Leaf> {
        let index = u32::try_from(index).ok()?;
        self.0.leaf(LeafId::new(index)).map(Leaf::from)
    }

    /// Tokens that may follow a prefix. Cost: O(length · log children).
    ///
    /// Args:
    ///     prefix: token ids; the root if None.
    ///
    /// Returns:
    ///     int32 [k], ascending; empty at the end of a leaf that is not a prefix of another.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the prefix leaves the trie.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [5, 7], [2]])
    ///     >>> trie.allowed()
    ///     array([2, 5], dtype=int32)
    ///     >>> trie.allowed([5])
    ///     array([6, 7], dtype=int32)
    #[pyo3(signature = (prefix=None))]
    fn allowed<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        Ok(id_array(py, self.0.children(self.walk(prefix)?).iter().copied()))
    }

    /// Tokens that must follow a prefix whatever the model says, up to the next choice or the end of a leaf.
    ///
    /// Cost: O(length · log children).
    ///
    /// Args:
    ///     prefix: token ids; the root if None.
    ///
    /// Returns:
    ///     int32 [length], empty where there is a choice.
    ///
    /// Raises:
    ///     TokenNotAllowedError: the prefix leaves the trie.
    ///
    /// Example:
    ///     >>> tokentrie.Trie.from_sequences([[5, 6, 7], [2]]).forced([5])
    ///     array([6, 7], dtype=int32)
    #[pyo3(signature = (prefix=None))]
    fn forced<'py>(&self, py: Python<'py>, prefix: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyArray1<i32>>> {
        Ok(id_array(py, self.0.forced(self.walk(prefix)?)))
    }

    /// All leaves in order.
    fn __iter__(&self) -> LeafIterator {
        LeafIterator::new(self.0.clone(), 0..self.0.len() as u32)
    }

    /// Equal tries have equal counts and leaves; a few leaves tell most others apart, more are not worth a pass over
    /// all.
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

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(other, slf.as_any())
    }
}

/// The bytes of a text; `None` for what is neither str nor bytes.
fn text_of(given: &Bound<'_, PyAny>) -> Result<Option<Vec<u8>>> {
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Some(text.to_str()?.as_bytes().to_vec()));
    }
    Ok(given.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec()))
}

impl Trie {
    /// # Errors
    /// There are no names to look a text up in.
    fn check_names(&self) -> Result<()> {
        if self.0.has_names() {
            return Ok(());
        }
        Err(Class::Trie.error(
            "the leaves have no names to look a text up in: give a Vocab as vocab= to look it up in their tokens, or \
             names= when the set is made",
        ))
    }

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
