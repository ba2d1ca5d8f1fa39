//! Python's `str`: counted and cut by code points.

use super::origin::TracedText;
use super::{Buffer, Value};
use crate::error::Res;
use crate::meter::{RANGE, hold, release, room, spend_bytes};
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

#[derive(Debug)]
pub(crate) struct Text {
    traced: TracedText,
    count: Cell<Option<usize>>,
    markup: bool,
}

/// Overhead of a short text beside its bytes.
const OVERHEAD: usize = 64;

impl Text {
    /// A text that the template did not write.
    pub(crate) fn new(text: String) -> Res<Rc<Self>> {
        Self::traced_text(TracedText::foreign_text(text), false)
    }

    /// Builds a text whose bytes have known origins. With `markup`, `+` does not escape it, and escapes other texts.
    pub(crate) fn traced_text(traced: TracedText, markup: bool) -> Res<Rc<Self>> {
        hold(Self::size(&traced))?;
        spend_bytes(traced.text().len())?;
        Ok(Rc::new(Self { traced, count: Cell::new(None), markup }))
    }

    /// Returns it as markup, with entities in place of HTML's characters. Every other byte keeps its origin.
    pub(crate) fn escape(&self) -> Res<Rc<Self>> {
        let mut out = Buffer::default();
        for piece in self.as_str().split_inclusive(ESCAPED) {
            let plain = piece.strip_suffix(ESCAPED).unwrap_or(piece);
            out.push_part(self, plain)?;
            let special = &piece[plain.len()..];
            if let Value::Str(text) = self.part(special)? {
                out.push_text(&*text.made_of(escape(special), true)?)?;
            }
        }
        Self::traced_text(out.into_traced(), true)
    }

    /// Builds a text derived from this one as a whole: the template's own only if all of that was.
    pub(crate) fn made_of(&self, text: String, markup: bool) -> Res<Rc<Self>> {
        let traced = if self.traced.is_own() { TracedText::own_text(text) } else { TracedText::foreign_text(text) };
        Self::traced_text(traced, markup)
    }

    fn size(traced: &TracedText) -> usize {
        traced.text().len() + traced.own_ranges().len() * RANGE + OVERHEAD
    }

    pub(crate) fn as_traced(&self) -> &TracedText {
        &self.traced
    }

    /// Returns the range of a slice of it; `None` if it is not one.
    pub(crate) fn range_of(&self, part: &str) -> Option<Range<usize>> {
        let from = part.as_ptr().addr().checked_sub(self.as_str().as_ptr().addr())?;
        let to = from.checked_add(part.len())?;
        (to <= self.len()).then_some(from..to)
    }

    /// A slice of it as a value, whose bytes keep their origin. Text that is not a slice of it counts as foreign.
    pub(crate) fn part(&self, part: &str) -> Res<Value> {
        let traced = match self.range_of(part) {
            Some(range) => self.traced.part(range),
            None => TracedText::foreign_text(part),
        };
        Self::traced_text(traced, false).map(Value::Str)
    }

    pub(crate) fn as_str(&self) -> &str {
        self.traced.text()
    }

    pub(crate) fn is_markup(&self) -> bool {
        self.markup
    }

    pub(crate) fn len(&self) -> usize {
        self.as_str().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }

    /// Returns the number of code points.
    pub(crate) fn count(&self) -> Res<usize> {
        if let Some(count) = self.count.get() {
            return Ok(count);
        }
        spend_bytes(self.len())?;
        let count = self.as_str().chars().count();
        self.count.set(Some(count));
        Ok(count)
    }

    /// Returns the byte offset of a code point; the end for those behind it.
    pub(crate) fn byte_of(&self, index: usize) -> Res<usize> {
        let count = self.count()?;
        if count == self.len() || index >= count {
            return Ok(if index >= count { self.len() } else { index });
        }
        spend_bytes(index)?;
        Ok(self.as_str().char_indices().nth(index).map_or(self.len(), |(at, _)| at))
    }

    pub(crate) fn slice(&self, from: usize, to: usize) -> Res<&str> {
        let (from, to) = (self.byte_of(from)?, self.byte_of(to)?);
        Ok(self.as_str().get(from..to).unwrap_or_default())
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        release(Self::size(&self.traced));
    }
}

/// Tests a character as Python's `str.isspace`.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// Tests a character as Python's `str.isprintable`.
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

/// Splits a text as Python's `str.splitlines`.
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

/// Characters that HTML escapes.
const ESCAPED: [char; 5] = ['&', '>', '<', '\'', '"'];

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('>', "&gt;").replace('<', "&lt;");
    text.replace('\'', "&#39;").replace('"', "&#34;")
}
