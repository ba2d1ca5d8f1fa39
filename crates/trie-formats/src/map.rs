//! Files mapped into memory. The only file of this crate with `unsafe`.
//!
//! Nothing here writes to a mapped file. `save` never writes into an existing file: it replaces the file, and the old
//! pages stay unchanged. `set/storage/memory.rs` of trie-core describes the effects of other writers.

use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use trie_core::storage::Memory;

/// Pages of a file, mapped read-only into memory.
struct Pages(Mmap);

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The pages of a file. Nothing is read yet; processes that map the same file share its pages.
pub(crate) fn of_file(file: &File) -> io::Result<Memory> {
    // SAFETY: the pages must not change while slices of them are alive. Nothing in this program changes them; for what
    // other writers can do, see above.
    unsafe { Mmap::map(file) }.map(|pages| Memory::new(Pages(pages), true))
}

/// A copy of these bytes, which must not be empty.
pub(crate) fn of_bytes(bytes: &[u8]) -> io::Result<Memory> {
    let mut pages = MmapMut::map_anon(bytes.len())?;
    pages.copy_from_slice(bytes);
    pages.make_read_only().map(ours)
}

/// A copy of a file, which must not be empty, read from its beginning.
pub(crate) fn of_contents(file: &mut File) -> io::Result<Memory> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut pages = MmapMut::map_anon(usize::try_from(length).map_err(io::Error::other)?)?;
    file.read_exact(&mut pages)?;
    pages.make_read_only().map(ours)
}

fn ours(pages: Mmap) -> Memory {
    Memory::new(Pages(pages), false)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::io::{Seek, Write};
    use std::sync::Arc;
    use trie_core::storage::Array;

    #[test]
    fn bytes_of_a_file_are_copied() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"REPLY").unwrap();
        let of_file: Array<u8> = Array::of_memory(&Arc::new(super::of_file(&file).unwrap()), 0..5).unwrap();
        let ours: Array<u8> = Array::of_memory(&Arc::new(super::of_contents(&mut file).unwrap()), 0..5).unwrap();
        let (copy, lent) = (of_file.copy_bytes(1..4).unwrap(), ours.copy_bytes(1..4).unwrap());
        file.rewind().unwrap();
        file.write_all(b"reply").unwrap();
        assert_eq!((&*copy, &*lent, &of_file[1..4]), (&b"EPL"[..], &b"EPL"[..], &b"epl"[..]));
        assert!(matches!((copy, lent), (Cow::Owned(_), Cow::Borrowed(_))));
    }
}
