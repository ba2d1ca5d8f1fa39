//! The one place that checks arrays: type, shape, order and leave to write, before anything is read or written.
//!
//! Leave to write lasts for one call and is registered with rust-numpy, so two extensions never write the same row at
//! once. Reading one row is not registered, which would take longer than choosing a token; reading many is.

mod tables;

pub(crate) use tables::{Logits, LogitsMut, Words, on_cpu, over_logits, tensor_as_array};

use crate::convert::ids::type_name;
use crate::errors::{Error, Result};
use crate::exit::module;
use numpy::ndarray::aview1;
use numpy::{
    Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadwriteArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

/// Purpose of an array, and its required type.
pub(crate) struct Wanted {
    what: &'static str,
    dtype: &'static str,
    row: &'static str,
}

/// Rows of logits, as float32.
pub(crate) const LOGITS: Wanted = Wanted { what: "logits", dtype: "float32", row: "[V]" };
/// Rows of mask words.
pub(crate) const WORDS: Wanted = Wanted { what: "a bit mask", dtype: "int32", row: "[ceil(V/32)]" };

/// One row to read: a float32 array `[V]`, dense and aligned. A row of halves, or `[1, V]`, is made one.
pub(crate) struct Row<'py>(Bound<'py, PyArray1<f32>>);

impl<'py> Row<'py> {
    /// # Errors
    /// `TypeError` for another type than a float32 array, `ValueError` for another shape or order.
    #[inline]
    pub(crate) fn new(array: &Bound<'py, PyAny>) -> Result<Self> {
        let row = match array.cast::<PyArray1<f32>>() {
            Ok(row) => row.clone(),
            Err(_) => read_slowly(array)?,
        };
        // A reversed or sparse row is contiguous only where it has at most one entry.
        if row.is_contiguous() && row.is_aligned() { Ok(Self(row)) } else { Err(LOGITS.order(row.as_untyped())) }
    }

    /// Gives `use_row` the entries. It must not let other Python threads run; so wait for locks before.
    #[inline]
    pub(crate) fn read<R>(&self, use_row: impl FnOnce(&[f32]) -> R) -> R {
        // SAFETY: nothing here writes, and the GIL is held until `use_row` returns: no Python code of another thread
        // runs meanwhile.
        use_row(unsafe { self.0.as_slice() }.unwrap_or_default())
    }
}

#[cold]
fn read_slowly<'py>(array: &Bound<'py, PyAny>) -> Result<Bound<'py, PyArray1<f32>>> {
    let mut array = LOGITS.array(array)?;
    if let [1, width] = *array.shape() {
        array = array.call_method1("reshape", (width,))?.cast_into().map_err(PyErr::from)?;
    }
    // Halves are exact as singles; what is wider would be rounded.
    if array.dtype().kind() == b'f' && array.dtype().itemsize() == 2 {
        array = array.call_method1("astype", ("float32",))?.cast_into().map_err(PyErr::from)?;
    }
    LOGITS.check_type::<f32>(&array)?;
    if array.ndim() != 1 {
        return Err(LOGITS.shape(&array, LOGITS.row));
    }
    Ok(array.cast_into::<PyArray1<f32>>().map_err(PyErr::from)?)
}

/// An array over a part of `owner`, which it keeps alive; `None` where there is no such part. It cannot be made
/// writable.
///
/// A mapped file, which others can change, is as it is for all that read it: see `Trie.open`.
pub(crate) fn lent<'py, C, T>(
    owner: &Bound<'py, C>,
    part: impl for<'c> FnOnce(&'c C) -> Option<&'c [T]>,
) -> PyResult<Option<Bound<'py, PyArray1<T>>>>
where
    C: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync,
    T: Element,
{
    let Some(items) = part(owner.get()) else { return Ok(None) };
    // SAFETY: the items are part of an object that nothing can change or move (`part` knows nothing of it but that it
    // is borrowed), and the array holds a reference to it. It is made read-only before anyone else has it, and numpy
    // lets nobody undo that in a view of memory that is not an array's own.
    let array = unsafe { PyArray1::borrow_from_array(&aview1(items), owner.clone().into_any()) };
    array.call_method1("setflags", (false,))?;
    Ok(Some(array))
}

/// Gives `use_row` each row of a `[V]` or `[rows, V]` array to write, after all of them were checked.
///
/// # Errors
/// `TypeError` for another type, `ValueError` for another shape or order, overlapping rows, a read-only array, or rows
/// with fewer than `need` entries; nothing was written then.
pub(crate) fn for_each_row_mut<T: Element>(
    array: &Bound<'_, PyAny>,
    wanted: &Wanted,
    need: usize,
    mut use_row: impl FnMut(&mut [T]) -> Result<()>,
) -> Result<()> {
    let array = wanted.array(array)?;
    wanted.check_type::<T>(&array)?;
    let (rows, width) = match *array.shape() {
        [width] => (1, width),
        [rows, width] => (rows, width),
        _ => return Err(wanted.shape(&array, &format!("{row} or [rows, {}", &wanted.row[1..], row = wanted.row))),
    };
    if width < need {
        return Err(Error::Array(format!("{} has rows of {width} entries: at least {need} are needed", wanted.what)));
    }
    let itemsize = size_of::<T>();
    let strides = array.strides();
    let dense = width <= 1 || strides.last().is_some_and(|&stride| stride == itemsize as isize);
    if !array.is_aligned() || !dense {
        return Err(wanted.order(&array));
    }
    if rows > 1 && strides.first().is_some_and(|stride| stride.unsigned_abs() < width * itemsize) {
        return Err(Error::Array(format!("{} has rows that overlap in memory: strides {strides:?}", wanted.what)));
    }
    let read_only = |error| Error::Array(format!("{} cannot be written: {error}", wanted.what));
    if let Ok(row) = array.cast::<PyArray1<T>>() {
        let mut row = row.try_readwrite().map_err(read_only)?;
        return use_row(row.as_slice_mut().map_err(|_| wanted.order(&array))?);
    }
    let table = array.cast::<PyArray2<T>>().map_err(PyErr::from)?;
    let mut table: PyReadwriteArray2<'_, T> = table.try_readwrite().map_err(read_only)?;
    for row in table.as_array_mut().rows_mut() {
        use_row(row.into_slice().ok_or_else(|| wanted.order(&array))?)?;
    }
    Ok(())
}

impl Wanted {
    /// The array itself, or one over the same memory: of a tensor of torch on the CPU, or of anything else with the
    /// buffer protocol.
    fn array<'py>(&self, array: &Bound<'py, PyAny>) -> Result<Bound<'py, PyUntypedArray>> {
        if let Ok(array) = array.cast::<PyUntypedArray>() {
            return Ok(array.clone());
        }
        if let Some(array) = tensor_as_array(self.what, array)? {
            return Ok(array.cast_into().map_err(PyErr::from)?);
        }
        let Ok(view) = PyMemoryView::from(array) else {
            let message = format!("{} must be a {} array, not {}", self.what, self.dtype, type_name(array));
            return Err(PyTypeError::new_err(message).into());
        };
        let array = module(array.py(), "numpy")?.call_method1("asarray", (view,))?;
        Ok(array.cast_into::<PyUntypedArray>().map_err(PyErr::from)?)
    }

    fn check_type<T: Element>(&self, array: &Bound<'_, PyUntypedArray>) -> Result<()> {
        let dtype = array.dtype();
        if dtype.is_equiv_to(&T::get_dtype(array.py())) {
            return Ok(());
        }
        let how = format!("array.astype(\"{}\") is a copy that has it", self.dtype);
        Err(PyTypeError::new_err(format!("{} must have dtype {}, not {dtype}: {how}", self.what, self.dtype)).into())
    }

    fn shape(&self, array: &Bound<'_, PyUntypedArray>, wanted: &str) -> Error {
        Error::Array(format!("{} must have shape {wanted}, not {:?}", self.what, array.shape()))
    }

    fn order(&self, array: &Bound<'_, PyUntypedArray>) -> Error {
        Error::Array(format!(
            "{} must be contiguous and aligned along the last axis: shape {:?}, strides {:?} bytes",
            self.what,
            array.shape(),
            array.strides()
        ))
    }
}
