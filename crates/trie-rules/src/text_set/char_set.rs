//! Sets of Unicode scalar values, as ranges.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The last code point.
pub(super) const LAST: u32 = 0x10_FFFF;
/// Code points that are no characters.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

/// A set of characters: ranges in order, both ends included, none of which touch. There are no surrogates in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct CharSet(Vec<(u32, u32)>);

impl CharSet {
    /// Builds a set from ranges of code points; surrogates among them are left out.
    pub(super) fn ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut sorted: Vec<(u32, u32)> = Vec::new();
        for (low, high) in ranges {
            let below = (low, high.min(SURROGATES.0 - 1));
            let above = (low.max(SURROGATES.1 + 1), high.min(LAST));
            sorted.extend([below, above].into_iter().filter(|(low, high)| low <= high));
        }
        sorted.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
        for (low, high) in sorted {
            match merged.last_mut() {
                // Ranges on both sides of the surrogates touch, too.
                Some(last) if low <= next_char(last.1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    pub(super) fn full() -> Self {
        Self::ranges([(0, LAST)])
    }

    pub(super) fn one(char: u32) -> Self {
        Self::ranges([(char, char)])
    }

    /// Ranges, which may go over the surrogates.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn complement(&self) -> Self {
        let mut left = Vec::with_capacity(self.0.len() + 1);
        let mut from = 0;
        for &(low, high) in &self.0 {
            if from < low {
                left.push((from, low - 1));
            }
            from = high + 1;
        }
        if from <= LAST {
            left.push((from, LAST));
        }
        Self::ranges(left)
    }

    /// With all characters that differ from one of it in case alone: the simple folding of Unicode.
    pub(super) fn fold_case(&self) -> Self {
        let range = |(low, high): (u32, u32)| {
            // A range over the surrogates is two.
            let parts = [(low, high.min(SURROGATES.0 - 1)), (low.max(SURROGATES.1 + 1), high)];
            parts.into_iter().filter(|(low, high)| low <= high)
        };
        let chars = |(low, high): (u32, u32)| Some(ClassUnicodeRange::new(char::from_u32(low)?, char::from_u32(high)?));
        let mut class = ClassUnicode::new(self.iter().flat_map(range).filter_map(chars));
        // The tables are compiled in.
        let _ = class.try_case_fold_simple();
        Self::of_class(&class)
    }

    fn of_class(class: &ClassUnicode) -> Self {
        Self::ranges(class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))))
    }

    /// Returns the set of `\p{…}`, by the name in the braces; `None` if Unicode has no such property.
    pub(super) fn property(name: &str) -> Option<Self> {
        let known = |char: char| char.is_ascii_alphanumeric() || "_=".contains(char);
        if name.is_empty() || !name.chars().all(known) {
            return None;
        }
        let pattern = format!(r"\p{{{name}}}");
        let hir = ParserBuilder::new().utf8(true).build().parse(&pattern).ok()?;
        match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => Some(Self::of_class(class)),
            // One character.
            HirKind::Literal(literal) => {
                let char = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
                Some(Self::one(u32::from(char)))
            }
            _ => None,
        }
    }
}

/// The code point behind another, surrogates left out.
fn next_char(char: u32) -> u32 {
    if char + 1 == SURROGATES.0 { SURROGATES.1 + 1 } else { char + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_over_surrogates() {
        assert_eq!(CharSet::ranges([(5, 9), (0, 4), (0xD700, 0xDBFF), (0xDC00, 0xE000)]).0, [(0, 9), (0xD700, 0xE000)]);
        assert_eq!(CharSet::ranges([(0xD800, 0xDFFF)]), CharSet::default());
        assert_eq!(CharSet::full().complement(), CharSet::default());
        assert_eq!(CharSet::one(0xD7FF).complement().complement(), CharSet::one(0xD7FF));
        assert_eq!(
            CharSet::ranges([(0xD7FF, 0xE000)]).complement().iter().collect::<Vec<_>>(),
            [(0, 0xD7FE), (0xE001, LAST)]
        );
    }

    #[test]
    fn properties_are_those_of_unicode() {
        let greek = CharSet::property("Script=Greek").unwrap();
        assert!(greek.iter().any(|(low, high)| (low..=high).contains(&u32::from('α'))));
        assert_eq!(CharSet::property("Lu").unwrap(), CharSet::property("General_Category=Uppercase_Letter").unwrap());
        for none in ["", "Nothing", "L}|\\p{N", "Script=", "^L"] {
            assert_eq!(CharSet::property(none), None, "{none}");
        }
    }
}
