//! What tokens are for.

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Text,
    /// One byte of a character that has no token of its own.
    Byte,
    /// No text: it tells the model something.
    Control,
    /// Stands for text that the vocabulary cannot spell.
    Unknown,
    /// Never produced.
    Unused,
}

impl TokenKind {
    /// In lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Byte => "byte",
            Self::Control => "control",
            Self::Unknown => "unknown",
            Self::Unused => "unused",
        }
    }
}
