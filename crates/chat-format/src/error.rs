//! Errors of chat formats.

use chat_template::TemplateError;
use trie_core::ErrorKind;
use trie_core::work::LimitExceeded;
use trie_rules::ByRuleError;
use trie_schema::SchemaError;

/// Error of a chat format.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// Error of the template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A tool whose schema no arguments satisfy.
    #[error("the parameters of tool {tool:?}: schema at {:?}: {}", .error.placed().0, .error.placed().1)]
    Schema {
        /// Name of the tool.
        tool: String,
        /// Reason why the schema was refused.
        error: SchemaError,
    },
    /// A name that this format cannot write.
    #[error(
        "tool {tool:?} cannot be called in this format: its name holds {text:?}, which ends names there; give the tool \
         a name without it"
    )]
    Name {
        /// Name of the tool.
        tool: String,
        /// Text that was given.
        text: String,
    },
    /// A call that this format reads as something else.
    #[error("tool {tool:?} cannot be called in this format: {text:?}, which begins its call, is read otherwise")]
    Misread {
        /// Name of the tool.
        tool: String,
        /// Text that was given.
        text: String,
    },
    /// A call is required, but no call is possible.
    #[error("a call is required, and {reason}")]
    NoCalls {
        /// Reason why no call is possible.
        reason: String,
    },
    /// Tools are given, but the syntax of calls is unknown.
    #[error(
        "no tool can be called: the chat template renders no calls of tools and shows none; give tools_in=\"system\" \
         to describe the tools and their calls in the system message"
    )]
    Unrendered,
    /// The work limit of this thread is exceeded.
    #[error("the arguments of the tools are not read: {0}")]
    Over(LimitExceeded),
    /// The vocabulary cannot spell the reply.
    #[error(transparent)]
    Vocabulary(#[from] ByRuleError),
}

impl FormatError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Template(_) => ErrorKind::Template,
            Self::Vocabulary(error) => error.kind(),
            Self::Over(over) => over.kind(),
            Self::Schema { .. } => ErrorKind::Rule,
            Self::Name { .. } | Self::Misread { .. } | Self::NoCalls { .. } | Self::Unrendered => ErrorKind::Argument,
        }
    }
}
