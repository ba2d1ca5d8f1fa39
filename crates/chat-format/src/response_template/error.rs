//! Errors of response templates.

use trie_core::ErrorKind;

/// Error of a response template, or of a reply that it reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// The response template cannot be used.
    #[error("invalid response template: {at}{reason}")]
    Template {
        /// The field with the fault, with words around it; empty for the template itself.
        at: String,
        /// The fault, in one sentence.
        reason: String,
    },
    /// The text of a field is not what the response template says.
    #[error("field {field:?} of the reply: {reason}")]
    Field {
        /// Name of the field.
        field: String,
        /// The fault, in one sentence.
        reason: String,
    },
    /// A field that is not optional is missing.
    #[error("the reply has no field {field:?}, which is not optional")]
    Missing {
        /// Name of the field.
        field: String,
    },
    /// The reply is already over.
    #[error("the reply is over: a new parser reads the next one")]
    Over,
    /// The response template says what a chat format cannot express.
    #[error("a chat format cannot follow this response template: {reason}")]
    Unread {
        /// The part, and why it cannot be followed.
        reason: String,
    },
    /// No response template can say how replies of this format are read.
    #[error("no response template can be written for this format: {reason}")]
    Unwritable {
        /// The part of the format, and why it cannot be said.
        reason: String,
    },
}

impl ResponseError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Template { .. } | Self::Unread { .. } | Self::Unwritable { .. } => ErrorKind::Template,
            Self::Field { .. } | Self::Missing { .. } => ErrorKind::Argument,
            Self::Over => ErrorKind::State,
        }
    }
}
