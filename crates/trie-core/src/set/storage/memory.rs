//! Memory that holds arrays: the heap, or memory of another owner, such as a mapped file. The only file of this crate
//! with `unsafe`.
//!
//! An [`Array`] stores its pointer when it is made, so reading costs the same wherever the items lie.
//!
//! # Memory that others may write to
//!
//! A crate that maps files tells [`Memory`] whether others can change it. Whoever may write to a mapped file can do so
//! in place, at any moment and from any process. Rust has no rule that allows this: memory behind a `&[T]` must not
//! change. Such changes are outside of Rust's promises, which is documented where files are opened. The following
//! rules limit the damage of such a writer to wrong answers and panics:
//!
//! - Only `u8`, `u32`, `f32` and `TokenId` are lent from it. They are [`Pod`]: every bit pattern is a value, and none
//!   has padding. A `TokenId` above its maximum can be read; it is an id that no vocabulary has.
//! - No text is lent. [`Array::copy_bytes`] first copies the bytes; then the copy is checked to be UTF-8 and used.
//! - A number from the memory is used as an index only through a checked access, each time. An earlier check of the
//!   whole file is not relied on: [`Array::is_ours`] says whether others can change the memory. A number that changes
//!   between a check and its use gives a wrong answer or a panic.
//! - A writer that shortens the file removes its pages: the operating system then ends the process (SIGBUS). Nothing
//!   prevents that.

use bytemuck::Pod;
use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes that arrays lie in, and what keeps them alive.
pub struct Memory {
    owner: Box<dyn AsRef<[u8]> + Send + Sync>,
    shared: bool,
}

impl Memory {
    /// The bytes of `owner`. `shared` is true if others may write to them, as to those of a mapped file.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static, shared: bool) -> Self {
        Self { owner: Box::new(owner), shared }
    }

    /// Returns all of the bytes.
    pub fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("bytes", &self.bytes().len())
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

/// An immutable slice with its memory: its own box, or a part of memory that it keeps alive.
pub struct Array<T> {
    items: NonNull<[T]>,
    /// `None` where `items` came from a box.
    memory: Option<Arc<Memory>>,
}

// SAFETY: an `Array` gives out shared slices only and frees its box once, as a `Box<[T]>` or an `Arc` of one would.
unsafe impl<T: Send + Sync> Send for Array<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Array<T> {}

impl<T: Pod> Array<T> {
    /// The items in these bytes, or `None` if the range is out of bounds, not aligned or not a whole number of items.
    pub fn of_memory(memory: &Arc<Memory>, bytes: Range<usize>) -> Option<Self> {
        let items = bytemuck::try_cast_slice(memory.bytes().get(bytes)?).ok()?;
        Some(Self { items: NonNull::from(items), memory: Some(Arc::clone(memory)) })
    }
}

impl<T> Array<T> {
    /// Returns whether nobody else can change the items.
    pub fn is_ours(&self) -> bool {
        self.memory.as_ref().is_none_or(|memory| !memory.shared)
    }
}

impl Array<u8> {
    /// These bytes, or `None` if the range is out of bounds. They are copied if others may change them: each byte is
    /// read once, so checks of the copy stay true.
    pub fn copy_bytes(&self, bytes: Range<usize>) -> Option<Cow<'_, [u8]>> {
        if self.is_ours() {
            return self.get(bytes).map(Cow::Borrowed);
        }
        if bytes.start > bytes.end || bytes.end > self.items.len() {
            return None;
        }
        let begin: *const u8 = self.items.cast().as_ptr();
        // SAFETY: the byte is inside the items, which lie in the memory that `self` keeps alive. A volatile read is
        // done once.
        let byte = |at| unsafe { begin.wrapping_add(at).read_volatile() };
        Some(Cow::Owned(bytes.map(byte).collect()))
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items: NonNull::from(Box::leak(items.into_boxed_slice())), memory: None }
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `items` is the leaked box, freed only in `drop`, or was lent by the owner in the memory that `self`
        // keeps alive: it is only ever borrowed shared, for as long as it lives, so what it lent once stays valid.
        // Nothing here writes to either; for other writers to a file, see above.
        unsafe { self.items.as_ref() }
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        if self.memory.is_none() {
            // SAFETY: without memory of another, `items` came from `Box::leak`, and this is the only place that takes
            // it back.
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
    fn an_array_outlives_its_memory_and_refuses_what_does_not_fit() {
        /// Bytes at an address that words may have.
        #[repr(align(8))]
        struct AlignedBytes([u8; 9]);
        impl AsRef<[u8]> for AlignedBytes {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let map = Arc::new(Memory::new(AlignedBytes([1, 0, 0, 0, 2, 0, 0, 0, 3]), false));
        let array: Array<u32> = Array::of_memory(&map, 0..8).unwrap();
        assert!(Array::<u32>::of_memory(&map, 0..9).is_none(), "no whole number");
        assert!(Array::<u32>::of_memory(&map, 1..5).is_none(), "not aligned");
        assert!(Array::<u32>::of_memory(&map, 8..12).is_none(), "outside");
        assert!(Array::<u32>::of_memory(&map, Range { start: 4, end: 0 }).is_none());
        drop(map);
        assert_eq!(array.iter().map(|&word| u32::from_le(word)).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn shared_bytes_are_copied() {
        let array = |shared| Array::<u8>::of_memory(&Arc::new(Memory::new(*b"REPLY", shared)), 0..5).unwrap();
        let (shared, ours) = (array(true), array(false));
        let (copy, lent) = (shared.copy_bytes(1..4).unwrap(), ours.copy_bytes(1..4).unwrap());
        assert_eq!((&*copy, &*lent), (&b"EPL"[..], &b"EPL"[..]));
        assert!(matches!((copy, lent), (Cow::Owned(_), Cow::Borrowed(_))));
        for array in [&shared, &ours, &Array::from(b"REPLY".to_vec())] {
            assert_eq!(array.copy_bytes(5..5).as_deref(), Some(&[][..]));
            assert!(array.copy_bytes(2..6).is_none() && array.copy_bytes(Range { start: 3, end: 2 }).is_none());
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
