//! Tables that many rows are read from or written to without the GIL: numpy, tensors of torch on the CPU, and anything
//! else with the buffer protocol; singles and both kinds of halves.

use super::{LOGITS, WORDS, Wanted};
use crate::convert::ids::type_name;
use crate::errors::{Error, Result};
use crate::exit::module;
use bytemuck::Pod;
use half::{bf16, f16};
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::marker::PhantomData;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use trie_core::{Rows, RowsMut};

/// Rows of logits to read.
pub(crate) enum Logits<'py> {
    Single(Table<'py, f32, f32>),
    Half(Table<'py, u16, f16>),
    Brain(Table<'py, u16, bf16>),
}

/// Rows of logits to write.
pub(crate) enum LogitsMut<'py> {
    Single(TableMut<'py, f32, f32>),
    Half(TableMut<'py, u16, f16>),
    Brain(TableMut<'py, u16, bf16>),
}

/// Rows of mask words to write.
pub(crate) type Words<'py> = TableMut<'py, i32, i32>;

/// Does the same with rows of any kind of logits: `over_logits!(Logits, table, rows => work)`.
macro_rules! over_logits {
    ($kinds:ident, $table:expr, $rows:ident => $work:expr) => {
        match $table {
            $crate::convert::buffer::$kinds::Single(table) => {
                let $rows = table.rows()?;
                $work
            }
            $crate::convert::buffer::$kinds::Half(table) => {
                let $rows = table.rows()?;
                $work
            }
            $crate::convert::buffer::$kinds::Brain(table) => {
                let $rows = table.rows()?;
                $work
            }
        }
    };
}
pub(crate) use over_logits;

/// Location of rows in memory. `T` is read as what numpy calls `E`.
struct Place<T> {
    data: *const T,
    count: usize,
    width: usize,
    stride: usize,
}

impl<T> Place<T> {
    /// Entries from the first to the last.
    fn len(&self) -> usize {
        if self.count == 0 { 0 } else { (self.count - 1) * self.stride + self.width }
    }
}

/// A table to read, registered as read until it is dropped.
pub(crate) struct Table<'py, E: Element, T> {
    place: Place<T>,
    held: PyReadonlyArrayDyn<'py, E>,
}

/// A table to write, registered as written until it is dropped.
pub(crate) struct TableMut<'py, E: Element, T> {
    place: Place<T>,
    held: PyReadwriteArrayDyn<'py, E>,
    writes: PhantomData<&'py mut T>,
}

impl<T: Pod, E: Element + Pod> Table<'_, E, T> {
    /// # Errors
    /// None: what may be wrong was looked at when the table was made.
    pub(crate) fn rows(&self) -> Result<Rows<'_, T>> {
        let (Place { data, count, width, stride }, len) = (&self.place, self.place.len());
        debug_assert!(len == 0 || self.held.len() >= *width);
        // SAFETY: numpy's array has these entries at these places (`place` checked shape, strides and alignment); it
        // cannot be freed or resized while `held` refers to it, and other extensions that register do not write it. As
        // with numpy's own functions, Python code that writes an array while it is read gets what it asked for.
        let entries = if len == 0 { &[] } else { unsafe { from_raw_parts(*data, len) } };
        Rows::new(entries, *count, *width, *stride).map_err(|error| Error::Array(error.to_string()))
    }
}

impl<T: Pod, E: Element + Pod> TableMut<'_, E, T> {
    /// # Errors
    /// Rows that overlap.
    pub(crate) fn rows(&mut self) -> Result<RowsMut<'_, T>> {
        let (Place { data, count, width, stride }, len) = (&self.place, self.place.len());
        debug_assert!(len == 0 || self.held.len() >= *width);
        // SAFETY: as for `Table::rows`; `held` says that the array may be written, and that nobody else who registers
        // reads or writes it. The borrow of `self` is the only one of these entries.
        let entries = if len == 0 { &mut [] } else { unsafe { from_raw_parts_mut(data.cast_mut(), len) } };
        RowsMut::new(entries, *count, *width, *stride).map_err(|error| Error::Array(error.to_string()))
    }
}

impl<'py> Logits<'py> {
    /// # Errors
    /// `TypeError` for another type, `ValueError` for another shape or order.
    pub(crate) fn new(array: &Bound<'py, PyAny>) -> Result<Self> {
        let (array, kind) = kind_of(array)?;
        Ok(match kind {
            Kind::Single => Self::Single(Table::new(&LOGITS, &array)?),
            Kind::Half => Self::Half(Table::new(&LOGITS, &array)?),
            Kind::Brain => Self::Brain(Table::new(&LOGITS, &array)?),
        })
    }

    /// Returns the number of rows.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Single(table) => table.place.count,
            Self::Half(table) => table.place.count,
            Self::Brain(table) => table.place.count,
        }
    }

    /// Entries of a row.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Single(table) => table.place.width,
            Self::Half(table) => table.place.width,
            Self::Brain(table) => table.place.width,
        }
    }
}

impl<'py> LogitsMut<'py> {
    /// # Errors
    /// As [`Logits::new`], and `ValueError` for what may not be written.
    pub(crate) fn new(array: &Bound<'py, PyAny>) -> Result<Self> {
        let (array, kind) = kind_of(array)?;
        Ok(match kind {
            Kind::Single => Self::Single(TableMut::new(&LOGITS, &array)?),
            Kind::Half => Self::Half(TableMut::new(&LOGITS, &array)?),
            Kind::Brain => Self::Brain(TableMut::new(&LOGITS, &array)?),
        })
    }
}

impl<'py> Words<'py> {
    /// # Errors
    /// `TypeError` for another type, `ValueError` for another shape or order, or what may not be written.
    pub(crate) fn words(array: &Bound<'py, PyAny>) -> Result<Self> {
        let array = WORDS.array(array)?;
        WORDS.check_type::<i32>(&array)?;
        Self::new(&WORDS, &array)
    }
}

impl<'py, E: Element + Pod, T: Pod> Table<'py, E, T> {
    fn new(wanted: &Wanted, array: &Bound<'py, PyUntypedArray>) -> Result<Self> {
        let array = array.cast::<PyArrayDyn<E>>().map_err(PyErr::from)?;
        let place = place::<E, T>(wanted, array)?;
        let busy = |error| Error::Array(format!("{} cannot be read: {error}", wanted.what));
        Ok(Self { place, held: array.try_readonly().map_err(busy)? })
    }
}

impl<'py, E: Element + Pod, T: Pod> TableMut<'py, E, T> {
    fn new(wanted: &Wanted, array: &Bound<'py, PyUntypedArray>) -> Result<Self> {
        let array = array.cast::<PyArrayDyn<E>>().map_err(PyErr::from)?;
        let place = place::<E, T>(wanted, array)?;
        let refused = |error| Error::Array(format!("{} cannot be written: {error}", wanted.what));
        Ok(Self { place, held: array.try_readwrite().map_err(refused)?, writes: PhantomData })
    }
}

/// Returns the location of the rows of an array of one or two dimensions.
fn place<E: Element + Pod, T: Pod>(wanted: &Wanted, array: &Bound<'_, PyArrayDyn<E>>) -> Result<Place<T>> {
    const { assert!(size_of::<E>() == size_of::<T>() && align_of::<E>() == align_of::<T>()) };
    let (size, untyped) = (size_of::<T>() as isize, array.as_untyped());
    let (count, width, stride) = match (array.shape(), array.strides()) {
        (&[width], &[_]) => (1, width, width as isize * size),
        (&[count, width], &[stride, _]) if count > 1 => (count, width, stride),
        (&[count, width], _) => (count, width, width as isize * size),
        _ => return Err(wanted.shape(untyped, &format!("[rows, {}", &wanted.row[1..]))),
    };
    let dense = width <= 1 || count == 0 || array.strides().last() == Some(&size);
    if !dense || !array.is_aligned() || stride < 0 || stride % size != 0 {
        return Err(wanted.order(untyped));
    }
    Ok(Place { data: array.data().cast(), count, width, stride: (stride / size) as usize })
}

enum Kind {
    Single,
    Half,
    Brain,
}

/// The array and what its entries are; halves as integers of the same size, over the same memory.
fn kind_of<'py>(array: &Bound<'py, PyAny>) -> Result<(Bound<'py, PyUntypedArray>, Kind)> {
    if let Some(bits) = brain_tensor(array)? {
        return Ok((bits, Kind::Brain));
    }
    let array = LOGITS.array(array)?;
    let dtype = array.dtype();
    let as_integers = |array: &Bound<'py, PyUntypedArray>| -> Result<Bound<'py, PyUntypedArray>> {
        Ok(array.call_method1("view", ("uint16",))?.cast_into().map_err(PyErr::from)?)
    };
    if dtype.is_equiv_to(&half_dtype(array.py())) {
        return Ok((as_integers(&array)?, Kind::Half));
    }
    // numpy itself has none; the package ml_dtypes gives it one.
    if dtype.itemsize() == 2 && dtype.getattr("name")?.eq("bfloat16")? {
        return Ok((as_integers(&array)?, Kind::Brain));
    }
    if dtype.is_equiv_to(&f32::get_dtype(array.py())) {
        return Ok((array, Kind::Single));
    }
    let how = "array.astype(\"float32\") is a copy that has it";
    let message = format!("logits must have dtype float32, float16 or bfloat16, not {dtype}: {how}");
    Err(PyTypeError::new_err(message).into())
}

fn half_dtype(py: Python<'_>) -> Bound<'_, numpy::PyArrayDescr> {
    f16::get_dtype(py)
}

/// Returns whether this is a tensor of torch, which need not be loaded for that.
fn is_tensor(value: &Bound<'_, PyAny>) -> bool {
    let module = value.get_type().module();
    module.is_ok_and(|module| module == "torch" || module == "torch.nn.parameter")
        && value.hasattr("data_ptr").is_ok_and(|has| has)
}

/// Returns whether this process can read the rows. `Some(device)` where they do not.
pub(crate) fn on_cpu(array: &Bound<'_, PyAny>) -> Result<bool> {
    if !is_tensor(array) {
        return Ok(true);
    }
    Ok(array.getattr("device")?.getattr("type")?.eq("cpu")?)
}

/// A tensor of torch as an array over the same memory; `None` for anything else.
pub(crate) fn tensor_as_array<'py>(what: &str, array: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>> {
    if !is_tensor(array) {
        return Ok(None);
    }
    if !on_cpu(array)? {
        let device = array.getattr("device")?;
        let message = format!("{what} must be on the CPU here, not a {} on {device}", type_name(array));
        return Err(PyTypeError::new_err(message).into());
    }
    Ok(Some(array.call_method0("detach")?.call_method0("numpy")?))
}

/// A tensor of bfloat16, which numpy does not know, as integers over the same memory.
fn brain_tensor<'py>(array: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyUntypedArray>>> {
    if !is_tensor(array) || !on_cpu(array)? {
        return Ok(None);
    }
    let torch = module(array.py(), "torch")?;
    if !array.getattr("dtype")?.is(&torch.getattr("bfloat16")?) {
        return Ok(None);
    }
    let bits = array.call_method0("detach")?.call_method1("view", (torch.getattr("int16")?,))?.call_method0("numpy")?;
    Ok(Some(bits.call_method1("view", ("uint16",))?.cast_into().map_err(PyErr::from)?))
}
