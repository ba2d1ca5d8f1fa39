//! Pointers of C. The functions of `abi/` take them as [`In`] and [`Out`], which are pointers to C, and get slices and
//! values from them here. Every SAFETY note rests on one promise:
//!
//! - **Header**: whoever calls a function of `include/tokentrie.h` gives each pointer as NULL or as that of as many
//!   elements as the length beside it says (one, where there is none), alive during the call; what is written to is
//!   used by nobody else meanwhile. An `In` or `Out` comes from such a call, or from [`In::new`] and [`Out::new`],
//!   whose callers promise the same. Only functions of `abi/` pair a pointer with a length, each in one line.
//!
//! Null, unaligned pointers and lengths that no memory has are errors all the same.

#![allow(clippy::missing_errors_doc, reason = "what is refused is said at the top")]

use crate::error::{Error, Result};
use crate::status::{TOKENTRIE_ERROR_BUFFER, TOKENTRIE_ERROR_TEXT};
use bytemuck::Pod;
#[cfg(not(target_family = "wasm"))]
use std::ffi::CStr;
use std::ffi::c_char;
use std::ptr;

/// Pointer to input of the caller.
#[repr(transparent)]
#[derive(Debug)]
pub struct In<T>(*const T);

/// Pointer to output of the caller.
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<T>(*mut T);

/// More bytes than a process can have: addresses of 64 bits have at most 57 that count.
#[cfg(target_pointer_width = "64")]
const LARGEST_MEMORY: usize = 1 << 57;
#[cfg(not(target_pointer_width = "64"))]
const LARGEST_MEMORY: usize = isize::MAX as usize;

fn unusable<T>(pointer: *const T, len: usize, what: &str) -> Option<Error> {
    if pointer.is_null() {
        return Some(Error::argument(format!("{what} is NULL")));
    }
    if !pointer.is_aligned() {
        return Some(Error::argument(format!("{what} is at {pointer:p}: it must be aligned to {}", align_of::<T>())));
    }
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= LARGEST_MEMORY);
    let fits = bytes.is_some_and(|bytes| pointer.addr().checked_add(bytes).is_some());
    (!fits).then(|| Error::argument(format!("{what} has {len} elements: no memory is that large")))
}

impl<T> In<T> {
    /// A pointer as C gives it.
    ///
    /// # Safety
    /// Header: see the top of this file.
    pub const unsafe fn new(pointer: *const T) -> Self {
        Self(pointer)
    }

    /// Returns a NULL pointer.
    pub const fn null() -> Self {
        Self(ptr::null())
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The pointer, for what C made.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn pointer(&self) -> *const T {
        self.0
    }

    /// So many elements; none need no pointer.
    #[inline]
    pub fn slice(&self, len: usize, what: &str) -> Result<&[T]> {
        if len == 0 {
            return Ok(&[]);
        }
        if let Some(error) = unusable(self.0, len, what) {
            return Err(error);
        }
        // SAFETY: Header, and not null, aligned, and no longer than memory can be.
        Ok(unsafe { std::slice::from_raw_parts(self.0, len) })
    }
}

impl In<c_char> {
    /// Reads bytes of any content.
    pub fn bytes(&self, len: usize, what: &str) -> Result<&[u8]> {
        self.slice(len, what).map(bytemuck::cast_slice)
    }

    /// Reads text in UTF-8.
    pub fn text(&self, len: usize, what: &str) -> Result<&str> {
        text(self.bytes(len, what)?, what)
    }

    /// Bytes up to a zero, which is not among them.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn until_zero(&self, what: &str) -> Result<&[u8]> {
        if let Some(error) = unusable(self.0, 1, what) {
            return Err(error);
        }
        // SAFETY: Header: where no length stands beside it, text ends with a zero; not null.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

pub(crate) fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let message = format!("{what} is not UTF-8: byte {at} is {:#04x}", bytes.get(at).copied().unwrap_or_default());
        Error::new(TOKENTRIE_ERROR_TEXT, message)
    })
}

impl<T> Out<T> {
    /// A pointer as C gives it.
    ///
    /// # Safety
    /// Header: see the top of this file.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// Returns a NULL pointer.
    pub const fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// Checks that it can be written to: asked before anything is made or changed.
    #[inline]
    pub fn check(&self, what: &str) -> Result<()> {
        unusable(self.0, 1, what).map_or(Ok(()), Err)
    }

    /// Writes one value, unless the pointer is NULL.
    #[inline]
    pub fn put(&self, value: T) {
        if !self.0.is_null() && self.0.is_aligned() {
            // SAFETY: Header, not null and aligned; what was there is not read and needs no drop.
            unsafe { self.0.write(value) };
        }
    }

    /// So many elements to change; none need no pointer.
    #[inline]
    pub(crate) fn slice(&mut self, len: usize, what: &str) -> Result<&mut [T]> {
        if len == 0 {
            return Ok(&mut []);
        }
        if let Some(error) = unusable(self.0, len, what) {
            return Err(error);
        }
        // SAFETY: Header, and not null, aligned, and no longer than memory can be.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0, len) })
    }
}

#[cfg(feature = "llama")]
impl<T> Out<T> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

/// A copy of a sentence, for C to keep.
#[cfg(feature = "llama")]
pub(crate) fn copy_of(text: &CStr) -> *mut c_char {
    text.to_owned().into_raw()
}

#[cfg(feature = "llama")]
impl Out<c_char> {
    /// Frees a text that `copy_of` made.
    pub(crate) fn free_copy(self) {
        if !self.0.is_null() {
            // SAFETY: Header: C gives such a text back, once.
            drop(unsafe { std::ffi::CString::from_raw(self.0) });
        }
    }
}

/// A buffer of the caller, and where it is told how much there is.
#[derive(Debug)]
pub struct Buffer<'a, T> {
    to: &'a Out<T>,
    capacity: usize,
    /// `None` where the caller asks for none.
    count: Option<&'a Out<usize>>,
}

impl<'a, T: Copy> Buffer<'a, T> {
    /// Room for so many items.
    pub fn new(to: &'a Out<T>, capacity: usize, count: &'a Out<usize>, what: &str) -> Result<Self> {
        count.check("count")?;
        Ok(Self { count: Some(count), ..Self::uncounted(to, capacity, what)? })
    }

    /// Without a place for the number of items.
    pub(crate) fn uncounted(to: &'a Out<T>, capacity: usize, what: &str) -> Result<Self> {
        if capacity > 0
            && let Some(error) = unusable(to.0, capacity, what)
        {
            return Err(error);
        }
        Ok(Self { to, capacity, count: None })
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Says how many items there are, and fails where they do not fit.
    #[inline]
    pub fn needs(&self, count: usize) -> Result<()> {
        if let Some(told) = self.count {
            told.put(count);
        }
        if count <= self.capacity {
            return Ok(());
        }
        let message = format!("the buffer has room for {}: {count} are needed", self.capacity);
        Err(Error::new(TOKENTRIE_ERROR_BUFFER, message))
    }

    /// Writes all items, or none where they do not fit.
    pub fn fill(&self, items: &[T]) -> Result<()> {
        self.needs(items.len())?;
        if !items.is_empty() {
            // SAFETY: Header: room for `capacity` items, no fewer than there are. They may overlap what was read.
            unsafe { ptr::copy(items.as_ptr(), self.to.0, items.len()) };
        }
        Ok(())
    }

    /// Writes these many items, which is what the iterator has.
    #[inline]
    pub(crate) fn fill_with(&self, count: usize, items: impl Iterator<Item = T>) -> Result<()> {
        self.needs(count)?;
        for (index, item) in items.take(count).enumerate() {
            // SAFETY: Header: `index` is below `count`, for which `needs` has found room.
            unsafe { self.to.0.wrapping_add(index).write(item) };
        }
        Ok(())
    }
}

impl Buffer<'_, c_char> {
    /// Writes a text, without a zero.
    pub(crate) fn fill_text(&self, text: &str) -> Result<()> {
        self.fill(bytemuck::cast_slice(text.as_bytes()))
    }
}

/// The most bytes that a later version of a structure may have.
const LARGEST: u32 = 4096;

impl<T: Pod> In<T> {
    /// A structure that begins with its own size, so that both sides may know fewer fields than the other: those that
    /// the caller knows, and 0 in those that it does not. NULL gives nothing.
    pub(crate) fn fields(&self, what: &str) -> Result<Option<T>> {
        if self.0.is_null() {
            return Ok(None);
        }
        let bytes = known::<T>(self.0, what)?;
        let mut value = T::zeroed();
        // SAFETY: Header: the structure has as many bytes as it says; no more than ours has are copied; any are one.
        unsafe { ptr::copy_nonoverlapping(self.0.cast::<u8>(), (&raw mut value).cast::<u8>(), bytes) };
        Ok(Some(value))
    }
}

impl<T: Pod> Out<T> {
    /// Checks that the caller has set a size.
    pub(crate) fn check_fields(&self, what: &str) -> Result<()> {
        known::<T>(self.0, what).map(|_| ())
    }

    /// Writes the fields that the caller knows; its size stays.
    pub(crate) fn put_fields(&self, value: &T, what: &str) -> Result<()> {
        const SIZE: usize = size_of::<u32>();
        let bytes = known::<T>(self.0, what)? - SIZE;
        let (from, to) = ((&raw const *value).cast::<u8>(), self.0.cast::<u8>());
        // SAFETY: Header: the structure has as many bytes as it says, no more than ours has are written, and it is
        // nobody else's; `Pod` has no padding that would be copied uninitialised.
        unsafe { ptr::copy_nonoverlapping(from.wrapping_add(SIZE), to.wrapping_add(SIZE), bytes) };
        Ok(())
    }
}

/// Bytes of a structure that both sides know.
fn known<T>(pointer: *const T, what: &str) -> Result<usize> {
    if let Some(error) = unusable(pointer, 1, what) {
        return Err(error);
    }
    // SAFETY: Header: it begins with a `u32`, its size; checked to be not null and aligned.
    let size = unsafe { pointer.cast::<u32>().read() };
    let ours = size_of::<T>() as u32;
    if !(8..=LARGEST).contains(&size) || size % 4 != 0 {
        let message = format!("{what}->size is {size}: set it to sizeof *{what}, {ours} in this version");
        return Err(Error::argument(message));
    }
    Ok(size.min(ours) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::TOKENTRIE_ERROR_ARGUMENT;

    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq, bytemuck::Zeroable, Pod)]
    struct Options {
        size: u32,
        a: i32,
        b: f32,
    }

    fn input<T>(value: *const T) -> In<T> {
        // SAFETY: of the tests below; each gives what it says.
        unsafe { In::new(value) }
    }

    fn output<T>(value: *mut T) -> Out<T> {
        // SAFETY: as above.
        unsafe { Out::new(value) }
    }

    #[test]
    fn null_unaligned_and_impossible_lengths_are_refused() {
        let words = [1_i32, 2, 3];
        assert_eq!(input(words.as_ptr()).slice(3, "ids").unwrap(), words);
        assert!(In::<i32>::null().slice(0, "ids").unwrap().is_empty());
        let said = |error: Error| (error.status, error.message);
        let argument = |message: &str| (TOKENTRIE_ERROR_ARGUMENT, message.to_owned());
        assert_eq!(said(In::<i32>::null().slice(1, "ids").unwrap_err()), argument("ids is NULL"));
        let odd = words.as_ptr().wrapping_byte_add(1);
        assert!(input(odd).slice(1, "ids").unwrap_err().message.ends_with("it must be aligned to 4"));
        for len in [usize::MAX, usize::MAX / 4 + 1, isize::MAX as usize, 1 << 62, 1 << 56] {
            let message = format!("ids has {len} elements: no memory is that large");
            assert_eq!(said(input(words.as_ptr()).slice(len, "ids").unwrap_err()), argument(&message));
        }
        assert_eq!(said(input(c"a\xff".as_ptr()).text(2, "name").unwrap_err()).1, "name is not UTF-8: byte 1 is 0xff");
    }

    #[test]
    fn a_buffer_that_is_too_small_stays_as_it_is() {
        let (mut room, mut count) = ([7; 4], 0);
        let (to, counted) = (output(room.as_mut_ptr()), output(&raw mut count));
        let buffer = Buffer::new(&to, 2, &counted, "ids").unwrap();
        let error = buffer.fill(&[1, 2, 3]).unwrap_err();
        assert_eq!(error.status, TOKENTRIE_ERROR_BUFFER);
        assert!(buffer.fill_with(3, [1, 2, 3].into_iter()).is_err());
        buffer.fill(&[1, 2]).unwrap();
        assert_eq!((room, count), ([1, 2, 7, 7], 2));
        let none = Out::<i32>::null();
        let buffer = Buffer::new(&none, 0, &counted, "ids").unwrap();
        assert_eq!(buffer.fill(&[1, 2, 3]).unwrap_err().message, "the buffer has room for 0: 3 are needed");
        buffer.fill(&[]).unwrap();
        assert_eq!(Buffer::new(&none, 1, &counted, "ids").unwrap_err().message, "ids is NULL");
        assert_eq!(Buffer::new(&none, 0, &Out::null(), "ids").unwrap_err().message, "count is NULL");
    }

    #[test]
    fn structures_of_other_versions_are_read_and_written_as_far_as_both_know() {
        let mut given = [12_u32, 5, 1.5_f32.to_bits(), 77];
        let fields = |words: &[u32; 4]| input(words.as_ptr().cast::<Options>()).fields("options");
        let whole = Options { size: 12, a: 5, b: 1.5 };
        assert_eq!(fields(&given).unwrap(), Some(whole));
        given[0] = 8;
        assert_eq!(fields(&given).unwrap(), Some(Options { size: 8, a: 5, b: 0.0 }));
        given[0] = 16;
        assert_eq!(fields(&given).unwrap(), Some(Options { size: 16, ..whole }));
        assert_eq!(In::<Options>::null().fields("options").unwrap(), None);
        for size in [0, 3, 4, 13, 5000, u32::MAX] {
            given[0] = size;
            let message = format!("options->size is {size}: set it to sizeof *options, 12 in this version");
            assert_eq!(fields(&given).unwrap_err().message, message);
        }
        for (size, expected) in
            [(8, [8, 9, 0, 0]), (12, [12, 9, 2.0_f32.to_bits(), 0]), (16, [16, 9, 2.0_f32.to_bits(), 0])]
        {
            let mut words = [size, 0, 0, 0];
            let out = output(words.as_mut_ptr().cast::<Options>());
            out.put_fields(&Options { size: 99, a: 9, b: 2.0 }, "info").unwrap();
            assert_eq!(words, expected);
        }
    }
}
