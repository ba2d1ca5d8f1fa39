//! Token ids, their bytes, and the text they stand for.

pub(crate) mod detokenizer;
mod pickled;
pub(crate) mod tokenizer;

use crate::convert::gil::{asked, released};
use crate::convert::ids::{id_array, tokens, type_name};
use crate::errors::{Class, Error, Result};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};
use std::path::PathBuf;
use std::sync::Arc;
use trie_core::TokenId;
use trie_core::work::Limits;

/// A vocabulary: which token ids there are, the bytes of each, and which of them end a generation.
///
/// Made by `from_gguf`, `from_tokenizer`, `from_tiktoken` or `from_tokens`, or taken from `Model.vocab`. `len`
/// counts its tokens, and `vocab[i]` gives the bytes of one (IndexError outside 0 to len - 1). Immutable; may be
/// used from several threads at once. Can be pickled; of a GGUF as its path, which is read again.
///
/// Example:
///     >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"bc", b"</s>"], eog=[2], control=[2])
///     >>> (len(vocab), vocab[1], vocab.eog)
///     (3, b'bc', [2])
#[pyclass(frozen, sequence, module = "tokentrie")]
pub(crate) struct Vocab(Arc<trie_text::Vocab>, Option<Origin>);

/// The method that made a vocabulary, and of what.
type Origin = (&'static str, Py<PyAny>);

impl Vocab {
    pub(crate) fn new(vocab: Arc<trie_text::Vocab>) -> Self {
        Self(vocab, None)
    }

    pub(crate) fn core(&self) -> &Arc<trie_text::Vocab> {
        &self.0
    }

    fn outside(&self, token: isize) -> Error {
        Error::Index(format!("token id {token} is outside the vocabulary of {} tokens", self.0.len()))
    }
}

#[pymethods]
impl Vocab {
    /// The vocabulary of a GGUF file, through llama.cpp; the file may hold weights or not.
    ///
    /// Cost: O(tokens), a tenth of a second for big ones.
    ///
    /// Args:
    ///     path: the file.
    ///
    /// Returns:
    ///     Vocab.
    ///
    /// Raises:
    ///     ModelError: the file is missing, truncated or no GGUF.
    ///
    /// Example:
    ///     >>> path = tokentrie.Model().path  # the tiny model inside the package
    ///     >>> tokentrie.Vocab.from_gguf(path).detokenize([1930])
    ///     ' is'
    #[staticmethod]
    fn from_gguf(py: Python<'_>, path: PathBuf) -> Result<Self> {
        Ok(Self::new(Arc::new(released(py, || read_gguf(path))?)))
    }

    /// The vocabulary of a Hugging Face tokenizer, which then tokenises all texts: every method gives its ids.
    ///
    /// Names of control tokens in plain text stay text: all tokens that are added and special, that look it
    /// ("<|...|>"), or that end a generation. Cost: O(bytes of the JSON).
    ///
    /// Args:
    ///     tokenizer: a tokenizers.Tokenizer, a fast tokenizer of transformers, or the path of a tokenizer.json;
    ///         needs the Python package tokenizers. It is copied, without truncation, padding and dropout.
    ///     eog: ids that end a generation. If None, those with a name that llama.cpp knows (llama-vocab.cpp), such
    ///         as "<|im_end|>" or "</s>", and the tokenizer's eos_token_id if it is one of transformers.
    ///     n_vocab: number of ids, where the model has more than the tokenizer; the others are unused.
    ///
    /// Returns:
    ///     Vocab.
    ///
    /// Raises:
    ///     VocabularyError: the file cannot be read, the decoder does not say what bytes a token stands for, the
    ///         library raises (its exception is the cause), or it is not installed.
    ///     OptionError: `n_vocab` is out of range.
    ///     TypeError: it is not a tokenizer.
    ///
    /// Example:
    ///     >>> from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    ///     >>> tokenizer = Tokenizer(models.BPE({"n": 0, "o": 1, "no": 2}, [("n", "o")]))
    ///     >>> tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ///     >>> tokenizer.decoder = decoders.ByteLevel()
    ///     >>> tokentrie.Vocab.from_tokenizer(tokenizer).tokenize("noon")
    ///     [2, 1, 0]
    #[staticmethod]
    #[pyo3(signature = (tokenizer, eog=None, n_vocab=None))]
    fn from_tokenizer(
        tokenizer: &Bound<'_, PyAny>,
        eog: Option<&Bound<'_, PyAny>>,
        n_vocab: Option<usize>,
    ) -> Result<Self> {
        let eog = eog.map(|eog| tokens(eog, "eog, ")).transpose()?;
        let (vocab, plain) = crate::vocab::tokenizer::hugging_face(tokenizer, eog, n_vocab)?;
        Ok(Self(Arc::new(vocab), Some(("from_tokenizer", plain))))
    }

    /// The vocabulary of a tiktoken encoding, which then tokenises all texts: every method gives its ids.
    ///
    /// Special tokens are control tokens: their names in plain text stay text. Nothing is added around a prompt.
    /// Cost: O(tokens).
    ///
    /// Args:
    ///     encoding: a tiktoken.Encoding or its name; needs the Python package tiktoken, and a name may need the
    ///         network.
    ///     eog, n_vocab: as in `from_tokenizer`; by name only special tokens end a generation.
    ///
    /// Returns:
    ///     Vocab.
    ///
    /// Raises:
    ///     VocabularyError: the encoding cannot be had, or the library is not installed.
    ///     OptionError: `n_vocab` is out of range.
    ///     TypeError: it is not an encoding.
    ///
    /// Example:
    ///     >>> import tiktoken
    ///     >>> ranks = {b"n": 0, b"o": 1, b"no": 2}
    ///     >>> encoding = tiktoken.Encoding("toy", pat_str=".+", mergeable_ranks=ranks, special_tokens={})
    ///     >>> tokentrie.Vocab.from_tiktoken(encoding).tokenize("noon")
    ///     [2, 1, 0]
    #[staticmethod]
    #[pyo3(signature = (encoding, eog=None, n_vocab=None))]
    fn from_tiktoken(
        encoding: &Bound<'_, PyAny>,
        eog: Option<&Bound<'_, PyAny>>,
        n_vocab: Option<usize>,
    ) -> Result<Self> {
        let eog = eog.map(|eog| tokens(eog, "eog, ")).transpose()?;
        let (vocab, encoding) = crate::vocab::tokenizer::tiktoken(encoding, eog, n_vocab)?;
        Ok(Self(Arc::new(vocab), Some(("from_tiktoken", encoding))))
    }

    /// A vocabulary from the bytes of its tokens. It cannot tokenise.
    ///
    /// Args:
    ///     pieces: one bytes object a token.
    ///     eog: ids that end a generation.
    ///     control: ids that are no text.
    ///
    /// Returns:
    ///     Vocab.
    ///
    /// Raises:
    ///     VocabularyError: the list does not have an id.
    ///     OptionError: the list is empty.
    ///     TypeError: a piece is not bytes.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"bc", b"</s>"], eog=[2], control=[2])
    ///     >>> vocab.detokenize([0, 1])
    ///     'abc'
    #[staticmethod]
    #[pyo3(signature = (pieces, eog=None, control=None))]
    fn from_tokens(
        pieces: &Bound<'_, PyAny>,
        eog: Option<&Bound<'_, PyAny>>,
        control: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let ids =
            |values: Option<&Bound<'_, PyAny>>, what| values.map_or(Ok(Vec::new()), |values| tokens(values, what));
        let mut read: Vec<Bound<'_, PyBytes>> = Vec::new();
        for (token, piece) in crate::exit::items(pieces)?.enumerate() {
            read.push(piece?.cast_into::<PyBytes>().map_err(|error| {
                let found = type_name(&error.into_inner());
                PyTypeError::new_err(format!("token {token}: a piece must be bytes, not {found}"))
            })?);
        }
        let pieces = read.iter().map(PyBytesMethods::as_bytes);
        let vocab = trie_text::Vocab::from_tokens(pieces, ids(eog, "eog, ")?, ids(control, "control, ")?)?;
        Ok(Self::new(Arc::new(vocab)))
    }

    /// Returns the number of tokens.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The bytes that a token stands for; a control token's are its name. Raises IndexError outside 0 … len - 1.
    fn __getitem__<'py>(&self, py: Python<'py>, token: isize) -> Result<Bound<'py, PyBytes>> {
        let piece = TokenId::try_from(token as i64).ok().and_then(|token| self.0.piece(token));
        Ok(PyBytes::new(py, piece.ok_or_else(|| self.outside(token))?))
    }

    /// Returns the kind of a token.
    ///
    /// Args:
    ///     token: its id.
    ///
    /// Returns:
    ///     "text"; "byte", one byte of a character without a token of its own; "control", no text, such as "<s>";
    ///     "unknown", for text that has no tokens; or "unused", never produced or without bytes.
    ///
    /// Raises:
    ///     IndexError: the id is outside 0 to len - 1.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"<s>"], control=[1])
    ///     >>> (vocab.kind(0), vocab.kind(1))
    ///     ('text', 'control')
    fn kind(&self, token: isize) -> Result<&'static str> {
        let kind = TokenId::try_from(token as i64).ok().and_then(|token| self.0.kind(token));
        Ok(kind.ok_or_else(|| self.outside(token))?.name())
    }

    /// list[int]: ids that end a generation, ascending.
    #[getter]
    fn eog(&self) -> Vec<u32> {
        self.0.end_of_generation().iter().map(|id| id.get()).collect()
    }

    /// list[int]: ids that are no text, ascending: control tokens and the unknown one.
    #[getter]
    fn control(&self) -> Vec<u32> {
        self.0.control().iter().map(|id| id.get()).collect()
    }

    /// list[int]: ids of the text tokens that can follow a word but not continue it, ascending: their first
    /// character is neither a letter nor a digit, an underscore or a combining mark.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Vocab.from_tokens([b"yes", b" yes", b".", b"s"])
    ///     >>> vocab.boundary_tokens
    ///     [1, 2]
    #[getter]
    fn boundary_tokens(&self, py: Python<'_>) -> Vec<u32> {
        released(py, || self.0.boundary_tokens().iter().map(|id| id.get()).collect())
    }

    /// str: SHA-256 in hexadecimal over the tokens' bytes and kinds: equal vocabularies have equal fingerprints.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> &str {
        released(py, || self.0.fingerprint())
    }

    /// int: bytes of the masks that all constraints over this vocabulary keep, and of what finds them, about.
    #[getter]
    fn mask_bytes(&self) -> usize {
        self.0.mask_memory().stats().bytes
    }

    /// int: bytes that these may be; 268,435,456 unless it is set. Where constraints would keep more, those used
    /// longest ago forget their masks, which are worked out again when they are wanted. What a constraint is made of,
    /// such as the automaton of a regular expression, does not count.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Model().vocab
    ///     >>> vocab.mask_limit = 1 << 20
    ///     >>> samplers = [tokentrie.Sampler(vocab, tokentrie.Regex("[a-z]{%d}" % n)) for n in range(1, 9)]
    ///     >>> 0 < vocab.mask_bytes <= vocab.mask_limit
    ///     True
    #[getter]
    fn mask_limit(&self) -> usize {
        self.0.mask_memory().stats().limit
    }

    #[setter(mask_limit)]
    fn set_mask_limit(&self, py: Python<'_>, bytes: usize) {
        released(py, || self.0.mask_memory().limit(bytes));
    }

    /// The ids of a text.
    ///
    /// Args:
    ///     text: a str, at most 2**30 bytes.
    ///     add_special: add what the model wants around a prompt.
    ///     parse_special: read names of control tokens in the text as those tokens; only for text that is trusted.
    ///
    /// Returns:
    ///     list[int].
    ///
    /// Raises:
    ///     VocabularyError: the vocabulary was made from bytes, a tokenizer of Python fails, or it reads the name
    ///         of a control token as that token against `parse_special`.
    ///     OptionError: the text is too long.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Model().vocab
    ///     >>> vocab.detokenize(vocab.tokenize("The sky is blue"))
    ///     'The sky is blue'
    ///     >>> len(vocab.tokenize("<|im_end|>")) > 1  # text stays text
    ///     True
    ///     >>> len(vocab.tokenize("<|im_end|>", parse_special=True))
    ///     1
    #[pyo3(signature = (text, add_special=false, parse_special=false))]
    fn tokenize(&self, py: Python<'_>, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        let ids = asked(py, Limits::NONE, || self.0.tokenize(text, add_special, parse_special))??;
        Ok(ids.into_iter().map(TokenId::get).collect())
    }

    /// The ids of a prompt made of parts; only some of them are trusted.
    ///
    /// Args:
    ///     parts: pairs of a text and whether it is trusted. Names of control tokens in trusted parts are those
    ///         tokens; in the others they stay text.
    ///     add_special: add what the model wants around a prompt.
    ///
    /// Returns:
    ///     list[int].
    ///
    /// Raises:
    ///     VocabularyError: as for `tokenize`.
    ///     OptionError: the text is too long.
    ///
    /// Example:
    ///     >>> vocab = tokentrie.Model().vocab
    ///     >>> ids = vocab.tokenize_parts([("<|im_start|>", True), ("user says <|im_end|>", False)])
    ///     >>> [vocab.kind(token) for token in ids].count("control")
    ///     1
    #[pyo3(signature = (parts, add_special=false))]
    fn tokenize_parts(&self, parts: &Bound<'_, PyAny>, add_special: bool) -> Result<Vec<u32>> {
        let parts: Vec<(String, bool)> =
            crate::exit::items(parts)?.map(|part| part?.extract()).collect::<PyResult<_>>()?;
        let parts: Vec<(&str, bool)> = parts.iter().map(|(text, trusted)| (text.as_str(), *trusted)).collect();
        Ok(self.0.tokenize_parts(&parts, add_special)?.into_iter().map(TokenId::get).collect())
    }

    /// The text of these ids; bytes that are no UTF-8 become U+FFFD.
    ///
    /// Args:
    ///     ids: a list or an integer array of one dimension.
    ///
    /// Returns:
    ///     str.
    ///
    /// Raises:
    ///     VocabularyError: the vocabulary does not have an id.
    ///
    /// Example:
    ///     >>> tokentrie.Vocab.from_tokens([b"a", b"bc"]).detokenize([0, 1])
    ///     'abc'
    fn detokenize(&self, ids: &Bound<'_, PyAny>) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.0.detokenize(&tokens(ids, "")?)?).into_owned())
    }

    /// The bytes of these ids.
    ///
    /// Args:
    ///     ids: a list or an integer array of one dimension.
    ///
    /// Returns:
    ///     bytes.
    ///
    /// Raises:
    ///     VocabularyError: the vocabulary does not have an id.
    ///
    /// Example:
    ///     >>> tokentrie.Vocab.from_tokens([b"a", b"bc"]).detokenize_bytes([0, 1])
    ///     b'abc'
    fn detokenize_bytes<'py>(&self, ids: &Bound<'py, PyAny>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(ids.py(), &self.0.detokenize(&tokens(ids, "")?)?))
    }

    /// Text tokens whose bytes begin with these.
    ///
    /// Text tokens are all but control tokens, those marked as unused, those that end a generation and those
    /// without bytes. Cost: O(len(prefix) + found · log found); the first call sorts the vocabulary, some 30 ms.
    ///
    /// Args:
    ///     prefix: bytes.
    ///
    /// Returns:
    ///     int32 [found], ascending.
    ///
    /// Example:
    ///     >>> tokentrie.Vocab.from_tokens([b"yes", b"no", b"y"]).tokens_with_prefix(b"y")
    ///     array([0, 2], dtype=int32)
    fn tokens_with_prefix<'py>(&self, py: Python<'py>, prefix: &[u8]) -> Bound<'py, PyArray1<i32>> {
        id_array(py, released(py, || self.0.tokens_with_prefix(prefix)).into_iter())
    }

    /// Text tokens, as in `tokens_with_prefix`, that these bytes begin with. Cost: O(longest token).
    ///
    /// Args:
    ///     text: bytes.
    ///
    /// Returns:
    ///     int32 [found], shortest first, equally long ones ascending.
    ///
    /// Example:
    ///     >>> tokentrie.Vocab.from_tokens([b"yes", b"no", b"y"]).prefix_tokens(b"yes, sir")
    ///     array([2, 0], dtype=int32)
    fn prefix_tokens<'py>(&self, py: Python<'py>, text: &[u8]) -> Bound<'py, PyArray1<i32>> {
        id_array(py, released(py, || self.0.prefix_tokens(text)).into_iter())
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Vocab: {} tokens>", self.0.len())
    }
}

#[cfg(feature = "llama")]
fn read_gguf(path: PathBuf) -> Result<trie_text::Vocab> {
    Ok(llama_sampler::vocab_from_gguf(path)?)
}

#[cfg(not(feature = "llama"))]
fn read_gguf(_: PathBuf) -> Result<trie_text::Vocab> {
    Err(crate::model::missing::refused("llama.cpp reads a GGUF file's vocabulary"))
}

/// A vocabulary, or just its size.
pub(crate) enum VocabArg<'py> {
    Size(usize),
    Vocab(Bound<'py, Vocab>),
}

impl VocabArg<'_> {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Size(n_vocab) => *n_vocab,
            Self::Vocab(vocab) => vocab.get().0.len(),
        }
    }

    /// Returns the vocabulary, if it is more than a size.
    pub(crate) fn core(&self) -> Option<&Arc<trie_text::Vocab>> {
        match self {
            Self::Size(_) => None,
            Self::Vocab(vocab) => Some(vocab.get().core()),
        }
    }

    pub(crate) fn end_of_generation(&self) -> &[TokenId] {
        match self {
            Self::Size(_) => &[],
            Self::Vocab(vocab) => vocab.get().0.end_of_generation(),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for VocabArg<'py> {
    type Error = Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        if let Ok(vocab) = obj.cast::<Vocab>() {
            return Ok(Self::Vocab(vocab.to_owned()));
        }
        match obj.extract::<i64>() {
            Ok(size) => usize::try_from(size).map(Self::Size).map_err(|_| size_error(&obj)),
            Err(_) if obj.is_instance_of::<PyInt>() => Err(size_error(&obj)),
            Err(_) => {
                let message = format!("vocab must be a Vocab or the vocabulary size, not {}", type_name(&obj));
                Err(PyTypeError::new_err(message).into())
            }
        }
    }
}

fn size_error(size: &Bound<'_, PyAny>) -> Error {
    Class::Vocabulary.error(format!("a vocabulary of {size} tokens: the size must be from 1 to 2147483648"))
}
