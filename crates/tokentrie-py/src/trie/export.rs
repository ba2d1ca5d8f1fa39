//! A trie as something else: arrays, a pickle, grammars of its texts.

use crate::convert::gil::released;
use crate::convert::ids::{id_array, tokens, type_name};
use crate::errors::{Class, Result};
use crate::trie::rendered;
use crate::trie::{Trie, vocabulary_id};
use crate::vocab::{Vocab, VocabArg};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use std::borrow::Cow;
use trie_core::LeafId;
use trie_formats::{FileOptions, OutlineLimits, TrieFile as _};

#[pymethods]
impl Trie {
    /// list[str] | None: the names of all leaves in order, where names were given.
    #[getter]
    fn names(&self, py: Python<'_>) -> Result<Option<Vec<Cow<'_, str>>>> {
        let trie = self.whole(py)?;
        Ok((0..trie.len() as u32).map(|leaf| trie.name(LeafId::new(leaf))).collect())
    }

    /// All token sequences in order as arrays, without names. Cost: one pass over the nodes.
    ///
    /// Where several sequences stand for one leaf these are the canonical ones. `from_numpy` is the inverse,
    /// `from_sequences` that of a table.
    ///
    /// Args:
    ///     table: give one array of shape [leaves, length], which needs leaves of one length.
    ///
    /// Returns:
    ///     Two arrays: int32 tokens, one leaf after the other, and int64 offsets of shape [leaves + 1]; leaf i is
    ///     `tokens[offsets[i]:offsets[i + 1]]`. With `table` one array, int32 [leaves, length].
    ///
    /// Raises:
    ///     TrieError: a table is asked for and two leaves differ in length.
    ///
    /// Example:
    ///     >>> tokens, offsets = tokentrie.Trie.from_sequences([[5, 6], [2]]).to_numpy()
    ///     >>> (tokens.tolist(), offsets.tolist())
    ///     ([2, 5, 6], [0, 1, 3])
    #[pyo3(signature = (*, table=false))]
    fn to_numpy<'py>(&self, py: Python<'py>, table: bool) -> Result<Bound<'py, PyAny>> {
        let (tokens, offsets) = self.flat(py)?;
        if !table {
            return Ok((tokens, offsets).into_pyobject(py)?.into_any());
        }
        let leaves = self.core().len();
        let offsets = offsets.readonly();
        let offsets = offsets.as_array();
        let width = offsets[1];
        if let Some(leaf) = (1..leaves).find(|&leaf| offsets[leaf + 1] - offsets[leaf] != width) {
            let other = offsets[leaf + 1] - offsets[leaf];
            return Err(Class::Trie.error(format!(
                "leaf 0 has {width} tokens and leaf {leaf} has {other}: a table needs leaves of one length"
            )));
        }
        Ok(tokens.reshape([leaves, width as usize])?.into_any())
    }

    /// Builds a trie from flat arrays: the inverse of `to_numpy`. Cost: O(n log n).
    ///
    /// Args:
    ///     tokens: token ids, one sequence after the other.
    ///     offsets: integers of shape [sequences + 1]: where each begins and, after the last, where it ends. They
    ///         start at 0, ascend and end at the number of tokens.
    ///     names: one str a sequence, or None.
    ///     heal_bytes: bytes at the end of the prompt with which every sequence begins, 0 to 2**32 - 1.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: the offsets are otherwise, or as for `from_sequences`.
    ///     VocabularyError: an integer is not a token id.
    ///     TypeError: something is not an integer.
    ///     OptionError: `heal_bytes` is out of range.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_numpy([2, 5, 6], [0, 1, 3], names=["stop", "think"])
    ///     >>> trie.leaf(1)
    ///     Leaf(index=1, name="think", tokens=[5, 6])
    #[classmethod]
    #[pyo3(signature = (tokens, offsets, names=None, heal_bytes=0))]
    fn from_numpy(
        kind: &Bound<'_, PyType>,
        tokens: &Bound<'_, PyAny>,
        offsets: &Bound<'_, PyAny>,
        names: Option<Vec<String>>,
        heal_bytes: i64,
    ) -> Result<Self> {
        let heal_bytes = crate::convert::words::unsigned("heal_bytes", heal_bytes)?;
        let (tokens, offsets) = (self::tokens(tokens, "tokens, ")?, self::offsets(offsets)?);
        let trie = released(kind.py(), || from_flat(&tokens, &offsets, names.as_deref()))?;
        Ok(Self::new(trie.with_heal_bytes(heal_bytes)))
    }

    /// The bytes of the file that `save` writes. Cost: O(bytes).
    ///
    /// Args:
    ///     vocab: a Vocab or a vocabulary size that the ids must fit.
    ///
    /// Returns:
    ///     bytes.
    ///
    /// Raises:
    ///     VocabularyError: the vocabulary does not have an id.
    ///
    /// Example:
    ///     >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]])
    ///     >>> tokentrie.Trie.from_bytes(trie.to_bytes()) == trie
    ///     True
    #[pyo3(signature = (vocab=None))]
    fn to_bytes<'py>(&self, py: Python<'py>, vocab: Option<VocabArg<'_>>) -> Result<Bound<'py, PyBytes>> {
        let vocabulary = vocab.as_ref().map(|vocab| vocabulary_id(py, vocab));
        let trie = self.whole(py)?;
        let bytes = released(py, || {
            let mut bytes = Vec::new();
            trie.write_to(&mut bytes, vocabulary).map(|()| bytes)
        });
        // Nothing else can go wrong in memory.
        Ok(PyBytes::new(py, &bytes.map_err(|error| Class::Vocabulary.error(error.to_string()))?))
    }

    /// The inverse of `to_bytes`. The bytes are copied, and all of them checked. Cost: O(bytes).
    ///
    /// Args:
    ///     data: the bytes of a .ttrie file.
    ///     vocab: as for `open`.
    ///
    /// Returns:
    ///     Trie.
    ///
    /// Raises:
    ///     TrieError: the bytes are damaged, cut off, of another version or no .ttrie.
    ///     VocabularyError: they are for another vocabulary.
    ///
    /// Example:
    ///     >>> data = tokentrie.Trie.from_sequences([[5, 6], [2]]).to_bytes()
    ///     >>> len(tokentrie.Trie.from_bytes(data))
    ///     2
    #[staticmethod]
    #[pyo3(signature = (data, *, vocab=None))]
    fn from_bytes(py: Python<'_>, data: &[u8], vocab: Option<VocabArg<'_>>) -> Result<Self> {
        let options = FileOptions::default()
            .with_vocabulary(vocab.as_ref().map(|vocab| vocabulary_id(py, vocab)))
            .with_verify(true);
        Ok(Self::new(released(py, || trie_core::Trie::from_bytes(data, options))?))
    }

    /// Pickles an open file as its path and what identifies its contents, so that processes share its pages: whoever
    /// takes the pickle must have the file there, unchanged (FileNotFoundError, TrieError). `trie.union()` is no longer
    /// a file. Everything else, and a file that has been replaced since, pickles as flat arrays and names, or where
    /// several sequences stand for one leaf or tokens have weights, as the bytes of a file. What comes back is equal;
    /// its `input_rows` count its leaves, or are not known.
    fn __reduce__<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if let Some(origin) = self.origin().filter(|origin| released(py, || origin.is_there())) {
            return Ok((py.get_type::<Self>().getattr("_reopen")?, origin.arguments(py)?));
        }
        if self.core().is_weighted() || self.core().fingerprint().is_some() {
            let arguments = (self.to_bytes(py, None)?,).into_pyobject(py)?;
            return Ok((py.get_type::<Self>().getattr("from_bytes")?, arguments));
        }
        let (class, ends) = (py.get_type::<Self>(), self.core().end_tokens());
        if !ends.is_empty() {
            let plain = Self::new(self.core().clone().with_end_tokens([]));
            let arguments = (plain, id_array(py, ends.iter().copied())).into_pyobject(py)?;
            return Ok((class.getattr("with_end_tokens")?, arguments));
        }
        if !self.core().is_tree() {
            let arguments = (self.to_bytes(py, None)?,).into_pyobject(py)?;
            return Ok((class.getattr("from_bytes")?, arguments));
        }
        let (tokens, offsets) = self.flat(py)?;
        let arguments = (tokens, offsets, self.names(py)?, self.core().heal_bytes()).into_pyobject(py)?;
        Ok((class.getattr("from_numpy")?, arguments))
    }

    /// A trie cannot change, so its copy is itself.
    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    /// A GBNF grammar (llama.cpp's) with the rule `root`, which allows the texts of the leaves and nothing else.
    ///
    /// What texts share in front is written once. A grammar knows text only: any tokenisation of a text is legal.
    /// Cost: O(n log n) comparisons of text.
    ///
    /// Args:
    ///     vocab: the text of a leaf is that of its tokens; if None, its name.
    ///
    /// Returns:
    ///     str.
    ///
    /// Raises:
    ///     TrieError: there are neither names nor a vocab, a leaf's tokens are no UTF-8 (it says which), or a text
    ///         holds NUL.
    ///     VocabularyError: tokens are outside the vocabulary.
    ///
    /// Example:
    ///     >>> tokentrie.Trie.from_sequences([[1], [2]], names=["list_files", "open_file"]).to_gbnf()
    ///     'root ::= ("list_files" | "open_file")\n'
    #[pyo3(signature = (vocab=None))]
    fn to_gbnf(&self, py: Python<'_>, vocab: Option<PyRef<'_, Vocab>>) -> Result<String> {
        let (trie, vocab) = (self.whole(py)?, core(vocab.as_ref()));
        released(py, || Ok(rendered::grammar(trie, vocab)?.gbnf()?))
    }

    /// A regular expression that matches the texts of the leaves and nothing else, as in `re.fullmatch`.
    ///
    /// It has no anchors and uses only groups, alternatives, `?` and escapes that all common engines share. What
    /// texts share in front is written once. Cost: O(n log n) comparisons of text.
    ///
    /// Args:
    ///     vocab: the text of a leaf is that of its tokens; if None, its name.
    ///
    /// Returns:
    ///     str.
    ///
    /// Raises:
    ///     TrieError: there are neither names nor a vocab, or a leaf's tokens are no UTF-8 (it says which).
    ///     VocabularyError: tokens are outside the vocabulary.
    ///
    /// Example:
    ///     >>> tokentrie.Trie.from_sequences([[1], [2]], names=["open", "opener"]).to_regex()
    ///     'open(?:er)?'
    #[pyo3(signature = (vocab=None))]
    fn to_regex(&self, py: Python<'_>, vocab: Option<PyRef<'_, Vocab>>) -> Result<String> {
        let (trie, vocab) = (self.whole(py)?, core(vocab.as_ref()));
        released(py, || Ok(rendered::grammar(trie, vocab)?.regex()))
    }

    /// The JSON schema `{"type": "string", "enum": [...]}` of the texts of the leaves in order, each once.
    ///
    /// Cost: one pass over the leaves.
    ///
    /// Args:
    ///     vocab: the text of a leaf is that of its tokens; if None, its name.
    ///
    /// Returns:
    ///     dict.
    ///
    /// Raises:
    ///     TrieError: there are neither names nor a vocab, or a leaf's tokens are no UTF-8 (it says which).
    ///     VocabularyError: tokens are outside the vocabulary.
    ///
    /// Example:
    ///     >>> tokentrie.Trie.from_sequences([[5], [2]], names=["think", "stop"]).to_json_schema_enum()
    ///     {'type': 'string', 'enum': ['stop', 'think']}
    #[pyo3(signature = (vocab=None))]
    fn to_json_schema_enum<'py>(
        &self,
        py: Python<'py>,
        vocab: Option<PyRef<'py, Vocab>>,
    ) -> Result<Bound<'py, PyDict>> {
        let (trie, vocab) = (self.whole(py)?, core(vocab.as_ref()));
        let texts = released(py, || rendered::distinct(trie, vocab))?;
        let schema = PyDict::new(py);
        schema.set_item("type", "string")?;
        schema.set_item("enum", texts)?;
        Ok(schema)
    }

    /// The trie as an SVG picture: boxes from left to right, joined by lines.
    ///
    /// A box holds the tokens up to the next choice, what they end, and the leaves below. A label of more than 60
    /// characters is cut; its tooltip has all of it. The same trie gives the same text. Cost: O(boxes · depth · log
    /// nodes).
    ///
    /// Args:
    ///     vocab: show the tokens' text instead of their numbers.
    ///     max_depth: choices below each other; all for up to 200 leaves, 2 for more.
    ///     max_children: children of a box; all for up to 200 leaves, 12 for more. The rest is counted in one box.
    ///
    /// Returns:
    ///     str: a document of its own.
    ///
    /// Raises:
    ///     OptionError: a limit is negative.
    ///     VocabularyError: tokens are outside the vocabulary.
    ///
    /// Example:
    ///     >>> picture = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"]).to_svg()
    ///     >>> (picture.startswith("<svg "), picture.count("<rect"))
    ///     (True, 3)
    #[pyo3(signature = (vocab=None, max_depth=None, max_children=None))]
    fn to_svg(
        &self,
        py: Python<'_>,
        vocab: Option<PyRef<'_, Vocab>>,
        max_depth: Option<i64>,
        max_children: Option<i64>,
    ) -> Result<String> {
        let (trie, vocab) = (self.whole(py)?, core(vocab.as_ref()));
        let limits = limits(trie, max_depth, max_children)?;
        released(py, || rendered::svg(trie, vocab, limits))
    }

    /// The drawing, for notebooks.
    fn _repr_svg_(&self, py: Python<'_>) -> Result<String> {
        self.to_svg(py, None, None, None)
    }
}

type Flat<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i64>>);

impl Trie {
    fn flat<'py>(&self, py: Python<'py>) -> Result<Flat<'py>> {
        let trie = self.whole(py)?;
        let (tokens, offsets) = released(py, || {
            let (mut tokens, mut offsets) = (Vec::new(), Vec::with_capacity(trie.len() + 1));
            offsets.push(0);
            let mut walk = trie.in_order();
            while walk.advance().is_some() {
                tokens.extend_from_slice(walk.tokens());
                offsets.push(tokens.len() as i64);
            }
            (tokens, offsets)
        });
        Ok((id_array(py, tokens.into_iter()), PyArray1::from_vec(py, offsets)))
    }
}

fn core<'v>(vocab: Option<&'v PyRef<'_, Vocab>>) -> Option<&'v trie_text::Vocab> {
    vocab.map(|vocab| &**vocab.core())
}

/// Reads the limits of a drawing.
///
/// # Errors
/// `OptionError` for a negative limit.
pub(crate) fn limits(trie: &trie_core::Trie, depth: Option<i64>, children: Option<i64>) -> Result<OutlineLimits> {
    let limit = |name: &str, value: Option<i64>| {
        let size = |value| {
            let negative = || Class::Option.error(format!("{name} is {value}: it must be at least 0"));
            usize::try_from(value).map_err(|_| negative())
        };
        value.map(size).transpose()
    };
    Ok(OutlineLimits::choose(trie, limit("max_depth", depth)?, limit("max_children", children)?))
}

fn offsets(values: &Bound<'_, PyAny>) -> Result<Vec<i64>> {
    if let Ok(array) = values.extract::<PyReadonlyArray1<'_, i64>>() {
        return Ok(array.as_array().to_vec());
    }
    values.extract().map_err(|_| {
        let message = format!("offsets must be a one-dimensional integer array, not {}", type_name(values));
        PyTypeError::new_err(message).into()
    })
}

fn from_flat(tokens: &[trie_core::TokenId], offsets: &[i64], names: Option<&[String]>) -> Result<trie_core::Trie> {
    let rows = offsets.len().saturating_sub(1);
    if let Some(names) = names.filter(|names| names.len() != rows) {
        let names = names.len();
        return Err(Class::Trie.error(format!("{names} names for {rows} sequences: give one each, or None")));
    }
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(Class::Trie.error("there are no offsets: they start at 0 even where no sequence follows"));
    };
    if first != 0 || last != tokens.len() as i64 {
        let count = tokens.len();
        let message =
            format!("offsets go from {first} to {last}: they must go from 0 to the number of tokens, {count}");
        return Err(Class::Trie.error(message));
    }
    let mut builder = trie_core::TrieBuilder::with_capacity(rows, tokens.len());
    for (row, ends) in offsets.windows(2).enumerate() {
        let &[begin, end] = ends else { continue };
        let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
        let sequence = range
            .and_then(|(begin, end)| tokens.get(begin..end))
            .ok_or_else(|| Class::Trie.error(format!("row {row} goes from {begin} to {end}: offsets must ascend")))?;
        builder.push(names.and_then(|names| names.get(row)).map(String::as_str), sequence);
    }
    Ok(builder.build()?)
}
