//! Events: the parts in which a value is fed to the machine.

use crate::formula::Types;

/// Maximum nesting depth of objects and arrays in values that are fed as events.
pub const MOST_LEVELS: usize = 64;

/// Event: a part of a value that is fed to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// `null`.
    Null,
    /// `false`.
    False,
    /// `true`.
    True,
    /// A byte of a number.
    Number(u8),
    /// A number is over.
    NumberEnd,
    /// A string begins, or a name.
    TextOpen,
    /// A byte of what a string stands for, in UTF-8.
    Text(u8),
    /// A string is over, or a name: its value must follow.
    TextClose,
    /// An object begins.
    ObjectOpen,
    /// An array begins.
    ArrayOpen,
    /// Another item or name must follow.
    Comma,
    /// An object or an array ends.
    Close,
}

impl Event {
    /// The types of values that begin so.
    pub(crate) fn types(self) -> Types {
        match self {
            Self::Null => Types::NULL,
            Self::False | Self::True => Types::BOOLEAN,
            Self::Number(_) => Types::NUMBER,
            Self::TextOpen => Types::STRING,
            Self::ObjectOpen => Types::OBJECT,
            Self::ArrayOpen => Types::ARRAY,
            _ => Types::ALL,
        }
    }
}

/// Rest of a text that a schema lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemainingText {
    /// The text from here on, up to its end or to the first character that JSON escapes.
    pub text: Vec<u8>,
    /// The last byte of the text that was fed, if any.
    pub before: Option<u8>,
    /// True if `text` stops before a character that JSON escapes.
    pub is_cut: bool,
}
