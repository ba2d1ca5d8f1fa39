//! Memory that arrays lie in: the heap, or a mapped file. The one file of this crate with `unsafe`.
//!
//! An [`Array`] finds its pointer once, when it is made, so that reading one costs the same wherever it lies.
//!
//! # While a file is mapped
//!
//! Nothing here writes to a mapped file, and `save` never writes into an existing one: it replaces it, and the old
//! pages stay what they were. But whoever may write to the file can change it in place, at any moment and from any
//! process. Rust has no rule that allows this: memory behind a `&[T]` must not change, whatever maps it. That part is
//! outside of Rust's promises and is documented where files are opened. This is what keeps such a writer from doing
//! more than harm to answers:
//!
//! - Only `u8`, `u32`, `f32` and `TokenId` are lent from a map. They are [`Pod`]: every bit pattern is a value, none
//!   has padding. A `TokenId` above its maximum can be read, and is one that no vocabulary has.
//! - No text is lent. [`Array::copied`] copies bytes first, and the copy is what is checked to be UTF-8 and then used.
//! - A number that was read is an index only through a checked access, each time. What a check of the whole file found
//!   is not relied on later: [`Array::is_ours`] says whether others can change the memory. A number that changes
//!   between a check and its use gives a wrong answer or a panic.
//! - Whoever shortens the file takes the pages away: the operating system ends the process (SIGBUS). Nothing prevents
//!   that.

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// Read-only pages.
#[derive(Debug)]
pub(crate) struct Map {
    pages: Mmap,
    /// Whether they are those of a file, which others may write to.
    of_file: bool,
}

impl Map {
    /// The pages of a file. Nothing is read; processes that map the same file share them.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        // SAFETY: the pages must not change while slices of them are alive. Nothing in this program changes them; for
        // what other writers can do, see above.
        unsafe { Mmap::map(file) }.map(|pages| Self { pages, of_file: true })
    }

    /// A copy of these bytes, which must not be empty.
    pub(crate) fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut pages = MmapMut::map_anon(bytes.len())?;
        pages.copy_from_slice(bytes);
        pages.make_read_only().map(Self::ours)
    }

    /// A copy of a file, which must not be empty, read from its beginning.
    pub(crate) fn of_contents(file: &mut File) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut pages = MmapMut::map_anon(usize::try_from(length).map_err(io::Error::other)?)?;
        file.read_exact(&mut pages)?;
        pages.make_read_only().map(Self::ours)
    }

    fn ours(pages: Mmap) -> Self {
        Self { pages, of_file: false }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.pages
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

impl<T> Array<T> {
    /// Whether nobody else can change the items.
    pub(crate) fn is_ours(&self) -> bool {
        self.map.as_ref().is_none_or(|map| !map.of_file)
    }
}

impl Array<u8> {
    /// These bytes, or `None` where they are outside. A copy where others may change them: each byte is read once, so
    /// what is checked of the copy stays true.
    pub(crate) fn copied(&self, bytes: Range<usize>) -> Option<Cow<'_, [u8]>> {
        if self.is_ours() {
            return self.get(bytes).map(Cow::Borrowed);
        }
        if bytes.start > bytes.end || bytes.end > self.items.len() {
            return None;
        }
        let begin: *const u8 = self.items.cast().as_ptr();
        // SAFETY: the byte is inside the items, which lie in the map that `self` keeps alive. A volatile read is done
        // once.
        let byte = |at| unsafe { begin.wrapping_add(at).read_volatile() };
        Some(Cow::Owned(bytes.map(byte).collect()))
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
        // SAFETY: `items` is the leaked box, freed only in `drop`, or lies in the map that `self` keeps alive at a
        // fixed address. Nothing here writes to either; for other writers to a file, see above.
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
    use std::io::Write;

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
    fn bytes_of_a_file_are_copied() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"REPLY").unwrap();
        let of_file: Array<u8> = Array::of_map(&Arc::new(Map::of_file(&file).unwrap()), 0..5).unwrap();
        let ours: Array<u8> = Array::of_map(&Arc::new(Map::of_contents(&mut file).unwrap()), 0..5).unwrap();
        let (copy, lent) = (of_file.copied(1..4).unwrap(), ours.copied(1..4).unwrap());
        file.rewind().unwrap();
        file.write_all(b"reply").unwrap();
        assert_eq!((&*copy, &*lent, &of_file[1..4]), (&b"EPL"[..], &b"EPL"[..], &b"epl"[..]));
        assert!(matches!((copy, lent), (Cow::Owned(_), Cow::Borrowed(_))));
        for array in [&of_file, &ours, &Array::from(b"REPLY".to_vec())] {
            assert_eq!(array.copied(5..5).as_deref(), Some(&[][..]));
            assert!(array.copied(2..6).is_none() && array.copied(Range { start: 3, end: 2 }).is_none());
        }
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
