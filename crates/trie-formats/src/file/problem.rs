//! Why a file cannot be opened or saved.

use std::io;
use std::path::{Path, PathBuf};
use trie_core::ErrorKind;
use trie_core::{Damage, TokenId};

/// A file that could not be opened or saved.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Error of the operating system.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file, or the folder that it is in.
        path: PathBuf,
        /// Name of the operation that failed.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// Invalid contents of the file.
    #[error("{}: {problem}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Problem, and its position.
        problem: FileProblem,
    },
}

impl FileError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } => ErrorKind::File,
            Self::Content { problem, .. } => problem.kind(),
        }
    }
}

/// Contents that are not a trie, or not the expected one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// It does not begin as a `.ttrie` file does.
    #[error("not a .ttrie file: it begins with {found:02x?}")]
    NotATrie {
        /// First bytes of the file.
        found: Vec<u8>,
    },
    /// It ends too early.
    #[error("cut off: it has {bytes} bytes and needs at least {need}")]
    Truncated {
        /// Length of the file.
        bytes: usize,
        /// Minimum length of a file.
        need: u64,
    },
    /// Its numbers are not in this machine's byte order.
    #[error("its byte order is not this machine's: only little-endian files on little-endian machines can be used")]
    ByteOrder,
    /// Another version of the format, probably a newer one.
    #[error("version {found} of the format: this program reads version {known}")]
    Version {
        /// Version of the file.
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    /// A part with invalid contents.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The vocabulary does not have all of its tokens.
    #[error("token id {max_token} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// Largest valid token id.
        max_token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// Saved for another vocabulary.
    #[error("saved for another vocabulary: its fingerprint is {found}, the one given {expected}")]
    OtherVocabulary {
        /// Fingerprint in the file.
        found: String,
        /// Fingerprint that was expected.
        expected: String,
    },
    /// A fingerprint that is empty or too long.
    #[error("a fingerprint of {bytes} bytes: it must have 1 to 256")]
    Fingerprint {
        /// Length of the file.
        bytes: usize,
    },
}

impl FileProblem {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OutsideVocabulary { .. } | Self::OtherVocabulary { .. } | Self::Fingerprint { .. } => {
                ErrorKind::Vocabulary
            }
            Self::NotATrie { .. }
            | Self::Truncated { .. }
            | Self::ByteOrder
            | Self::Version { .. }
            | Self::Damaged(_) => ErrorKind::File,
        }
    }
}

impl FileProblem {
    pub(crate) fn damage_in(part: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged(Damage::new(part, reason))
    }

    pub(crate) fn with_path(self, path: &Path) -> FileError {
        FileError::Content { path: path.to_owned(), problem: self }
    }
}

impl FileError {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }
}
