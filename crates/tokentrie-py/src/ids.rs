//! From Python's integers, lists and arrays to token ids.

use crate::errors::{Class, Error, Result};
use numpy::{Element, PyArrayDescrMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyString, PyTuple};
use std::fmt::Display;
use trie_core::{BuildError, TokenId, TrieBuilder};

/// A token id, or several.
pub(crate) enum OneOrMany {
    One(TokenId),
    Many(Vec<TokenId>),
}

/// Reads an integer, or anything with `__index__`.
///
/// # Errors
/// `TypeError` for what is no integer, `VocabularyError` for one outside 0 … 2^31−1; `place` says where it stood.
pub(crate) fn token(value: &Bound<'_, PyAny>, place: impl Fn() -> String) -> Result<TokenId> {
    match value.extract::<u32>() {
        Ok(id) => TokenId::new(id).ok_or_else(|| outside(value, place)),
        Err(_) if value.call_method0("__index__").is_ok() => Err(outside(value, place)),
        Err(_) => Err(wrong_type(value, &place())),
    }
}

fn outside(value: &Bound<'_, PyAny>, place: impl Fn() -> String) -> Error {
    Class::Vocabulary.error(format!("{}token id {value} is outside 0..=2147483647", place()))
}

fn wrong_type(value: &Bound<'_, PyAny>, place: &str) -> Error {
    let (shown, name) = (shown(value), type_name(value));
    PyTypeError::new_err(format!("{place}a token id must be an integer, not {shown} of type {name}")).into()
}

/// The start of what Python shows for a value.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "<?>".to_owned(), |text| text.to_string_lossy().chars().take(60).collect())
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Reads a list, a one-dimensional integer array, or any other iterable of integers.
///
/// # Errors
/// As [`token`], naming the position.
pub(crate) fn tokens(values: &Bound<'_, PyAny>, place: &str) -> Result<Vec<TokenId>> {
    let mut out = Vec::new();
    extend(values, place, &mut out)?;
    Ok(out)
}

/// Appends what [`tokens`] would return.
pub(crate) fn extend(values: &Bound<'_, PyAny>, place: &str, out: &mut Vec<TokenId>) -> Result<()> {
    let at = |position: usize| format!("{place}position {position}: ");
    if let Ok(list) = values.cast::<PyList>() {
        out.reserve(list.len());
        for (position, value) in list.iter().enumerate() {
            out.push(token(&value, || at(position))?);
        }
        return Ok(());
    }
    if let Ok(tuple) = values.cast::<PyTuple>() {
        for (position, value) in tuple.iter_borrowed().enumerate() {
            out.push(token(&value, || at(position))?);
        }
        return Ok(());
    }
    if let Ok(array) = values.cast::<PyUntypedArray>() {
        return extend_from_array(array, place, out);
    }
    // Text and bytes are iterables too, but never meant as ids.
    let text = values.is_instance_of::<PyString>()
        || values.is_instance_of::<PyBytes>()
        || values.is_instance_of::<PyByteArray>();
    if text {
        return Err(not_ids(values, place));
    }
    let Ok(iterator) = values.try_iter() else { return Err(not_ids(values, place)) };
    for (position, value) in iterator.enumerate() {
        out.push(token(&value?, || at(position))?);
    }
    Ok(())
}

fn not_ids(values: &Bound<'_, PyAny>, place: &str) -> Error {
    let (shown, name) = (shown(values), type_name(values));
    let message =
        format!("{place}token ids must be a list or a one-dimensional integer array, not {shown} of type {name}");
    PyTypeError::new_err(message).into()
}

fn extend_from_array(array: &Bound<'_, PyUntypedArray>, place: &str, out: &mut Vec<TokenId>) -> Result<()> {
    if array.ndim() != 1 || !is_integer(array) {
        let (dtype, shape) = (array.dtype(), array.shape());
        let message = format!(
            "{place}token ids must be a one-dimensional integer array, not one of dtype {dtype} and shape {shape:?}"
        );
        return Err(PyTypeError::new_err(message).into());
    }
    read_array(array, &|position| format!("{place}position {position}: "), out)
}

fn is_integer(array: &Bound<'_, PyUntypedArray>) -> bool {
    matches!(array.dtype().kind(), b'i' | b'u')
}

/// Appends the entries of an integer array of any shape, in C order; `place` says where the n-th of them stands.
fn read_array(
    array: &Bound<'_, PyUntypedArray>,
    place: &dyn Fn(usize) -> String,
    out: &mut Vec<TokenId>,
) -> Result<()> {
    if read_as::<i64>(array, place, out)? || read_as::<i32>(array, place, out)? || read_as::<u32>(array, place, out)? {
        return Ok(());
    }
    // The rarer integer types, in 64 bits of this machine's byte order.
    let dtype = if array.dtype().kind() == b'u' { "uint64" } else { "int64" };
    let wide = array.call_method1("astype", (dtype,))?.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
    if read_as::<i64>(&wide, place, out)? || read_as::<u64>(&wide, place, out)? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!("token ids of dtype {} cannot be read", array.dtype())).into())
}

fn read_as<'py, T>(
    array: &Bound<'py, PyUntypedArray>,
    place: &dyn Fn(usize) -> String,
    out: &mut Vec<TokenId>,
) -> Result<bool>
where
    T: Element + Copy + Display,
    TokenId: TryFrom<T>,
{
    let Ok(array) = array.extract::<PyReadonlyArrayDyn<'py, T>>() else { return Ok(false) };
    out.reserve(array.len());
    for (nth, &value) in array.as_array().iter().enumerate() {
        let id = TokenId::try_from(value);
        out.push(id.map_err(|_| {
            Class::Vocabulary.error(format!("{}token id {value} is outside 0..=2147483647", place(nth)))
        })?);
    }
    Ok(true)
}

/// Reads an integer or an iterable of integers.
pub(crate) fn one_or_many(value: &Bound<'_, PyAny>) -> Result<OneOrMany> {
    if value.is_instance_of::<PyInt>() || value.hasattr("__index__")? && !value.hasattr("__len__")? {
        return token(value, String::new).map(OneOrMany::One);
    }
    // A numpy integer has `__index__` and no length; an array has both.
    tokens(value, "").map(OneOrMany::Many)
}

/// The rows of [`crate::trie::Trie`]'s `from_sequences`, in the order of the input.
pub(crate) enum Rows {
    /// Rows of one length, which is not 0.
    Even { tokens: Vec<TokenId>, width: usize },
    /// Anything else.
    Ragged { tokens: Vec<TokenId>, ends: Vec<usize> },
}

/// [`Rows`] without Python, for threads that do not hold the GIL.
#[derive(Clone, Copy)]
pub(crate) enum RowSlices<'a> {
    Even { tokens: &'a [TokenId], width: usize },
    Ragged { tokens: &'a [TokenId], ends: &'a [usize] },
}

impl Rows {
    /// Reads a two-dimensional integer array, or any iterable of what [`tokens`] reads.
    ///
    /// # Errors
    /// As [`token`], naming row and position.
    pub(crate) fn read(rows: &Bound<'_, PyAny>) -> Result<Self> {
        let (mut tokens, mut ends) = (Vec::new(), Vec::new());
        match rows.cast::<PyUntypedArray>() {
            Ok(array) if array.ndim() == 2 && is_integer(array) => {
                let (rows, width) = (array.shape()[0], array.shape()[1]);
                if let Some(tokens) = copied(array) {
                    return Ok(Self::Even { tokens, width });
                }
                let place = |nth| format!("row {}, position {}: ", nth / width, nth % width);
                read_array(array, &place, &mut tokens)?;
                ends.extend((1..=rows).map(|row| row * width));
            }
            Ok(array) if array.dtype().kind() != b'O' => {
                let (dtype, shape) = (array.dtype(), array.shape());
                let message = format!(
                    "sequences must be lists or a two-dimensional integer array, not one of dtype {dtype} and shape {shape:?}"
                );
                return Err(PyTypeError::new_err(message).into());
            }
            _ => {
                for (row, sequence) in rows.try_iter()?.enumerate() {
                    extend(&sequence?, &format!("row {row}, "), &mut tokens)?;
                    ends.push(tokens.len());
                }
            }
        }
        Ok(Self::Ragged { tokens, ends })
    }

    pub(crate) fn slices(&self) -> RowSlices<'_> {
        match self {
            Self::Even { tokens, width } => RowSlices::Even { tokens, width: *width },
            Self::Ragged { tokens, ends } => RowSlices::Ragged { tokens, ends },
        }
    }
}

/// The ids of an array of 32-bit integers in C order, if all of them are token ids. Copied, because other threads may write to the
/// array while the trie is built.
fn copied(array: &Bound<'_, PyUntypedArray>) -> Option<Vec<TokenId>> {
    let array = array.extract::<PyReadonlyArrayDyn<'_, i32>>().ok()?;
    // A slice is had of column order too, but not in the order of the rows.
    let ids = array.as_slice().ok().filter(|ids| array.is_c_contiguous() && !ids.is_empty())?.to_vec();
    // The sign bit of all of them together: a loop without branches. A bad id is found again and named by the slow path.
    let usable = ids.iter().fold(0, |all, id| all | id) >= 0;
    usable.then(|| bytemuck::cast_vec(ids))
}

impl<'a> RowSlices<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Even { tokens, width } => tokens.len() / width,
            Self::Ragged { ends, .. } => ends.len(),
        }
    }

    fn tokens(self) -> &'a [TokenId] {
        match self {
            Self::Even { tokens, .. } | Self::Ragged { tokens, .. } => tokens,
        }
    }

    /// Row and position of the n-th of all tokens.
    fn place(self, nth: usize) -> (usize, usize) {
        match self {
            Self::Even { width, .. } => (nth / width, nth % width),
            Self::Ragged { ends, .. } => {
                let row = ends.partition_point(|&end| end <= nth);
                (row, nth - row.checked_sub(1).map_or(0, |before| ends[before]))
            }
        }
    }

    /// # Errors
    /// `VocabularyError` for an id that a vocabulary of this size does not have, naming row and position.
    pub(crate) fn check_inside(self, n_vocab: usize) -> Result<()> {
        let Some(nth) = self.tokens().iter().position(|token| token.index() >= n_vocab) else { return Ok(()) };
        let (token, (row, position)) = (self.tokens()[nth], self.place(nth));
        Err(Class::Vocabulary.error(format!(
            "row {row}, position {position}: token id {token} is outside the vocabulary of {n_vocab} tokens"
        )))
    }

    /// # Errors
    /// As [`trie_core::TrieBuilder::build`].
    pub(crate) fn build(self, names: Option<&[String]>) -> std::result::Result<trie_core::Trie, BuildError> {
        let rows = match self {
            Self::Even { tokens, width } => trie_core::Rows::even(tokens, width),
            Self::Ragged { tokens, ends } => trie_core::Rows::ragged(tokens, ends),
        };
        match (rows, names) {
            (Some(rows), None) => rows.build(),
            (_, names) => self.builder(names).build(),
        }
    }

    fn builder(self, names: Option<&[String]>) -> TrieBuilder {
        let tokens = self.tokens();
        let mut builder = TrieBuilder::with_capacity(self.len(), tokens.len());
        let mut begin = 0;
        for row in 0..self.len() {
            let end = match self {
                Self::Even { width, .. } => begin + width,
                Self::Ragged { ends, .. } => ends[row],
            };
            builder.push(names.and_then(|names| names.get(row)).map(String::as_str), &tokens[begin..end]);
            begin = end;
        }
        builder
    }
}
