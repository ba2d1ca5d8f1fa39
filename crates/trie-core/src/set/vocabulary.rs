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
    /// Returns the size in 32 bits, as it is stored. A larger size, which no real vocabulary has, becomes the largest
    /// number.
    pub fn stored_size(self) -> u32 {
        u32::try_from(self.size).unwrap_or(u32::MAX)
    }
}
