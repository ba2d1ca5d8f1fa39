//! Telling a file from what may lie under its name later.

use super::{FileError, FileOptions, Header};
use crate::set::trie::Trie;
use sha2::{Digest, Sha256};
use std::path::Path;

/// What identifies the contents of a `.ttrie` file: the SHA-256 of its header and section table, which hold its length
/// and the checksum of every section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp(pub [u8; 32]);

impl Trie {
    /// Opens a file as [`Trie::open`] does, and says which it was: equal contents have equal stamps. The sections are
    /// not read.
    ///
    /// # Errors
    /// As [`Trie::open`].
    pub fn open_stamped(path: impl AsRef<Path>, options: FileOptions<'_>) -> Result<(Self, FileStamp), FileError> {
        let (trie, map) = Self::open_map(path.as_ref(), options)?;
        let head = Header::of_file(map.bytes());
        Ok((trie, FileStamp(Sha256::digest(head).into())))
    }
}
