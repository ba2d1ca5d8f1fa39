//! Vocabularies that the ids of a set belong to.

/// The vocabulary that the ids of a trie belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VocabularyId<'a> {
    /// Number of tokens in the vocabulary.
    pub size: usize,
    /// Fingerprint that distinguishes it from others of that size, such as a digest; 1 to 256 bytes.
    pub fingerprint: Option<&'a str>,
}

impl VocabularyId<'_> {
    /// Returns the size as it is kept. Sizes beyond 32 bits do not exist; the size of an int is only as good as what it
    /// was asked for.
    pub fn stored_size(self) -> u32 {
        u32::try_from(self.size).unwrap_or(u32::MAX)
    }
}
