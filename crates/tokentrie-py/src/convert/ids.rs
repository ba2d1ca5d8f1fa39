//! From Python's integers, lists and arrays to token ids.

use crate::convert::gil::step;
use crate::errors::{Class, Error, Result};
use numpy::{Element, PyArray1, PyArrayDescrMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyMapping, PyString, PyTuple};
use std::fmt::Display;
use trie_core::{BuildError, LogitBias, TokenId, Trie};

/// A token id, or several.
pub(crate) enum OneOrMany {
    One(TokenId),
    Many(Vec<TokenId>),
}

/// An int32 array of these ids.
pub(crate) fn id_array(py: Python<'_>, ids: impl Iterator<Item = TokenId>) -> Bound<'_, PyArray1<i32>> {
    PyArray1::from_vec(py, ids.map(TokenId::as_i32).collect())
}

/// Reads an integer, or anything with `__index__`.
///
/// # Errors
/// `TypeError` for anything that is not an integer, `VocabularyError` for one outside 0 … 2^31−1; `place` says where it
/// stood.
pub(crate) fn token(value: &Bound<'_, PyAny>, place: impl Fn() -> String) -> Result<TokenId> {
    match value.extract::<u32>() {
        Ok(id) => TokenId::new(id).ok_or_else(|| outside(value, place)),
        Err(_) if value.call_method0("__index__").is_ok() => Err(outside(value, place)),
        Err(_) => Err(wrong_type(value, &place())),
    }
}

/// `{5: -100.0}`: what is added to the logits of tokens.
pub(crate) fn logit_bias(given: Option<&Bound<'_, PyAny>>) -> Result<LogitBias> {
    let Some(given) = given else { return Ok(LogitBias::default()) };
    let Ok(biases) = given.cast::<PyMapping>() else {
        let name = type_name(given);
        return Err(PyTypeError::new_err(format!("logit_bias must map token ids to numbers, got {name}")).into());
    };
    let mut read = Vec::new();
    for item in biases.items()?.iter() {
        let (id, bias): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let id = token(&id, || "logit_bias: ".to_owned())?;
        let number = bias.extract::<f64>().map_err(|_| {
            let (shown, name) = (shown(&bias), type_name(&bias));
            Error::from(PyTypeError::new_err(format!("logit_bias[{id}] must be a number, not {shown} of type {name}")))
        })? as f32;
        if !number.is_finite() {
            return Err(Class::Option.error(format!("logit_bias[{id}] is {number}: it must be finite")));
        }
        read.push((id, number));
    }
    Ok(LogitBias::new(read))
}

fn outside(value: &Bound<'_, PyAny>, place: impl Fn() -> String) -> Error {
    Class::Vocabulary.error(format!("{}token id {value} must be from 0 to 2147483647", place()))
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
            step()?;
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
    let Ok(iterator) = crate::exit::items(values) else { return Err(not_ids(values, place)) };
    for (position, value) in iterator.enumerate() {
        step()?;
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

pub(crate) fn is_integer(array: &Bound<'_, PyUntypedArray>) -> bool {
    matches!(array.dtype().kind(), b'i' | b'u')
}

/// Appends the entries of an integer array of any shape, in C order; `place` says where the n-th of them stands.
pub(crate) fn read_array(
    array: &Bound<'_, PyUntypedArray>,
    place: &dyn Fn(usize) -> String,
    out: &mut Vec<TokenId>,
) -> Result<()> {
    let signed = read_as::<i64>(array, place, out)? || read_as::<i32>(array, place, out)?;
    if signed || read_as::<u32>(array, place, out)? || read_as::<u64>(array, place, out)? {
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
    // Looked at first: a refused cast makes an exception.
    if !array.dtype().is_equiv_to(&T::get_dtype(array.py())) {
        return Ok(false);
    }
    let Ok(array) = array.extract::<PyReadonlyArrayDyn<'py, T>>() else { return Ok(false) };
    out.reserve(array.len());
    for (nth, &value) in array.as_array().iter().enumerate() {
        let id = TokenId::try_from(value);
        out.push(id.map_err(|_| {
            Class::Vocabulary.error(format!("{}token id {value} must be from 0 to 2147483647", place(nth)))
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

/// The ids of a two-dimensional array in C order, of 32-bit integers or of numpy's own. Copied, because other threads
/// may write to the array while the trie is built.
pub(crate) struct Table {
    tokens: Vec<TokenId>,
    width: usize,
}

impl Table {
    /// `None` for anything else, or if one of them is not a token id: reading them one by one names it.
    pub(crate) fn read(rows: &Bound<'_, PyAny>) -> Option<Self> {
        let array = rows.cast::<PyUntypedArray>().ok().filter(|array| array.ndim() == 2 && array.is_c_contiguous())?;
        let (py, dtype, width) = (array.py(), array.dtype(), array.shape()[1]);
        // If one id is out of range, so are the bits of all put together: that is a loop without branches. The bits of
        // an unsigned number that is not an id are those of a negative one.
        let viewed = |dtype: &str| array.call_method1("view", (dtype,)).ok();
        let unsigned = dtype.is_equiv_to(&u64::get_dtype(py));
        let ids: Vec<i32> = if unsigned || dtype.is_equiv_to(&i64::get_dtype(py)) {
            let signed = if unsigned { Some(viewed("int64")?) } else { None };
            let ids = signed.as_ref().unwrap_or(array.as_any()).extract::<PyReadonlyArrayDyn<'_, i64>>().ok()?;
            let ids = ids.as_slice().ok()?;
            i32::try_from(ids.iter().fold(0, |all, id| all | id)).ok().filter(|&all| all >= 0)?;
            ids.iter().map(|&id| id as i32).collect()
        } else {
            let unsigned = dtype.is_equiv_to(&u32::get_dtype(py));
            let signed = if unsigned { Some(viewed("int32")?) } else { None };
            let ids = signed.as_ref().unwrap_or(array.as_any()).extract::<PyReadonlyArrayDyn<'_, i32>>().ok()?;
            let ids = ids.as_slice().ok()?.to_vec();
            (ids.iter().fold(0, |all, id| all | id) >= 0).then_some(ids)?
        };
        (!ids.is_empty()).then(|| Self { tokens: bytemuck::cast_vec(ids), width })
    }

    /// # Errors
    /// `VocabularyError` for an id that a vocabulary of this size does not have, naming row and position.
    pub(crate) fn check_inside(&self, n_vocab: usize) -> Result<()> {
        let Some(nth) = self.tokens.iter().position(|token| token.index() >= n_vocab) else { return Ok(()) };
        Err(outside_vocabulary(nth / self.width, nth % self.width, self.tokens[nth], n_vocab))
    }

    /// # Errors
    /// As [`trie_core::TrieBuilder::build`].
    pub(crate) fn build(&self) -> std::result::Result<Trie, BuildError> {
        trie_core::FlatSequences::even(&self.tokens, self.width).ok_or(BuildError::NoLeaves)?.build()
    }
}

pub(crate) fn outside_vocabulary(row: usize, position: usize, token: TokenId, n_vocab: usize) -> Error {
    Class::Vocabulary.error(format!(
        "row {row}, position {position}: token id {token} is outside the vocabulary of {n_vocab} tokens"
    ))
}
