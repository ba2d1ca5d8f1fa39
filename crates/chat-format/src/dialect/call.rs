//! Syntax of tool calls.

use super::value::Arguments;

/// Syntax of the tool calls of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Text around all calls of a reply; both parts are empty if there is none.
    pub section: Wrap,
    /// True if calls form a JSON list or a Python list: `[`, `]` around them and a comma between.
    pub list: bool,
    /// Text between two calls if they form no list. White space is always allowed there.
    pub between: String,
    /// The ways to write a call, the usual one first.
    pub patterns: Vec<Pattern>,
    /// True if the template renders more than one call in a turn.
    pub parallel: bool,
    /// True if the template writes calls over several lines: their arguments, or what is around them, indented.
    pub lines: bool,
}

/// Text before and after a part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wrap {
    /// Text before the part.
    pub start: String,
    /// Text after the part.
    pub end: String,
}

/// One way to write a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pattern {
    /// Its parts in their order.
    pub parts: Vec<Part>,
    /// True if it may come only at the beginning of a reply or after a joint, because its first text is too common
    /// elsewhere.
    pub at_start_only: bool,
    /// Number of literal parts at its beginning that may be missing, because models leave them out.
    pub optional_head: usize,
}

/// A part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// This text. White space at its ends may be longer or shorter.
    Text(String),
    /// The name of a tool. It ends where the next part, a text, begins.
    Name,
    /// The id of the call, up to the text after it.
    Id,
    /// The number of the call in the reply, 0 or 1 and so on, up to the text after it.
    Index,
    /// Any text, up to the text after it.
    Anything,
    /// Boundary of an id that spans several parts: the id begins with this part, and ends before the next `WholeId`.
    WholeId,
    /// Arguments of the call.
    Arguments(Arguments),
    /// An object that holds the name and the arguments.
    Object(ObjectCall),
    /// A JSON object with one key, the name; its value is the arguments.
    NameAsKey,
}

/// A call that is a JSON object or a Python dict. When it is read, its fields may come in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectCall {
    /// The fields as the template writes them.
    pub fields: Vec<Field>,
    /// The key of the inner object that holds the fields, such as `function`; empty if there is no inner object.
    pub inside: String,
    /// Keys of other fields of the inner object, beside the name and the arguments.
    pub beside: Vec<String>,
    /// True if the arguments are JSON text in a JSON string instead of an object.
    pub text: bool,
    /// True if it is written as Python prints a dict.
    pub python: bool,
}

/// A field of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The name of the tool, under this key.
    Name(String),
    /// Key of the arguments.
    Arguments(String),
    /// The id: a JSON string or number.
    Id(String),
    /// A field with the same text in each call, under this key: `"type": "function"`.
    Constant(String, String),
}

impl Wrap {
    /// Builds a pair of texts.
    pub fn new(start: impl Into<String>, end: impl Into<String>) -> Self {
        Self { start: start.into(), end: end.into() }
    }

    /// Returns whether both texts are empty.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty() && self.end.is_empty()
    }
}

impl Pattern {
    /// Builds a pattern of these parts, allowed anywhere.
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts, at_start_only: false, optional_head: 0 }
    }

    /// The same pattern, allowed only where a reply begins.
    #[must_use]
    pub fn at_start(mut self) -> Self {
        self.at_start_only = true;
        self
    }

    /// The same pattern, whose first literal parts may be missing: `parts` of them.
    #[must_use]
    pub fn with_optional_head(mut self, parts: usize) -> Self {
        self.optional_head = parts;
        self
    }

    /// Returns whether arguments or calls are dicts as Python prints them.
    pub(crate) fn is_printed(&self) -> bool {
        let printed = |part: &Part| match part {
            Part::Object(object) => object.python,
            Part::Arguments(arguments) => matches!(arguments, Arguments::Literal(_)),
            _ => false,
        };
        self.parts.iter().any(printed)
    }

    /// The literal text at the beginning of the pattern, if there is one.
    pub fn head(&self) -> Option<&str> {
        match self.parts.first() {
            Some(Part::Text(text)) => Some(text),
            _ => None,
        }
    }
}
