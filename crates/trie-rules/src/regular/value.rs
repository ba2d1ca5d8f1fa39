//! What a text stands for.

use super::Regular;
use super::{date, string};

/// A text of a [`Regular`], read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Of a regular expression or a concatenation: the text itself.
    Text(String),
    /// Of an integer.
    Integer(i128),
    /// Of an integer without bounds that 128 bits do not hold: its digits.
    LongInteger(String),
    /// Of a JSON number: what it is nearest to. Infinite where more digits of the exponent were allowed than a `f64`
    /// has.
    Number(f64),
    /// Of a date.
    Date {
        /// From 1 to 9999.
        year: u16,
        /// From 1.
        month: u8,
        /// From 1.
        day: u8,
    },
    /// Of a JSON string: what it says, without quotes and escapes.
    String(String),
    /// Of a list.
    Entry {
        /// Where it stood first among the texts that were given.
        index: usize,
        /// The text. What is no UTF-8 in it is replaced.
        text: String,
    },
}

/// How the texts of a rule are read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reads {
    Text,
    Integer,
    Number,
    Date,
    String {
        quotes: bool,
    },
    /// The list first, then whichever rule takes the text.
    OneOf(Vec<Regular>),
}

impl Reads {
    /// A text that the rule takes.
    pub(super) fn value(&self, text: &[u8]) -> Option<Value> {
        let lossy = || String::from_utf8_lossy(text).into_owned();
        Some(match self {
            Self::Text => Value::Text(lossy()),
            Self::Integer => {
                let digits = std::str::from_utf8(text).ok()?;
                digits.parse().map_or_else(|_| Value::LongInteger(digits.to_owned()), Value::Integer)
            }
            Self::Number => Value::Number(std::str::from_utf8(text).ok()?.parse().ok()?),
            Self::Date => {
                let number = |range| std::str::from_utf8(text.get::<std::ops::Range<usize>>(range)?).ok();
                let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
                let (year, month, day) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
                debug_assert!(u32::from(day) <= date::days(u32::from(year), u32::from(month)));
                Value::Date { year, month, day }
            }
            Self::String { quotes } => {
                let inside = if *quotes { text.strip_prefix(b"\"")?.strip_suffix(b"\"")? } else { text };
                Value::String(string::decoded(std::str::from_utf8(inside).ok()?)?)
            }
            Self::OneOf(rules) => return rules.iter().find_map(|rule| rule.value(text)),
        })
    }
}
