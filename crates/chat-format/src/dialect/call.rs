//! Syntax of tool calls.

use super::value::Arguments;

/// Syntax of the tool calls of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Around all calls of a reply; both empty where there is nothing.
    pub section: Wrap,
    /// True if calls form a JSON list or a Python list: `[`, `]` around them and a comma between.
    pub list: bool,
    /// Text between two calls otherwise. White space may always.
    pub between: String,
    /// The ways to write a call, the usual one first.
    pub patterns: Vec<Pattern>,
    /// True if the template renders more than one call in a turn.
    pub parallel: bool,
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
    /// True if it may come only at the beginning of a reply or after a joint: its beginning says too little elsewhere.
    pub at_start_only: bool,
    /// Number of literal parts at its beginning that may be missing, as models leave them out.
    pub optional_head: usize,
}

/// A part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// This text. White space at its ends may be more or less.
    Text(String),
    /// The name of a tool. It ends where the next part, a text, begins.
    Name,
    /// The id of the call, up to the text after it.
    Id,
    /// The number of the call in the reply, 0 or 1 and so on, up to the text after it.
    Index,
    /// Anything up to the text after it.
    Anything,
    /// All from here up to here is the id too: it begins with this part and ends before the next of its kind.
    WholeId,
    /// Arguments of the call.
    Arguments(Arguments),
    /// An object that holds the name and the arguments.
    Object(ObjectCall),
    /// A JSON object with one key, the name; its value is the arguments.
    NameAsKey,
}

/// A JSON object or a Python dict that is a call. Its fields may come in any order when it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectCall {
    /// The fields as the template writes them.
    pub fields: Vec<Field>,
    /// The key of the object that they stand in, such as `function`; empty if there is none.
    pub inside: String,
    /// The keys of other fields that stand inside of it, beside name and arguments.
    pub beside: Vec<String>,
    /// True if the arguments are JSON text in a JSON string instead of an object.
    pub text: bool,
    /// True if it is a dict as Python prints it.
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
    /// The same text in each call, under this key: `"type": "function"`.
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
    /// Builds a call of these parts, allowed anywhere.
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts, at_start_only: false, optional_head: 0 }
    }

    /// The same, only where a reply begins.
    #[must_use]
    pub fn at_start(mut self) -> Self {
        self.at_start_only = true;
        self
    }

    /// The same with so many literal parts at its beginning that may be missing.
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

    /// The text it begins with, if it begins with one.
    pub fn head(&self) -> Option<&str> {
        match self.parts.first() {
            Some(Part::Text(text)) => Some(text),
            _ => None,
        }
    }
}
