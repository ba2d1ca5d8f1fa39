//! The `.ttrie` file: a trie's arrays as they lie in memory, so that opening one is mapping it.
//!
//! `docs/file-format.md` describes it for other programs. Reading is [`Trie::open`] (`read.rs`; `verify.rs` looks at
//! contents), writing is [`Trie::save`] (`write.rs`).

mod header;
mod problem;
mod read;
mod verify;
mod verify_graph;
mod write;

use crate::set::ids::TokenId;
#[cfg(doc)]
use crate::set::trie::Trie;

pub(crate) use header::{Counts, Header, Kind};
pub use problem::{FileError, FileProblem};
pub use read::FileStamp;
pub(crate) use read::of_written;
pub(crate) use verify::Unread;
pub use write::replace_whole;

/// The vocabulary that the ids of a trie belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VocabularyId<'a> {
    /// Number of tokens.
    pub size: usize,
    /// What tells it from others of that size, such as a digest; 1 to 256 bytes.
    pub fingerprint: Option<&'a str>,
}

/// How to open a file: see [`Trie::open`](crate::Trie::open).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FileOptions<'a> {
    /// Refuse a file whose ids this vocabulary does not have, or that was saved for another fingerprint.
    pub vocabulary: Option<VocabularyId<'a>>,
    /// Read all of it: checksums, and everything that a walk relies on. `O(nodes)`.
    pub verify: bool,
}

impl<'a> FileOptions<'a> {
    /// Whether to read all of it: see [`FileOptions::verify`].
    #[must_use]
    pub const fn with_verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// For this vocabulary: see [`FileOptions::vocabulary`].
    #[must_use]
    pub fn with_vocabulary(mut self, vocabulary: impl Into<Option<VocabularyId<'a>>>) -> Self {
        self.vocabulary = vocabulary.into();
        self
    }
}

impl VocabularyId<'_> {
    /// Sizes beyond 32 bits do not exist; the size of an int is only as good as what it was asked for.
    pub(crate) fn stored_size(self) -> u32 {
        u32::try_from(self.size).unwrap_or(u32::MAX)
    }

    pub(crate) fn check(&self, max_token: TokenId) -> Result<(), FileProblem> {
        if max_token.index() >= self.size {
            return Err(FileProblem::OutsideVocabulary { max_token, n_vocab: self.size });
        }
        match self.fingerprint {
            Some(text) if !header::FINGERPRINT.contains(&text.len()) => {
                Err(FileProblem::Fingerprint { bytes: text.len() })
            }
            _ => Ok(()),
        }
    }
}
