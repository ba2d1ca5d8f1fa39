//! Syntax of the arguments of a call.

/// Syntax of the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arguments {
    /// Arguments are a JSON object.
    Json,
    /// A JSON string that holds the JSON text of an object. Readers accept it wherever they accept a JSON object, and
    /// the other way round.
    JsonText,
    /// An object as a style writes values, such as a dict as Python prints it.
    Literal(Style),
    /// Arguments between tags, one after the other. Strings are written as they are, other values in a style.
    Tagged(TaggedArguments),
    /// `key=value`, separated by commas, up to the text after the arguments: Python's keyword arguments.
    Keywords(Style),
    /// `key:value`, separated by commas, up to the text after the arguments, with a style's own quotes.
    Pairs(Style),
    /// Elements named after the keys, inside each other: `<city>Paris</city>`, list items as `<item>`.
    Elements {
        /// Text before every tag, opening and closing; may be empty.
        mark: String,
        /// True if every value is JSON, with strings in quotes, and no value contains elements.
        quoted: bool,
    },
}

impl Arguments {
    /// Returns whether they are one object, which ends by itself.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Json | Self::JsonText | Self::Literal(_))
    }
}

/// Syntax of arguments that are written between tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaggedArguments {
    /// Text before a key; may be empty if each argument is a line.
    pub key_start: String,
    /// Texts between a key and its value, by the type of the value. There is one entry if the text is always the same.
    pub opened: Vec<ValueOpening>,
    /// Text after a value.
    pub value_end: String,
    /// Text between two arguments. White space is always allowed there.
    pub between: String,
    /// True if a value may be wrapped in `<![CDATA[` and `]]>`.
    pub cdata: bool,
    /// True if strings may be quoted too, as the values of a style.
    pub quoted: bool,
}

/// Text between a key and its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueOpening {
    /// Text of the opening.
    pub text: String,
    /// The JSON types that this text states, such as `string`; empty if it states none.
    pub types: Vec<String>,
}

/// Style of nested values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Style {
    /// Quotes of strings. The first is the usual one.
    pub quotes: Vec<Quote>,
    /// True if the keys of nested objects have no quotes.
    pub bare_keys: bool,
    /// True if white space separates a key of the arguments from the sign after it: `key = value`.
    pub keys_apart: bool,
    /// True if nothing but JSON's words is written: `true`, not `True`.
    pub json_words: bool,
}

/// Quotes of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quote {
    /// Mark on both sides.
    pub mark: String,
    /// True if a backslash escapes inside.
    pub escapes: bool,
}

impl Style {
    /// Returns the style of JSON.
    pub fn json() -> Self {
        Self {
            quotes: vec![Quote { mark: "\"".into(), escapes: true }],
            bare_keys: false,
            keys_apart: false,
            json_words: false,
        }
    }

    /// The style of Python with both kinds of quotes, because models also write JSON's in it.
    pub fn python() -> Self {
        let quote = |mark: &str| Quote { mark: mark.into(), escapes: true };
        Self { quotes: vec![quote("'"), quote("\"")], bare_keys: false, keys_apart: false, json_words: false }
    }

    /// The style with these quotes around strings, and keys without quotes.
    pub fn quoted_by(mark: impl Into<String>) -> Self {
        Self {
            quotes: vec![Quote { mark: mark.into(), escapes: false }],
            bare_keys: true,
            keys_apart: false,
            json_words: false,
        }
    }
}

impl TaggedArguments {
    /// Builds tags that do not state the type of a value.
    pub fn new(key_start: impl Into<String>, between: impl Into<String>, value_end: impl Into<String>) -> Self {
        let opened = vec![ValueOpening { text: between.into(), types: Vec::new() }];
        Self { key_start: key_start.into(), opened, value_end: value_end.into(), ..Self::default() }
    }

    /// Returns whether each argument is a line, which ends its value.
    pub fn is_lines(&self) -> bool {
        self.value_end.trim().is_empty() && self.value_end.contains('\n')
    }
}
