//! The vocabulary that a file is opened for, and the checks of its contents.

use super::header::FINGERPRINT;
use super::problem::FileProblem;
use trie_core::{TokenId, VocabularyId};

/// Options for opening a file: see [`TrieFile::open`](super::TrieFile::open).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FileOptions<'a> {
    /// Refuses a file with ids that this vocabulary does not have, or that was saved for another fingerprint.
    pub vocabulary: Option<VocabularyId<'a>>,
    /// Checks the whole file: checksums, and everything that a walk relies on. `O(nodes)`.
    pub verify: bool,
}

impl<'a> FileOptions<'a> {
    /// Sets whether the whole file is checked: see [`FileOptions::verify`].
    #[must_use]
    pub const fn with_verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets the vocabulary: see [`FileOptions::vocabulary`].
    #[must_use]
    pub fn with_vocabulary(mut self, vocabulary: impl Into<Option<VocabularyId<'a>>>) -> Self {
        self.vocabulary = vocabulary.into();
        self
    }
}

/// Checks that the vocabulary has all ids up to this one, and a fingerprint that fits into a file.
pub(crate) fn check_vocabulary(vocabulary: VocabularyId<'_>, max_token: TokenId) -> Result<(), FileProblem> {
    if max_token.index() >= vocabulary.size {
        return Err(FileProblem::OutsideVocabulary { max_token, n_vocab: vocabulary.size });
    }
    match vocabulary.fingerprint {
        Some(text) if !FINGERPRINT.contains(&text.len()) => Err(FileProblem::Fingerprint { bytes: text.len() }),
        _ => Ok(()),
    }
}
