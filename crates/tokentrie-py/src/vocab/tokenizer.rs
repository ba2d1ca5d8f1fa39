//! The Python libraries tokenizers and tiktoken as tokenizers of a vocabulary.

use crate::convert::gil::released;
use crate::convert::ids::type_name;
use crate::errors::{Class, Result};
use crate::exit::{attached_or_fail, called, items, module};
use pyo3::exceptions::{PyImportError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trie_core::TokenId;
use trie_text::{TokenKind, Tokenizer, TokenizerError, TokenizerJson, Vocab, end_of_generation_by_name};

/// A copy of a `tokenizers.Tokenizer`, because the caller's may be changed.
struct HuggingFace {
    /// Reads names of control tokens as text.
    plain: Py<PyAny>,
    /// Reads them as those tokens. Made when it is needed.
    parsing: PyOnceLock<Py<PyAny>>,
}

impl std::fmt::Debug for HuggingFace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HuggingFace").field(&self.plain).finish()
    }
}

/// A `tiktoken.Encoding`, which does not change.
#[derive(Debug)]
struct Tiktoken(Py<PyAny>);

/// The tokenizer of a model that another package has loaded: an object with
/// `tokenize(text, add_special, parse_special)` and `detokenize(ids)`.
#[derive(Debug)]
struct Host(Py<PyAny>);

type Row = Result<Vec<TokenId>, TokenizerError>;
type Rows = Result<Vec<Vec<TokenId>>, TokenizerError>;

/// Returns the only row.
fn only(rows: Rows) -> Row {
    let gave = |rows: Vec<_>| TokenizerError::from(format!("it gave tokens of {} texts for 1", rows.len()));
    <[_; 1]>::try_from(rows?).map(|[row]| row).map_err(gave)
}

impl Tokenizer for HuggingFace {
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Row {
        only(self.tokenize_batch(&[text], add_special, parse_special))
    }

    fn tokenize_batch(&self, texts: &[&str], add_special: bool, parse_special: bool) -> Rows {
        attached_or_fail(|py| {
            let tokenizer = if parse_special {
                self.parsing.get_or_try_init(py, || copy(&self.plain.bind(py).call_method0("to_str")?, false))?
            } else {
                &self.plain
            };
            let settings = [("add_special_tokens", add_special)].into_py_dict(py)?;
            let found =
                called(&tokenizer.bind(py).getattr("encode_batch")?, &(texts,).into_pyobject(py)?, Some(&settings))?;
            items(&found)?.map(|row| ids(&row?.getattr("ids")?)).collect()
        })
    }
}

impl Tokenizer for Tiktoken {
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Row {
        only(self.tokenize_batch(&[text], add_special, parse_special))
    }

    /// There is nothing to add around a text.
    fn tokenize_batch(&self, texts: &[&str], _add_special: bool, parse_special: bool) -> Rows {
        attached_or_fail(|py| {
            let encoding = self.0.bind(py);
            if parse_special {
                let settings = [("allowed_special", "all")].into_py_dict(py)?;
                let encode = encoding.getattr("encode")?;
                let encode = |text| ids(&called(&encode, &(text,).into_pyobject(py)?, Some(&settings))?);
                return texts.iter().map(encode).collect();
            }
            // Its batches are made by Python threads: for short texts they take several times as long as calls.
            let encode = encoding.getattr("encode_ordinary")?;
            texts.iter().map(|text| ids(&called(&encode, &(text,).into_pyobject(py)?, None)?)).collect()
        })
    }
}

impl Tokenizer for Host {
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Row {
        attached_or_fail(|py| {
            let tokenize = self.0.bind(py).getattr("tokenize")?;
            ids(&called(&tokenize, &(text, add_special, parse_special).into_pyobject(py)?, None)?)
        })
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Option<Vec<u8>> {
        let joined = |py: Python<'_>| -> Result<Vec<u8>, TokenizerError> {
            let ids: Vec<u32> = tokens.iter().map(|token| token.get()).collect();
            let detokenize = self.0.bind(py).getattr("detokenize")?;
            Ok(called(&detokenize, &(ids,).into_pyobject(py)?, None)?.extract()?)
        };
        // What it fails to join is joined from the tokens' bytes, and refused if that is not the text.
        attached_or_fail(joined).ok()
    }
}

fn ids(tokens: &Bound<'_, PyAny>) -> Result<Vec<TokenId>, TokenizerError> {
    let id = |token| TokenId::new(token).ok_or_else(|| format!("it gave the token id {token}").into());
    tokens.extract::<Vec<u32>>()?.into_iter().map(id).collect()
}

/// A `tokenizers.Tokenizer` of this JSON.
fn copy(json: &Bound<'_, PyAny>, plain: bool) -> PyResult<Py<PyAny>> {
    let tokenizer = module(json.py(), "tokenizers")?.getattr("Tokenizer")?.call_method1("from_str", (json,))?;
    // Versions before 0.15.1 have no such attribute, and cannot have one set.
    tokenizer.setattr("encode_special_tokens", plain)?;
    Ok(tokenizer.unbind())
}

/// A vocabulary, and the object that makes the same again.
pub(crate) type Made = (Vocab, Py<PyAny>);

/// The vocabulary of a `tokenizers.Tokenizer`, of what has one as its `backend_tokenizer`, or of a file.
///
/// # Errors
/// `TypeError` for anything else; a class of ours for what cannot be read or used, with what the library raised as its
/// cause.
pub(crate) fn hugging_face(
    source: &Bound<'_, PyAny>,
    eog: Option<Vec<TokenId>>,
    n_vocab: Option<usize>,
) -> Result<Made> {
    let py = source.py();
    let backend = source.getattr_opt("backend_tokenizer")?.filter(|backend| !backend.is_none());
    let (text, place) = json(backend.as_ref().unwrap_or(source))?;
    let read = released(py, || TokenizerJson::read(&text));
    let read = read.map_err(|error| Class::Vocabulary.error(format!("{place}: {error}")))?;
    let json = PyString::new(py, read.plain.as_deref().unwrap_or(&text)).into_any();
    let plain = copy(&json, true).map_err(failed(py, &place, "tokenizers"))?;
    for (name, token) in &read.added {
        let found: Option<u32> = plain.bind(py).call_method1("token_to_id", (name,))?.extract()?;
        if found != Some(token.get()) {
            let found = found.map_or_else(|| "None".to_owned(), |id| id.to_string());
            let message = format!("{place}: the token {name:?} has id {token}, but tokenizers gives it {found}");
            return Err(Class::Vocabulary.error(message));
        }
    }
    let mut end_of_generation = read.end_of_generation;
    if backend.is_some() {
        // What transformers knows from other files beside the tokenizer's.
        let eos: Option<u32> = source.getattr_opt("eos_token_id")?.and_then(|token| token.extract().ok());
        end_of_generation.extend(eos.and_then(TokenId::new));
    }
    let tokenizer = HuggingFace { plain: plain.clone_ref(py), parsing: PyOnceLock::new() };
    let vocab = vocab(py, read.tokens, eog.unwrap_or(end_of_generation), n_vocab, Arc::new(tokenizer))?;
    Ok((vocab, plain))
}

/// The JSON of a tokenizer or of a file, and what to call it in messages.
fn json(source: &Bound<'_, PyAny>) -> Result<(String, String)> {
    let place = type_name(source);
    if source.hasattr("to_str")? && source.hasattr("encode_batch")? {
        let text = source.call_method0("to_str").map_err(failed(source.py(), &place, "tokenizers"))?;
        return Ok((text.extract()?, place));
    }
    let Ok(path) = source.extract::<PathBuf>() else {
        let message = format!(
            "a tokenizer must be a tokenizers.Tokenizer, a fast tokenizer of transformers or a path to a \
             tokenizer.json, not {place}"
        );
        return Err(PyTypeError::new_err(message).into());
    };
    let place = path.display().to_string();
    let text = released(source.py(), || read_file(&path));
    let text = text.map_err(|error| Class::Vocabulary.error(format!("cannot read {place}: {error}")))?;
    Ok((text, place))
}

/// The text of a file. Opening a pipe waits for a writer, and a device may never end.
fn read_file(path: &Path) -> std::io::Result<String> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is a pipe or a device, not a file"));
    }
    std::fs::read_to_string(path)
}

/// The vocabulary of a `tiktoken.Encoding`, or of the one with this name.
///
/// # Errors
/// As [`hugging_face`].
pub(crate) fn tiktoken(source: &Bound<'_, PyAny>, eog: Option<Vec<TokenId>>, n_vocab: Option<usize>) -> Result<Made> {
    let py = source.py();
    let encoding = match source.cast::<PyString>() {
        Ok(name) => {
            let load = || module(py, "tiktoken")?.call_method1("get_encoding", (name,));
            load().map_err(failed(py, &format!("the encoding {:?}", name.to_string_lossy()), "tiktoken"))?
        }
        Err(_) if source.hasattr("encode_ordinary")? => source.clone(),
        Err(_) => {
            let found = type_name(source);
            let message = format!("an encoding must be a tiktoken.Encoding or its name, not {found}");
            return Err(PyTypeError::new_err(message).into());
        }
    };
    let size: u32 = encoding.getattr("n_vocab")?.extract()?;
    check_size(size as usize, 1)?;
    let mut tokens = Vec::new();
    for id in 0..size {
        tokens.push(match encoding.call_method1("decode_single_token_bytes", (id,)) {
            Ok(bytes) => (bytes.extract::<Vec<u8>>()?, TokenKind::Text),
            Err(error) if error.is_instance_of::<PyKeyError>(py) => (Vec::new(), TokenKind::Unused),
            Err(error) => return Err(error.into()),
        });
    }
    let mut names = Vec::new();
    for name in encoding.getattr("special_tokens_set")?.try_iter()? {
        let name: String = name?.extract()?;
        let id: u32 = encoding.call_method1("encode_single_token", (&name,))?.extract()?;
        if let (Some(token), Some((_, kind))) = (TokenId::new(id), tokens.get_mut(id as usize)) {
            *kind = TokenKind::Control;
            names.push((name, token));
        }
    }
    let known = || end_of_generation_by_name(names.iter().map(|(name, token)| (name.as_str(), *token)));
    let tokenizer = Arc::new(Tiktoken(encoding.clone().unbind()));
    let vocab = vocab(py, tokens, eog.unwrap_or_else(known), n_vocab, tokenizer)?;
    Ok((vocab, encoding.unbind()))
}

/// The vocabulary of a model that another package has loaded: bytes and kind of every token, ids that end a generation,
/// and what tokenises.
///
/// Raises `VocabularyError` for ids outside the list, `OptionError` for an empty list, `ValueError` for another kind.
#[pyfunction]
#[pyo3(name = "_host_vocab")]
pub(crate) fn host_vocab(
    tokens: Vec<(Vec<u8>, String)>,
    eog: Vec<u32>,
    tokenizer: &Bound<'_, PyAny>,
) -> Result<crate::vocab::Vocab> {
    let kind = |name: &str| {
        let known =
            [TokenKind::Text, TokenKind::Byte, TokenKind::Control, TokenKind::Unknown, TokenKind::Unused].into_iter();
        let mut known = known.filter(|kind| kind.name() == name);
        known.next().ok_or_else(|| PyValueError::new_err(format!("unknown kind of token {name:?}")))
    };
    let tokens = tokens.into_iter().map(|(piece, name)| Ok((piece, kind(&name)?))).collect::<PyResult<Vec<_>>>()?;
    let eog = eog.into_iter().filter_map(TokenId::new).collect();
    let made = vocab(tokenizer.py(), tokens, eog, None, Arc::new(Host(tokenizer.clone().unbind())))?;
    Ok(crate::vocab::Vocab::new(Arc::new(made)))
}

fn check_size(size: usize, least: usize) -> Result<()> {
    let most = TokenizerJson::MAX_TOKENS as usize;
    if (least..=most).contains(&size) {
        return Ok(());
    }
    Err(Class::Option.error(format!("n_vocab is {size}: it must be from {least} to {most}")))
}

/// With unused ids at the end up to the size that was asked for.
fn vocab(
    py: Python<'_>,
    mut tokens: Vec<(Vec<u8>, TokenKind)>,
    eog: Vec<TokenId>,
    n_vocab: Option<usize>,
    tokenizer: Arc<dyn Tokenizer>,
) -> Result<Vocab> {
    let size = n_vocab.unwrap_or(tokens.len());
    check_size(size, tokens.len())?;
    tokens.resize(size, (Vec::new(), TokenKind::Unused));
    Ok(released(py, || Vocab::new(tokens, eog, Some(tokenizer)))?)
}

/// Converts an exception of a library to one of ours that names the place. A library that is missing is named.
fn failed(py: Python<'_>, place: &str, library: &str) -> impl Fn(PyErr) -> PyErr {
    move |error| {
        let message = if error.is_instance_of::<PyImportError>(py) {
            format!("{place}: this needs the Python package {library}: pip install {library}")
        } else {
            format!("{place}: {library}: {error}")
        };
        let ours = PyErr::from(Class::Vocabulary.error(message));
        ours.set_cause(py, Some(error));
        ours
    }
}
