//! Syntax of nested values, ready to be read.

use crate::dialect::Style;
use crate::values::blanks::Gaps;

/// Maximum nesting depth of objects and lists.
pub(super) const MOST_LEVELS: u8 = trie_schema::MOST_LEVELS as u8;

/// Beginning of a section of plain text.
pub(super) const CDATA: &[u8] = b"<![CDATA[";

/// Syntax of nested values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Syntax {
    pub(crate) quotes: Vec<Mark>,
    /// True if keys may stand without quotes.
    pub(crate) bare_keys: bool,
    /// True if it is JSON and nothing else: white space is kept, Python's words are none.
    pub(crate) json: bool,
    /// True if Python's words are read, but not written.
    pub(crate) json_words: bool,
    /// White space between its parts, where it is written.
    pub(crate) gaps: Gaps,
}

/// Quotation mark around a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) text: Box<[u8]>,
    pub(crate) escapes: bool,
}

impl Syntax {
    pub(crate) fn json() -> Self {
        Self { json: true, ..Self::of(&Style::json()) }
    }

    /// JSON's and Python's: what stands in tags.
    pub(crate) fn both() -> Self {
        Self::of(&Style::python())
    }

    pub(crate) fn of(style: &Style) -> Self {
        let mark = |quote: &crate::dialect::Quote| Mark { text: quote.mark.as_bytes().into(), escapes: quote.escapes };
        let quotes = style.quotes.iter().filter(|quote| !quote.mark.is_empty()).map(mark).collect();
        Self { quotes, bare_keys: style.bare_keys, json: false, json_words: style.json_words, gaps: Gaps::default() }
    }

    /// The same with this white space.
    pub(crate) fn with_gaps(self, gaps: Gaps) -> Self {
        Self { gaps, ..self }
    }
}
