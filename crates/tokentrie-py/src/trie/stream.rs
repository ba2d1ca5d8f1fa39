//! Sets whose rows come one after the other, so that they are never in memory as Python objects together.

use crate::convert::gil::released;
use crate::convert::ids::{extend, is_integer, outside_vocabulary, read_array};
use crate::convert::strings::{column, text};
use crate::errors::{Class, Error, Result};
use crate::exit::{Items, items};
use crate::trie::file::Origin;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyString};
use std::path::PathBuf;
use trie_core::{TokenId, Trie, VocabularyId};
use trie_formats::{ExternalBuilder, ExternalError, FileOptions};
use trie_text::{TextReport, TextStream, Texts, Vocab};

/// Tokens, or bytes of text, that are taken from Python before they are handed on without the GIL.
const PORTION: usize = 1 << 18;

/// Destination of a set, and the limits on making it.
pub(crate) struct Target<'v> {
    /// Bytes of rows to hold at once.
    pub(crate) memory: Option<usize>,
    /// The file to write instead of making a set in memory.
    pub(crate) path: Option<PathBuf>,
    /// Vocabulary of the file.
    pub(crate) vocabulary: Option<VocabularyId<'v>>,
}

impl Target<'_> {
    /// Returns whether the set is just to be made.
    pub(crate) fn is_plain(&self) -> bool {
        self.memory.is_none() && self.path.is_none()
    }

    fn builder(&self) -> ExternalBuilder {
        ExternalBuilder::new(self.memory.unwrap_or(usize::MAX))
    }
}

/// A set, and the file that it is in.
pub(crate) type Made = (Trie, Option<Origin>);

/// The set of these sequences; `names` gives each a name.
///
/// # Errors
/// As `from_sequences` in Python.
pub(crate) fn sequences(
    rows: &Bound<'_, PyAny>,
    names: Option<&Bound<'_, PyAny>>,
    n_vocab: Option<usize>,
    target: Target<'_>,
) -> Result<Made> {
    let py = rows.py();
    let mut builder = target.builder();
    let mut names = names.map(|names| Names::new(names, rows)).transpose()?;
    let mut portion = Portion::default();
    for_each_part(rows, |part| {
        portion.read(part, builder.len())?;
        if let Some(names) = &mut names {
            names.take(portion.ends.len() - portion.names.len(), &mut portion.names)?;
        }
        if portion.tokens.len() >= PORTION { portion.hand_on(py, n_vocab, &mut builder) } else { Ok(()) }
    })?;
    portion.hand_on(py, n_vocab, &mut builder)?;
    if let Some(names) = names {
        names.finish()?;
    }
    let Target { path, vocabulary, .. } = target;
    let made = released(py, move || match path {
        None => Ok((builder.finish()?, None)),
        Some(path) => {
            builder.finish_to(&path, vocabulary)?;
            Ok::<Made, ExternalError>(Origin::open(&path, FileOptions::default())?)
        }
    });
    Ok(made?)
}

/// The set of these texts. They cannot be healed, and have one tokenisation.
///
/// # Errors
/// As `from_strings` in Python.
pub(crate) fn texts(
    vocab: &Vocab,
    values: &Bound<'_, PyAny>,
    texts: &Texts<'_>,
    target: Target<'_>,
) -> Result<(Made, TextReport)> {
    let py = values.py();
    let mut stream = TextStream::new(vocab, texts, target.builder())?;
    let (mut portion, mut bytes): (Vec<String>, usize) = (Vec::new(), 0);
    for (row, value) in items(&column("values", values)?)?.enumerate() {
        let value = text(&value?, || format!("value {row}"))?;
        bytes += value.len() + size_of::<String>();
        portion.push(value);
        if bytes >= 4 * PORTION {
            released(py, || stream.push(&portion))?;
            py.check_signals()?;
            portion.clear();
            bytes = 0;
        }
    }
    let Target { path, vocabulary, .. } = target;
    let made = released(py, move || {
        stream.push(&portion)?;
        drop(portion);
        match path {
            None => stream.finish().map(|(trie, report)| ((trie, None), report)),
            Some(path) => {
                let report = stream.finish_to(&path, vocabulary)?;
                Ok((Origin::open(&path, FileOptions::default()).map_err(ExternalError::from)?, report))
            }
        }
    });
    Ok(made?)
}

/// Visits the rows of an iterable, and portions of two-dimensional integer arrays: of `rows` itself, or among its
/// items.
fn for_each_part(rows: &Bound<'_, PyAny>, mut visit: impl FnMut(&Bound<'_, PyAny>) -> Result<()>) -> Result<()> {
    if let Ok(array) = rows.cast::<PyUntypedArray>()
        && array.dtype().kind() != b'O'
    {
        if array.ndim() == 2 && is_integer(array) {
            return portions(array, &mut visit);
        }
        let (dtype, shape) = (array.dtype(), array.shape());
        let message = format!(
            "sequences must be lists or a two-dimensional integer array, not one of dtype {dtype} and shape {shape:?}"
        );
        return Err(PyTypeError::new_err(message).into());
    }
    for row in items(&column("sequences", rows)?)? {
        let row = row?;
        match table(&row) {
            Some(array) => portions(array, &mut visit)?,
            None => visit(&row)?,
        }
    }
    Ok(())
}

fn table<'a, 'py>(part: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyUntypedArray>> {
    part.cast::<PyUntypedArray>().ok().filter(|array| array.ndim() == 2 && is_integer(array))
}

fn portions(array: &Bound<'_, PyUntypedArray>, visit: &mut impl FnMut(&Bound<'_, PyAny>) -> Result<()>) -> Result<()> {
    let (rows, width) = (array.shape()[0], array.shape()[1]);
    let step = (PORTION / width.max(1)).max(1);
    for begin in (0..rows).step_by(step) {
        let part = PySlice::new(array.py(), begin as isize, (begin + step).min(rows) as isize, 1);
        visit(&array.get_item(part)?)?;
    }
    Ok(())
}

/// Rows that were read from Python and are not yet in the builder.
#[derive(Default)]
struct Portion {
    tokens: Vec<TokenId>,
    ends: Vec<usize>,
    /// As many as rows, or none.
    names: Vec<String>,
}

impl Portion {
    /// Reads a row, or several from a two-dimensional array; `before` rows are in the builder.
    fn read(&mut self, part: &Bound<'_, PyAny>, before: usize) -> Result<()> {
        let first = before + self.ends.len();
        let Some(array) = table(part) else {
            extend(part, &format!("row {first}, "), &mut self.tokens)?;
            self.ends.push(self.tokens.len());
            return Ok(());
        };
        let (rows, width) = (array.shape()[0], array.shape()[1]);
        let place = |nth| format!("row {}, position {}: ", first + nth / width, nth % width);
        let begin = self.tokens.len();
        read_array(array, &place, &mut self.tokens)?;
        self.ends.extend((1..=rows).map(|row| begin + row * width));
        Ok(())
    }

    fn hand_on(&mut self, py: Python<'_>, n_vocab: Option<usize>, builder: &mut ExternalBuilder) -> Result<()> {
        released(py, || self.push(n_vocab.unwrap_or(usize::MAX), builder))?;
        self.tokens.clear();
        self.ends.clear();
        self.names.clear();
        Ok(py.check_signals()?)
    }

    fn push(&self, n_vocab: usize, builder: &mut ExternalBuilder) -> Result<()> {
        let mut begin = 0;
        for (nth, &end) in self.ends.iter().enumerate() {
            let tokens = &self.tokens[begin..end];
            begin = end;
            if let Some(position) = tokens.iter().position(|token| token.index() >= n_vocab) {
                let (row, token) = (builder.len(), tokens[position]);
                return Err(outside_vocabulary(row, position, token, n_vocab));
            }
            builder.push(self.names.get(nth).map(String::as_str), tokens)?;
        }
        Ok(())
    }
}

/// Names that come along with the rows.
struct Names<'a, 'py> {
    all: &'a Bound<'py, PyAny>,
    rows: &'a Bound<'py, PyAny>,
    left: Items<'py>,
    taken: usize,
}

impl<'a, 'py> Names<'a, 'py> {
    fn new(names: &'a Bound<'py, PyAny>, rows: &'a Bound<'py, PyAny>) -> Result<Self> {
        if names.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("names must be a list of str, not one str").into());
        }
        Ok(Self { all: names, rows, left: items(&column("names", names)?)?, taken: 0 })
    }

    fn take(&mut self, count: usize, out: &mut Vec<String>) -> Result<()> {
        for _ in 0..count {
            let Some(name) = self.left.next() else { return Err(self.mismatch(self.taken, self.taken + 1)) };
            out.push(text(&name?, || format!("name {}", self.taken))?);
            self.taken += 1;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        match self.left.next() {
            Some(_) => Err(self.mismatch(self.taken + 1, self.taken)),
            None => Ok(()),
        }
    }

    /// At least so many names and rows; how many, where they say it themselves.
    fn mismatch(&self, names: usize, rows: usize) -> Error {
        let (names, rows) = (self.all.len().unwrap_or(names), self.rows.len().unwrap_or(rows));
        Class::Trie.error(format!("{names} names for {rows} sequences: give one each, or None"))
    }
}
