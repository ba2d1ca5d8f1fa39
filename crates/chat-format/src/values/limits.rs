//! Limits of styles: texts that hold the end of a value and keys that hold the end of a key cannot be written.

use crate::dialect::{Arguments, Calls, Part, Style};
use crate::values::syntax::CDATA;
use trie_rules::TextSet;
use trie_schema::Writable;

/// Texts and keys that cannot be written in the styles of a format. The default has none.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Endings of a text, wherever they stand.
    ends: Vec<Vec<u8>>,
    /// Endings of a key of the arguments.
    key_ends: Vec<Vec<u8>>,
    /// Keys of the arguments stand bare, and end with this byte.
    bare: Option<u8>,
    /// Keys inside of values too.
    bare_inside: bool,
    /// Keys are the names of elements.
    names: bool,
    /// True if a text that begins a section begins no other value.
    sections: bool,
}

impl Limits {
    /// Computes the limits of all call patterns of a format.
    pub(crate) fn of(calls: &Calls) -> Self {
        let mut limits = Self::default();
        for part in calls.patterns.iter().flat_map(|pattern| &pattern.parts) {
            if let Part::Arguments(arguments) = part {
                limits.add(arguments);
            }
        }
        limits
    }

    /// Adds the limits of one style of arguments.
    pub(crate) fn add(&mut self, arguments: &Arguments) {
        let trimmed =
            |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(|text| text.as_bytes().to_vec());
        match arguments {
            Arguments::Tagged(keyed) if keyed.is_lines() => {
                self.ends.extend((!keyed.quoted).then(|| b"\n".to_vec()));
                self.key_ends.extend(keyed.opened.iter().map(|opened| opened.text.as_bytes().to_vec()));
            }
            Arguments::Tagged(keyed) => {
                self.ends.extend(trimmed(&keyed.value_end).filter(|_| !keyed.quoted));
                let first = |text: &str| trimmed(text.trim().lines().next().unwrap_or_default());
                self.key_ends.extend(keyed.opened.iter().filter_map(|opened| first(&opened.text)));
                self.sections |= keyed.cdata;
            }
            Arguments::Keywords(style) => self.pairs(style, b'='),
            Arguments::Pairs(style) => self.pairs(style, b':'),
            Arguments::Elements { mark, quoted } => {
                self.ends.extend(trimmed(&format!("{}</", mark.trim())).filter(|_| !quoted));
                self.names = true;
            }
            Arguments::Json | Arguments::JsonText | Arguments::Literal(_) => {}
        }
    }

    fn pairs(&mut self, style: &Style, joint: u8) {
        self.bare = Some(joint);
        self.bare_inside |= style.bare_keys;
        let closed = style.quotes.iter().filter(|quote| !quote.escapes && !quote.mark.is_empty());
        self.ends.extend(closed.map(|quote| quote.mark.clone().into_bytes()));
    }

    /// Returns the texts that can be written; `None` if all can.
    pub(crate) fn writable(&self) -> Option<Writable> {
        let sections = if self.sections { format!("|^{}", escaped(CDATA)) } else { String::new() };
        let without = |ends: &[Vec<u8>], more: &str| {
            let parts: Vec<String> = ends.iter().map(|end| held(end)).collect();
            outside(&format!("{}{more}", parts.join("|")))
        };
        let texts = without(&self.ends, &sections);
        let names = both(&texts, &self.spelled_names(false));
        let top = both(&both(&texts, &self.spelled_names(true)), &without(&self.key_ends, ""));
        Some(Writable::new(texts, names, top)).filter(|writable| !writable.is_all())
    }

    /// The names that a reader tells from what stands around them; `top`: of the arguments themselves.
    fn spelled_names(&self, top: bool) -> TextSet {
        const APART: &str = r#"\u{0}-\u{20}{}\[\](),"'"#;
        let bare = match self.bare {
            Some(joint) if top => Some(format!("^[^{APART}{}]+$", escaped(&[joint]))),
            Some(_) if self.bare_inside => Some(format!("^[^{APART}<:=]+$")),
            _ => None,
        };
        let bare = bare.map_or_else(TextSet::full, |pattern| set(&pattern));
        if self.names { both(&bare, &set(r"^[^\u{0}-\u{20}</>]+$")) } else { bare }
    }
}

/// A text as a pattern.
fn escaped(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().flat_map(char::escape_unicode).collect()
}

/// A pattern of the texts that hold an end, or that end with what would be one together with it.
fn held(end: &[u8]) -> String {
    let before = &end[..end.len() - 1];
    let joins = |begun: &usize| [&end[..*begun], before].concat().windows(end.len()).any(|part| part == end);
    let begun: Vec<String> =
        (1..end.len()).filter(joins).map(|begun| format!("|{}$", escaped(&end[..begun]))).collect();
    format!("{}{}", escaped(end), begun.concat())
}

/// The texts in which a pattern is not found; without one all.
fn outside(pattern: &str) -> TextSet {
    let pattern = pattern.trim_start_matches('|');
    if pattern.is_empty() { TextSet::full() } else { set(pattern).complement() }
}

// Where that is too much work, whoever reads the schemas says so.
fn set(pattern: &str) -> TextSet {
    TextSet::pattern(pattern).unwrap_or_else(|_| TextSet::full())
}

fn both(one: &TextSet, other: &TextSet) -> TextSet {
    one.and(other).unwrap_or_else(|_| one.clone())
}
