//! The `.ttrie` file: the arrays of a trie as they lie in memory, so a file is opened by mapping it.
//!
//! `docs/file-format.md` describes the format for other programs. [`TrieFile::open`] reads a file (`read.rs`;
//! `verify.rs` checks its contents), and [`TrieFile::save`] writes one (`write.rs`).

mod header;
mod options;
mod problem;
mod read;
mod verify;
mod verify_graph;
mod write;

pub(crate) use header::{Counts, Header, Kind};
pub use options::FileOptions;
pub(crate) use options::check_vocabulary;
pub use problem::{FileError, FileProblem};
pub use read::FileStamp;
pub(crate) use read::of_written;
use std::io::{self, Write};
use std::path::Path;
use trie_core::{Trie, VocabularyId};
use verify::Contents;
pub use write::replace_whole;

/// Methods of a [`Trie`] that open and save `.ttrie` files.
pub trait TrieFile: Sized {
    /// Opens a `.ttrie` file by mapping it: nothing is copied, and processes that open the same file share its pages.
    ///
    /// The header and the offset and length of every section are always checked; the contents only if `options` asks
    /// for it. Without this check, damage gives wrong sets but never a crash, and pages are read only when a walk
    /// needs them. While the file is open, it may be replaced or removed, but must not be changed or shortened in
    /// place. Changes give wrong sets, as damage does, and are outside of Rust's promises. If the file is shortened,
    /// the operating system ends processes that read the missing part (SIGBUS). `O(children of the root)`.
    ///
    /// # Errors
    /// [`FileError`] names the problem and its position.
    ///
    /// ```
    /// use trie_core::{TokenId, Trie, VocabularyId};
    /// use trie_formats::{FileOptions, TrieFile as _};
    /// let mut builder = Trie::builder();
    /// builder.push(Some("STOP"), &[TokenId::new(9).unwrap()]);
    /// let trie = builder.build()?;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("set.ttrie");
    /// let vocabulary = VocabularyId { size: 32_000, fingerprint: Some("digest of it") };
    /// trie.save(&path, Some(vocabulary))?;
    /// let opened = Trie::open(&path, FileOptions::default().with_vocabulary(vocabulary).with_verify(true))?;
    /// assert_eq!(opened, trie);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn open(path: impl AsRef<Path>, options: FileOptions<'_>) -> Result<Self, FileError>;

    /// Opens a file as [`TrieFile::open`] does, and returns its stamp too: equal contents have equal stamps. The
    /// sections are not read.
    ///
    /// # Errors
    /// As [`TrieFile::open`].
    fn open_stamped(path: impl AsRef<Path>, options: FileOptions<'_>) -> Result<(Self, FileStamp), FileError>;

    /// A trie from the bytes of a `.ttrie` file. They are copied once.
    ///
    /// # Errors
    /// [`FileError`] with an empty path.
    ///
    /// ```
    /// use trie_core::{TokenId, Trie};
    /// use trie_formats::{FileOptions, TrieFile as _};
    /// let mut builder = Trie::builder();
    /// builder.push(Some("seven"), &[TokenId::new(7).unwrap()]);
    /// let mut file = Vec::new();
    /// builder.build()?.write_to(&mut file, None)?;
    /// assert!(Trie::from_bytes(&file, FileOptions::default())?.verify().is_ok());
    /// *file.last_mut().unwrap() ^= 1;
    /// assert!(Trie::from_bytes(&file, FileOptions::default())?.verify().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn from_bytes(bytes: &[u8], options: FileOptions<'_>) -> Result<Self, FileError>;

    /// Saves the trie as a `.ttrie` file. With `vocabulary`, or if the trie was made for a vocabulary, the file
    /// records the vocabulary of its ids.
    ///
    /// At every moment the path names either the old file or the whole new one. The new file is written under a
    /// temporary name in the same folder, flushed to the disk and renamed. A link is replaced, not followed. Programs
    /// that have the old file open keep it. `O(bytes)`.
    ///
    /// # Errors
    /// An error of the operating system, a vocabulary that lacks some of the tokens or is not the one of the set, or a
    /// set from a damaged file. The old file is then unchanged, and the temporary file is removed.
    fn save(&self, path: impl AsRef<Path>, vocabulary: Option<VocabularyId<'_>>) -> Result<(), FileError>;

    /// Writes the bytes of [`TrieFile::save`] to `out`.
    ///
    /// # Errors
    /// An error of `out`, or a vocabulary that lacks some of the tokens or a set from a damaged file
    /// ([`io::ErrorKind::InvalidInput`]).
    fn write_to(&self, out: &mut impl Write, vocabulary: Option<VocabularyId<'_>>) -> io::Result<()>;
}

impl TrieFile for Trie {
    fn open(path: impl AsRef<Path>, options: FileOptions<'_>) -> Result<Self, FileError> {
        read::open(path.as_ref(), options).map(|(trie, _)| trie)
    }

    fn open_stamped(path: impl AsRef<Path>, options: FileOptions<'_>) -> Result<(Self, FileStamp), FileError> {
        let (trie, memory) = read::open(path.as_ref(), options)?;
        Ok((trie, FileStamp::of_file(memory.bytes())))
    }

    fn from_bytes(bytes: &[u8], options: FileOptions<'_>) -> Result<Self, FileError> {
        read::from_bytes(bytes, options)
    }

    fn save(&self, path: impl AsRef<Path>, vocabulary: Option<VocabularyId<'_>>) -> Result<(), FileError> {
        write::save(self, path.as_ref(), vocabulary)
    }

    fn write_to(&self, out: &mut impl Write, vocabulary: Option<VocabularyId<'_>>) -> io::Result<()> {
        write::write_to(self, out, vocabulary)
    }
}
