//! What cannot be put over a vocabulary.

/// What cannot be put over a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuidedError {
    /// No token begins a legal text.
    #[error("no token of the vocabulary begins a legal text: it would have to begin with byte {bytes:?}")]
    Unspellable {
        /// The bytes with which legal texts begin.
        bytes: Vec<u8>,
    },
    /// Only the empty text is legal.
    #[error("only the empty text is legal: there is nothing to write")]
    Nothing,
    /// It is larger than its limits allow, or llguidance failed.
    #[error("llguidance: {reason}")]
    Failed {
        /// In its words.
        reason: String,
    },
}

trie_core::error_kind!(GuidedError, Rule);
