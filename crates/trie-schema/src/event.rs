//! The parts in which values are told.

use crate::formula::Types;

/// Objects and arrays that may stand inside each other where values are told part by part.
pub const MOST_LEVELS: usize = 64;

/// A part of a value, as it is told.
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

/// The rest of a text that a schema lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemainingText {
    /// The text from here on, up to its end, or to what JSON would escape.
    pub text: Vec<u8>,
    /// The byte of it that was told last, if one was.
    pub before: Option<u8>,
    /// True if the text goes on behind what JSON would escape.
    pub is_cut: bool,
}
