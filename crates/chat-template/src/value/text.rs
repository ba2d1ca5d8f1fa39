//! Python's `str`: counted and cut by code points.

use crate::error::Res;
use crate::meter::{hold, release, room, spend_bytes};
use std::cell::Cell;
use std::rc::Rc;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

#[derive(Debug)]
pub(crate) struct Text {
    bytes: Box<str>,
    count: Cell<Option<usize>>,
    markup: bool,
}

/// What a short text takes besides its bytes.
const OVERHEAD: usize = 64;

impl Text {
    pub(crate) fn new(text: String) -> Res<Rc<Self>> {
        Self::make(text, false)
    }

    /// A text that `+` does not escape and that escapes others.
    pub(crate) fn markup(text: String) -> Res<Rc<Self>> {
        Self::make(text, true)
    }

    fn make(text: String, markup: bool) -> Res<Rc<Self>> {
        hold(text.len() + OVERHEAD)?;
        spend_bytes(text.len())?;
        Ok(Rc::new(Self { bytes: text.into(), count: Cell::new(None), markup }))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.bytes
    }

    pub(crate) fn is_markup(&self) -> bool {
        self.markup
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Code points.
    pub(crate) fn count(&self) -> Res<usize> {
        if let Some(count) = self.count.get() {
            return Ok(count);
        }
        spend_bytes(self.bytes.len())?;
        let count = self.bytes.chars().count();
        self.count.set(Some(count));
        Ok(count)
    }

    /// Where a code point begins, in bytes; the end for those behind it.
    pub(crate) fn byte_of(&self, index: usize) -> Res<usize> {
        let count = self.count()?;
        if count == self.bytes.len() || index >= count {
            return Ok(if index >= count { self.bytes.len() } else { index });
        }
        spend_bytes(index)?;
        Ok(self.bytes.char_indices().nth(index).map_or(self.bytes.len(), |(at, _)| at))
    }

    pub(crate) fn slice(&self, from: usize, to: usize) -> Res<&str> {
        let (from, to) = (self.byte_of(from)?, self.byte_of(to)?);
        Ok(self.bytes.get(from..to).unwrap_or_default())
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        release(self.bytes.len() + OVERHEAD);
    }
}

/// Python's `str.isspace`.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// Python's `str.isprintable`.
pub(crate) fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    let group = character.general_category_group();
    group != GeneralCategoryGroup::Other && group != GeneralCategoryGroup::Separator
}

pub(crate) fn is_letter(character: char) -> bool {
    character.general_category_group() == GeneralCategoryGroup::Letter
}

pub(crate) fn is_decimal(character: char) -> bool {
    character.general_category() == GeneralCategory::DecimalNumber
}

/// Python's `str.splitlines`.
pub(crate) fn lines(text: &str, keep_ends: bool) -> Res<Vec<&str>> {
    let breaks = |character: char| {
        matches!(character, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    spend_bytes(8 * text.len())?;
    room(text.chars().filter(|&character| breaks(character)).count() * size_of::<&str>())?;
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some((at, character)) = rest.char_indices().find(|&(_, character)| breaks(character)) else {
            found.push(rest);
            break;
        };
        let pair = character == '\r' && rest[at + 1..].starts_with('\n');
        let end = at + character.len_utf8() + usize::from(pair);
        found.push(&rest[..if keep_ends { end } else { at }]);
        rest = &rest[end..];
    }
    Ok(found)
}

/// What HTML needs to be escaped.
pub(crate) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('>', "&gt;").replace('<', "&lt;");
    text.replace('\'', "&#39;").replace('"', "&#34;")
}
