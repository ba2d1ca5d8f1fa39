//! Memory that arrays lie in: the heap, or a mapped file. The one file of this crate with `unsafe`.
//!
//! An [`Array`] finds its pointer once, when it is made, so that reading one costs the same wherever it lies.

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// Read-only pages.
#[derive(Debug)]
pub(crate) struct Map(Mmap);

impl Map {
    /// The pages of a file. Nothing is read; processes that map the same file share them.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        // SAFETY: the pages must not change while slices of them are alive. Nothing here writes to them, and `save` never
        // writes into an existing file: it replaces it, and the old pages stay what they were. Whoever changes or shortens
        // a file in place breaks that promise for every program that maps it; that is documented. Nothing above
        // trusts what it reads: every bit pattern is a valid `u8` or `u32`, and every index is checked.
        unsafe { Mmap::map(file) }.map(Self)
    }

    /// A copy of these bytes, which must not be empty.
    pub(crate) fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut pages = MmapMut::map_anon(bytes.len())?;
        pages.copy_from_slice(bytes);
        pages.make_read_only().map(Self)
    }

    /// A copy of a file, which must not be empty, read from its beginning.
    pub(crate) fn of_contents(file: &mut File) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut pages = MmapMut::map_anon(usize::try_from(length).map_err(io::Error::other)?)?;
        file.read_exact(&mut pages)?;
        pages.make_read_only().map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// An immutable slice with its memory: a box of its own, or part of a map that it keeps alive.
pub(crate) struct Array<T> {
    items: NonNull<[T]>,
    /// `None` where `items` came from a box.
    map: Option<Arc<Map>>,
}

// SAFETY: an `Array` gives out shared slices only and frees its box once, as a `Box<[T]>` or an `Arc` of one would.
unsafe impl<T: Send + Sync> Send for Array<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Array<T> {}

impl<T: Pod> Array<T> {
    /// These bytes of a map as they are, or `None` where they are outside, not aligned or no whole number of items.
    pub(crate) fn of_map(map: &Arc<Map>, bytes: Range<usize>) -> Option<Self> {
        let items = bytemuck::try_cast_slice(map.bytes().get(bytes)?).ok()?;
        Some(Self { items: NonNull::from(items), map: Some(Arc::clone(map)) })
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items: NonNull::from(Box::leak(items.into_boxed_slice())), map: None }
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `items` is the leaked box, freed only in `drop`, or lies in the map that `self` keeps alive at a fixed
        // address. Neither is ever written to.
        unsafe { self.items.as_ref() }
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        if self.map.is_none() {
            // SAFETY: without a map, `items` came from `Box::leak`, and this is the only place that takes it back.
            drop(unsafe { Box::from_raw(self.items.as_ptr()) });
        }
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Array<T> {}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_outlives_its_map_and_refuses_what_does_not_fit() {
        let map = Arc::new(Map::of_bytes(&[1, 0, 0, 0, 2, 0, 0, 0, 3]).unwrap());
        let array: Array<u32> = Array::of_map(&map, 0..8).unwrap();
        assert!(Array::<u32>::of_map(&map, 0..9).is_none(), "no whole number");
        assert!(Array::<u32>::of_map(&map, 1..5).is_none(), "not aligned");
        assert!(Array::<u32>::of_map(&map, 8..12).is_none(), "outside");
        assert!(Array::<u32>::of_map(&map, Range { start: 4, end: 0 }).is_none());
        drop(map);
        assert_eq!(array.iter().map(|&word| u32::from_le(word)).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_vec_becomes_an_array() {
        for items in [vec![], vec![7u32, 8, 9]] {
            let mut roomy = Vec::with_capacity(100);
            roomy.extend_from_slice(&items);
            let array = Array::from(roomy);
            let (there, back) = (std::thread::spawn(move || (array.to_vec(), array)).join().unwrap(), &items);
            assert_eq!((&there.0, &*there.1), (back, back.as_slice()));
        }
    }
}
